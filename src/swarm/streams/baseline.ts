import type { CheckEvidence } from "../../protocol/runs.ts";

/** A program that is not there, as shells and launchers tell it. */
const MISSING =
  /(?:command )?not found\s*$|: No such file or directory\s*$|No module named ['"]?[\w.]+['"]?\s*$|no such (?:sub)?command|is not installed|[Mm]issing script/m;
const NOT_EXECUTED = new Set([126, 127]);

/** Whether a check could not even begin, for want of a program. */
export function cannotRun({ ending, exitCode, tail }: Pick<CheckEvidence, "ending" | "exitCode" | "tail">): boolean {
  if (ending === "not-started") return true;
  if (ending !== "exited" || exitCode === 0 || exitCode === null) return false;
  return NOT_EXECUTED.has(exitCode) || (tail.length < 2_000 && MISSING.test(tail));
}

/**
 * Why a check that does not pass is not held against a run: it was the same on the commit that the run began from. One that
 * failed there and tells of something else now, or of nothing at all, is held against it.
 */
export function excuseOf(now: CheckEvidence, before: CheckEvidence | undefined): CheckEvidence["excused"] {
  if (before === undefined || isGreen(now) || isGreen(before)) return undefined;
  if (cannotRun(before)) return cannotRun(now) ? "cannot run" : undefined;
  const known = new Set(complaints(before.tail));
  const told = complaints(now.tail);
  return told.length > 0 && told.every((line) => known.has(line)) && now.ending === before.ending ? "failed before" : undefined;
}

/** Whether it passes, and on the tree as it is. */
export function isGreen({ ending, exitCode, changed }: Pick<CheckEvidence, "ending" | "exitCode" | "changed">): boolean {
  return ending === "exited" && exitCode === 0 && changed === undefined;
}

const COMPLAINT = /fail|error|exception|panic|not ok|✗|✘|×|✖|cannot|could not|unresolved|undefined|undeclared|assert|Traceback/i;

/** The lines that tell of something wrong, without what differs from one time and place to the next. */
function complaints(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => COMPLAINT.test(line))
    .map((line) =>
      line
        // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
        .replace(/\u001b\[[0-9;]*m/g, "")
        .replace(/worktrees\/[\w-]+/g, "worktrees/_")
        .replace(/0x[0-9a-f]+|\d+/gi, "0")
        .trim(),
    );
}
