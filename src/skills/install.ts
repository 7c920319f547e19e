import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { syncFolder } from "../lib/atomic.ts";
import { codeOf, conflict, UserError } from "../lib/errors.ts";
import { clone } from "./clone.ts";
import { type Candidate, collectSkills, copySkill, leftOutWarning } from "./collect.ts";
import { inspect } from "./inspect.ts";
import type { Origin } from "./origin.ts";
import { RECORD, recordText } from "./scan.ts";

export interface InstallDeps {
  /** The folder that holds a folder for each skill. */
  root: string;
  git: Git;
  limits: { maxBytes: number; maxFiles: number; cloneMs: number };
  now: () => Date;
}

/** Clones a repository beside the skills, looks through it, and moves every skill of it into place, all of them or none. */
export async function installSkills(
  origin: Origin,
  { enable, signal }: { enable: boolean; signal: AbortSignal | undefined },
  { root, git, limits, now }: InstallDeps,
): Promise<{ slugs: string[]; commit: string }> {
  const { maxBytes, maxFiles, cloneMs } = limits;
  const staging = join(root, `.staging-${randomBytes(6).toString("hex")}`);
  mkdirSync(staging, { mode: 0o700 });
  try {
    const commit = await clone(origin, join(staging, ".clone"), { deadlineMs: cloneMs, maxBytes }, git, signal);
    const { candidates, leftOut } = collectSkills(join(staging, ".clone"), origin.name, { maxBytes, maxFiles });
    refuseTaken(root, candidates);
    for (const candidate of candidates) {
      const ready = join(staging, candidate.slug);
      copySkill(candidate, ready);
      const warnings = await inspect(ready, [...candidate.files.keys()].sort());
      if (leftOut.length > 0 && candidate === candidates.at(-1)) warnings.unshift(leftOutWarning(leftOut));
      const record = { url: origin.shown, commit, installedAt: now().toISOString(), enabled: enable, warnings };
      writeFileSync(join(ready, RECORD), recordText(record), { mode: 0o600, flag: "wx" });
    }
    moveIn(root, staging, candidates);
    return { slugs: candidates.map(({ slug }) => slug), commit };
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function refuseTaken(root: string, candidates: readonly Candidate[]): void {
  const taken = candidates.filter(({ slug }) => lstatSync(join(root, slug), { throwIfNoEntry: false }) !== undefined);
  if (taken.length === 0) return;
  const names = taken.map(({ slug }) => slug).join(", ");
  throw conflict(
    `Already installed: ${names}. To replace it, first remove it with "io skill remove ${taken[0]!.slug}". Nothing was changed.`,
  );
}

/** Renames every prepared skill into place; if one cannot be, those before it are taken out again. */
function moveIn(root: string, staging: string, candidates: readonly Candidate[]): void {
  const moved: string[] = [];
  try {
    for (const { slug } of candidates) {
      renameSync(join(staging, slug), join(root, slug));
      moved.push(slug);
    }
    syncFolder(root);
  } catch (error) {
    for (const slug of moved) rmSync(join(root, slug), { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(codeOf(error) ?? "")) {
      throw new UserError(
        'A skill of the same name was installed at the same moment. Nothing was changed; look at "io skill list".',
        { cause: error },
      );
    }
    throw error;
  }
}
