import { existsSync } from "node:fs";
import { join } from "node:path";
import { quotedForShell } from "../lib/invocation.ts";
import { smallTextAt } from "../lib/pinned/read.ts";

/** An unfinished operation in a checkout. */
export interface Operation {
  what: string;
  /** How its owner can continue or abort it. */
  commands: readonly string[];
}

const either = (name: string): Pick<Operation, "commands"> => ({
  commands: [`git ${name} --continue   # or: git ${name} --abort`],
});

/** The operation in progress, judging by the files that git keeps for it; undefined if there is none. */
export function operationIn(gitDir: string, locks: readonly string[]): Operation | undefined {
  const has = (...names: string[]) => names.some((name) => existsSync(join(gitDir, name)));
  const lock = locks.find((file) => existsSync(file));
  if (lock !== undefined)
    return {
      what: `another git is at work there, or was cut off (${lock} exists)`,
      commands: [`rm ${quotedForShell(lock)}   # only if no git is running there`],
    };
  if (has("rebase-apply/applying")) return { what: "patches are being applied there (git am)", ...either("am") };
  if (has("rebase-merge", "rebase-apply")) return { what: "a rebase is under way there", ...either("rebase") };
  if (has("MERGE_HEAD")) return { what: "a merge is under way there", ...either("merge") };
  if (has("CHERRY_PICK_HEAD")) return { what: "a cherry-pick is under way there", ...either("cherry-pick") };
  if (has("REVERT_HEAD")) return { what: "a revert is under way there", ...either("revert") };
  if (has("sequencer")) {
    const name = /^revert\b/.test(smallTextAt(join(gitDir, "sequencer", "todo")) ?? "") ? "revert" : "cherry-pick";
    return { what: `a ${name} of several commits is under way there`, ...either(name) };
  }
  if (has("BISECT_LOG", "BISECT_START")) return { what: "a bisect is under way there", commands: ["git bisect reset"] };
  if (has("SQUASH_MSG", "MERGE_MSG"))
    return { what: "a change is prepared there and not committed", commands: ["git commit   # or: git reset --merge"] };
  return undefined;
}
