import type { Git } from "./command.ts";

const DIFF = ["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M"];
const PATCH_CHARACTERS = 120_000;
/** So many files are listed; a summary of all of them ends the list. */
const LISTED_FILES = "--stat-count=1000";

/**
 * The difference of two trees, as a reviewer reads it: the list of its files whole, and as much of its text as there is room
 * for. It is cut here and nowhere else, so that what it says of its own length is true.
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

/** How much the runner of programs has cut out of the middle of an output, which is then longer than was asked for by its mark. */
function cutOf(output: string, most: number): { left: number; text: string } {
  const mark = /^\n… (\d+) characters left out …\n/.exec(output.slice(Math.floor(most / 2)));
  return { left: output.length > most && mark ? Number(mark[1]) : 0, text: output.trimEnd() };
}
