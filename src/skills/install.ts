import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { codeOf, conflict, UserError } from "../lib/errors.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { createFile, syncFolder } from "../lib/pinned/write.ts";
import { removeTree } from "../process/remove-tree.ts";
import { clone } from "./clone.ts";
import { type Candidate, collectSkills, copySkill, entriesFor, leftOutWarning } from "./collect.ts";
import { inspect } from "./inspect.ts";
import type { Origin } from "./origin.ts";
import { RECORD, recordText } from "./record.ts";

export interface InstallDeps {
  /** The real path of the folder with a folder for each skill. */
  root: string;
  /** The real path of a folder that no command sees. */
  scratch: string;
  git: Git;
  limits: { maxBytes: number; maxFiles: number; cloneMs: number };
  now: () => Date;
}

/** Clones a repository apart from the skills, inspects it, and moves every skill of it into place, all of them or none. */
export async function installSkills(
  origin: Origin,
  signal: AbortSignal | undefined,
  { root, scratch, git, limits, now }: InstallDeps,
): Promise<{ slugs: string[]; commit: string }> {
  const { maxBytes, maxFiles, cloneMs } = limits;
  const work = workFolder(scratch, "clone");
  // Git may write only here; the copies are beside it, out of git's reach.
  const cloned = join(work, "git");
  const ready = join(work, "ready");
  try {
    for (const folder of [cloned, ready]) mkdirSync(folder, { mode: 0o700 });
    const commit = await clone(
      origin,
      join(cloned, ".clone"),
      { deadlineMs: cloneMs, maxBytes, maxEntries: entriesFor(maxFiles) },
      git,
      signal,
    );
    const { candidates, leftOut } = await collectSkills(join(cloned, ".clone"), origin.name, { maxBytes, maxFiles });
    refuseTaken(root, candidates);
    for (const candidate of candidates) {
      const folder = join(ready, candidate.slug);
      await copySkill(candidate, folder, limits);
      const warnings = await inspect(folder, [...candidate.files.keys()].sort());
      if (leftOut.length > 0 && candidate === candidates.at(-1)) warnings.unshift(leftOutWarning(leftOut));
      const record = { url: origin.shown, commit, installedAt: now().toISOString(), warnings };
      withFolder(folder, (open) => createFile(open, RECORD, recordText(record)));
    }
    moveIn(root, ready, candidates);
    return { slugs: candidates.map(({ slug }) => slug), commit };
  } finally {
    await removeTree(work);
  }
}

/** Creates a folder with a unique name. */
export function workFolder(scratch: string, what: "clone" | "trash"): string {
  const path = join(scratch, `${what}-${randomBytes(6).toString("hex")}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

function refuseTaken(root: string, candidates: readonly Candidate[]): void {
  const taken = candidates.filter(({ slug }) => lstatSync(join(root, slug), { throwIfNoEntry: false }) !== undefined);
  if (taken.length === 0) return;
  const names = taken.map(({ slug }) => slug).join(", ");
  throw conflict(
    `Already installed: ${names}. To replace it, first remove it with "io skill remove ${taken[0]!.slug}". Nothing was changed.`,
  );
}

/** Renames every prepared skill into place; if one fails, removes those before it. */
function moveIn(root: string, ready: string, candidates: readonly Candidate[]): void {
  const moved: string[] = [];
  try {
    for (const { slug } of candidates) {
      renameSync(join(ready, slug), join(root, slug));
      moved.push(slug);
    }
    withFolder(root, syncFolder);
  } catch (error) {
    for (const slug of moved) rmSync(join(root, slug), { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(codeOf(error) ?? "")) {
      throw new UserError(
        'A skill of the same name was installed at the same moment. Nothing was changed; look at "io skill list".',
        { cause: error },
      );
    }
    if (codeOf(error) === "EXDEV")
      throw new UserError(
        `${root} lies on another disk than the rest of the data folder. Move it there, or copy the skill in by hand.`,
        {
          cause: error,
        },
      );
    throw error;
  }
}
