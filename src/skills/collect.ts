import { lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf, UserError } from "../lib/errors.ts";
import { makeFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { readPlainAt, tellAbsent } from "../lib/pinned/read.ts";
import { createFile } from "../lib/pinned/write.ts";
import type { SkillWarning } from "../protocol/skills.ts";
import { parseManifest, readHead, safeLine } from "./manifest.ts";
import { RECORD } from "./record.ts";

const MAX_DEPTH = 8;
const MAX_SKILLS = 100;
const SKIPPED = new Set([".git", "node_modules"]);

export interface Limits {
  maxBytes: number;
  maxFiles: number;
}

/** A skill in a clone that is not installed yet. */
export interface Candidate {
  slug: string;
  name: string;
  /** Its folder in the clone. */
  folder: string;
  /** Its files, by path within that folder, and where each is read from. */
  files: Map<string, string>;
}

/** The skills of a clone, and the folders of those that will not be installed. */
export interface Collection {
  candidates: Candidate[];
  leftOut: string[];
}

/**
 * Every skill of a clone: the root and the folders down to the eighth level, if they are skills. A hidden folder whose name is
 * taken is a copy for another program; it is not mentioned if its text equals that skill's.
 */
export async function collectSkills(clone: string, repoName: string, limits: Limits): Promise<Collection> {
  const root = realpathSync(clone);
  const look: VisitBudget = { left: entriesFor(limits.maxFiles), breathe: createBreath() };
  const folders = await skillFolders(root, 0, look);
  if (folders.length === 0)
    throw new UserError("No SKILL.md was found in the repository, down to its eighth level of folders. Nothing was installed.");
  const nameOf = (folder: string) => (folder === root ? repoName : basename(folder));
  const inner = new Set(folders);
  const bySlug = new Map<string, Candidate>();
  const leftOut: string[] = [];
  for (const folder of folders) {
    const text = readHead(join(folder, "SKILL.md")) ?? "";
    const { name } = parseManifest(text, nameOf(folder));
    const own = slugOf(folder === root ? name : basename(folder)) || slugOf(name) || slugOf(repoName) || "skill";
    const shown = relative(root, folder);
    const holder = bySlug.get(own);
    const copy = holder !== undefined && shown.split(sep).some((part) => part.startsWith("."));
    if (copy && readHead(join(holder.folder, "SKILL.md")) === text) continue;
    if (copy || bySlug.size === MAX_SKILLS) leftOut.push(shown);
    else {
      const slug = freeSlug(own, nameOf(dirname(folder)), bySlug);
      bySlug.set(slug, { slug, name, folder, files: await filesOf(root, folder, inner, limits, look) });
    }
  }
  return { candidates: [...bySlug.values()], leftOut };
}

/** The name itself; if taken, prefixed with its parent folder's; if that is taken too, with a number. */
function freeSlug(own: string, parent: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(own)) return own;
  const longer = slugOf(`${slugOf(parent)}-${own}`);
  let slug = longer;
  for (let number = 2; taken.has(slug); number += 1) slug = `${longer.slice(0, 59)}-${number}`;
  return slug;
}

/** Reports what was left out as a warning, so that it appears wherever the skill's warnings do. */
export function leftOutWarning(leftOut: readonly string[]): SkillWarning {
  const many = leftOut.length === 1 ? "skill of the repository was" : "skills of the repository were";
  const names = leftOut.slice(0, 20).join(", ") + (leftOut.length > 20 ? ", …" : "");
  const why = `${MAX_SKILLS} are the most at once, and a hidden one of a taken name is passed over`;
  const text = `${leftOut.length} ${many} not installed (${why}; copy what you want into the skills folder by hand): ${names}`;
  return { kind: "not-checked", file: ".", line: 0, text: safeLine(text, 1_000) };
}

/** Letters, digits, dots, dashes and underscores of a name, lower case, at most 64. */
export function slugOf(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/\.{2,}/g, ".")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 64)
    .replace(/[^a-z0-9]+$/, "");
}

/** Copies only a candidate's files into a new folder, where all become plain files. */
export async function copySkill(candidate: Candidate, target: string, { maxBytes }: Pick<Limits, "maxBytes">): Promise<void> {
  const breathe = createBreath();
  for (const [file, source] of candidate.files) {
    await breathe();
    const path = join(target, file);
    const read = readPlainAt(source, maxBytes);
    if ("absent" in read)
      throw new UserError(
        `${safeLine(file, 200)} of the skill "${candidate.slug}" ${tellAbsent(read.absent)}. Nothing was installed.`,
      );
    const folder = makeFolder(dirname(path));
    try {
      createFile(folder, basename(path), read.bytes, { mode: Number(read.stats.mode) & 0o777, durable: false });
    } finally {
      folder.close();
    }
  }
}

/** How many files and folders are visited for a skill with up to this many files. */
export const entriesFor = (maxFiles: number): number => 2 * maxFiles + 1_000;

/** What may still be visited: a repository of a few kilobytes can hold any number of folders. */
interface VisitBudget {
  left: number;
  breathe: Breath;
}

async function spend(look: VisitBudget): Promise<void> {
  look.left -= 1;
  if (look.left < 0)
    throw new UserError("The repository has more files and folders than a skill may have. Nothing was installed.");
  await look.breathe();
}

/** Visible folders precede hidden ones, so that a copy for another program never wins. */
async function skillFolders(folder: string, depth: number, look: VisitBudget): Promise<string[]> {
  await spend(look);
  const here = isFile(join(folder, "SKILL.md")) ? [folder] : [];
  if (depth === MAX_DEPTH || (here.length > 0 && depth > 0)) return here;
  const below = entriesAt(folder)
    .filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name))
    .map((entry) => entry.name)
    .sort((a, b) => Number(a.startsWith(".")) - Number(b.startsWith(".")) || (a < b ? -1 : 1));
  const found = here;
  for (const name of below) found.push(...(await skillFolders(join(folder, name), depth + 1, look)));
  return found;
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

async function filesOf(
  root: string,
  skill: string,
  inner: ReadonlySet<string>,
  { maxBytes, maxFiles }: Limits,
  look: VisitBudget,
): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  let bytes = 0;
  const visit = async (folder: string) => {
    for (const entry of entriesAt(folder)) {
      await spend(look);
      const path = join(folder, entry.name);
      const name = relative(skill, path);
      if (entry.name === RECORD || SKIPPED.has(entry.name) || inner.has(path)) continue;
      if (entry.isDirectory()) await visit(path);
      else if (entry.isFile() || entry.isSymbolicLink()) {
        const source = entry.isSymbolicLink() ? linkTarget(root, path, relative(root, path)) : path;
        bytes += statSync(source).size;
        files.set(name, source);
      }
      if (files.size > maxFiles || bytes > maxBytes) {
        throw new UserError(
          `The skill "${safeLine(basename(skill), 64)}" is larger than ${maxFiles} files or ${Math.round(maxBytes / 1_000_000)} MB. Nothing was installed.`,
        );
      }
    }
  };
  await visit(skill);
  return files;
}

/** The file that a link leads to, if it is a file of the same repository. */
function linkTarget(root: string, path: string, shown: string): string {
  const refuse = (why: string) => new UserError(`The link ${safeLine(shown, 200)} ${why}. Nothing was installed.`);
  try {
    const real = realpathSync(path);
    const within = relative(root, real);
    if (within.startsWith("..") || within === "" || within.split(sep).includes(".git"))
      throw refuse("leads out of the repository");
    if (!statSync(real).isFile()) throw refuse("leads to a folder; a skill may only link to files of its repository");
    return real;
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ELOOP") throw refuse("leads nowhere, or out of the repository");
    throw error;
  }
}
