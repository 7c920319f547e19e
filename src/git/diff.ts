import type { Git } from "./command.ts";

const DIFF = ["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M"];
const PATCH_CHARACTERS = 120_000;
/** How many files are listed; the list ends with a summary of all. */
const LISTED_FILES = "--stat-count=1000";

/**
 * The diff of two trees for a reviewer: all files, and as much text as fits. Truncated only here, so that the length it
 * states is correct.
 */
export async function diffOf(
  git: Git,
  cwd: string,
  from: string,
  to: string,
  { most = PATCH_CHARACTERS }: { most?: number } = {},
): Promise<string> {
  if (from === to) return "";
  const list = ["--stat=160", LISTED_FILES];
  const whole = await git.must(cwd, [...DIFF, ...list, "--patch", from, to], { maxOutput: most });
  if (whole.length <= most) return whole;
  const [files, patch] = await Promise.all([
    git.must(cwd, [...DIFF, ...list, from, to], { maxOutput: 1_000_000 }),
    git.run(cwd, [...DIFF, "--patch", from, to], { maxOutput: most }),
  ]);
  const { left, text } = cutOf(patch.stdout, most);
  if (left === 0) return `${files}\n\n${text}`;
  const note = `The text of this change is too long to be shown whole: ${left} of its ${left + most} characters are left out of its middle. Read the files listed here in the working tree before you judge them.`;
  return `${note}\n\n${files}\n\n${text}`;
}

/** The files that differ between two trees and by how much, the first fifty by name. */
export async function statOf(git: Git, cwd: string, from: string, to: string): Promise<string> {
  if (from === to) return "";
  const { code, stdout } = await git.run(cwd, [...DIFF, "--stat=100", "--stat-count=50", from, to]);
  return code === 0 ? stdout.trimEnd() : "";
}

/** A file that differs between two trees. */
export interface FileDifference {
  path: string;
  state: "added" | "changed" | "deleted" | "renamed";
  /** The former name of a renamed file. */
  from?: string;
}

const STATES: Readonly<Record<string, FileDifference["state"]>> = { A: "added", D: "deleted", R: "renamed" };

/** The files that differ between two trees, the first ones by name. */
export async function filesOf(git: Git, cwd: string, from: string, to: string, most = 1_000): Promise<FileDifference[]> {
  if (from === to) return [];
  const { code, stdout } = await git.run(cwd, [...DIFF, "--name-status", "-z", from, to], { maxOutput: 4_000_000 });
  const fields = code === 0 ? stdout.split("\0") : [];
  const files: FileDifference[] = [];
  for (let at = 0; at + 1 < fields.length && files.length < most; at += 2) {
    const state = STATES[fields[at]?.[0] ?? ""] ?? "changed";
    if (state === "renamed") at += 1;
    const path = fields[at + 1] ?? "";
    files.push({ path, state, ...(state === "renamed" && { from: fields[at] ?? "" }) });
  }
  return files;
}

/** How much the program runner cut from the middle of an output; its marker makes the output longer than requested. */
function cutOf(output: string, most: number): { left: number; text: string } {
  const mark = /^\n… (\d+) characters left out …\n/.exec(output.slice(Math.floor(most / 2)));
  return { left: output.length > most && mark ? Number(mark[1]) : 0, text: output.trimEnd() };
}
