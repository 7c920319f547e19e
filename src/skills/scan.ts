import { lstatSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, UserError } from "../lib/errors.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesOf } from "../lib/pinned/list.ts";
import type { Skill, SkillWarning } from "../protocol/skills.ts";
import type { SkillSwitches } from "../store/skills.ts";
import { parseManifest, readHead } from "./manifest.ts";
import { readRecord } from "./record.ts";
import type { Snapshot } from "./snapshot.ts";

export const SLUG = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

/** A skill, its real folder, and the beginning of its `SKILL.md`. */
export interface SkillFolder {
  skill: Skill;
  folder: string;
  linked: boolean;
  text: string;
  files: string[];
  /** The entries of its `agents` folder, which holds instructions for parts of its work. */
  agents: string[];
}

export interface Scanner {
  /** Every skill there is now, by slug. */
  folders(): SkillFolder[];
  /** The skills that are on, each followed by the skills in its `agents` folder as `<slug>/<folder>`. */
  active(): SkillFolder[];
}

export interface ScannerDeps {
  root: string;
  switches: Pick<SkillSwitches, "all" | "hashOf">;
  snapshot: (folder: string) => Snapshot;
}

/** Scans at every call; only changed files are read again. */
export function createScanner({ root, switches, snapshot }: ScannerDeps): Scanner {
  const placeOf = (slug: string): { place: SkillFolder; taken: Snapshot } | undefined => {
    const folder = realFolder(join(root, slug));
    if (folder === undefined) return undefined;
    const taken = snapshot(folder);
    const text = taken.texts.get("SKILL.md") ?? (taken.hash === undefined ? readHead(join(folder, "SKILL.md")) : undefined);
    if (text === undefined) return undefined;
    const linked = isLink(join(root, slug));
    const on = switches.hashOf(slug);
    const { warnings, ...record } = readRecord(folder, linked);
    const skill: Skill = {
      slug,
      ...parseManifest(text, slug),
      enabled: on !== undefined && on === taken.hash,
      changed: on !== undefined && on !== taken.hash,
      hash: taken.hash ?? null,
      ...record,
      warnings: [...(taken.problem === undefined ? [] : [unfit(taken.problem)]), ...warnings],
    };
    return { taken, place: { skill, folder, linked, text, files: taken.files, agents: agentsIn(taken.files) } };
  };

  return {
    folders: () => slugsIn(root).flatMap((slug) => placeOf(slug)?.place ?? []),
    active: () =>
      switches.all().flatMap(({ slug }) => {
        const found = SLUG.test(slug) ? placeOf(slug) : undefined;
        return found?.place.skill.enabled ? [found.place, ...agentsOf(found.place, found.taken)] : [];
      }),
  };
}

/** The skills in a skill's `agents` folder, on like the skill they belong to. */
function agentsOf({ skill, folder, linked, files }: SkillFolder, { texts }: Snapshot): SkillFolder[] {
  return [...texts].flatMap(([path, text]) => {
    const [, name = ""] = path.split("/");
    if (path === "SKILL.md" || !SLUG.test(name)) return [];
    const own = { ...skill, slug: `${skill.slug}/${name}`, ...parseManifest(text, name) };
    return [{ skill: own, folder: join(folder, "agents", name), linked, text, files, agents: [] }];
  });
}

function agentsIn(files: readonly string[]): string[] {
  return [...new Set(files.flatMap((file) => (file.startsWith("agents/") ? [file.split("/")[1]!] : [])))];
}

function unfit(problem: string): SkillWarning {
  return { kind: "not-checked", file: ".", line: 0, text: `it cannot be switched on: ${problem}` };
}

function slugsIn(root: string): string[] {
  try {
    return withFolder(root, entriesOf)
      .map(({ name }) => name)
      .filter((name) => SLUG.test(name))
      .sort();
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return [];
    throw new UserError(`The skills folder cannot be read (${code}). The user has to look at it: ${root}`, { cause: error });
  }
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch (error) {
    // Gone, a dangling or endless link, or unreadable: no skill for us.
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EISDIR", "ENXIO"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}
