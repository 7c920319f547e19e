import { join } from "node:path";
import { z } from "zod";
import { LOCKED, removeWorktree } from "../../git/worktrees.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { type BranchWorkplace, shareInstalled } from "../workspace/workspace.ts";
import { breakFiles, importable } from "./broken-sources.ts";
import { type CheckRecord, Noticed, notices } from "./verdicts.ts";

/** A trial's result: how many files were broken, and which checks noticed. */
export const Trial = z.object({
  files: z.number().int(),
  noticed: z.array(Noticed),
});
export type Trial = z.infer<typeof Trial>;

export interface TrialDeps {
  workplace: BranchWorkplace;
  /** The checks that could notice a change, with their results on the commit that the run began from. */
  checks: readonly CheckRecord[];
  /** Runs one of them in a folder. */
  run: (check: CheckRecord, folder: string) => Promise<CheckRecord>;
  signal: AbortSignal;
}

/**
 * Breaks, in a tree of its own, the code that checks can only have imported, and sees whether they notice. A check that does not
 * is running other code than the tree's: an installed copy, or the checkout's.
 */
export async function tryChecks({ workplace, checks, run, signal }: TrialDeps): Promise<Trial> {
  const { repo } = workplace;
  const files = await trackedIn(workplace);
  const broken = importable(files, [...checks.map(({ command }) => command), ...scriptsIn(repo.root, repo.prefix)]);
  if (broken.length === 0 || checks.length === 0) return { files: 0, noticed: [] };
  return inBaseTree(workplace, async (path) => {
    const count = await breakFiles(path, broken, signal);
    const noticed: Trial["noticed"] = [];
    for (const check of checks) {
      const { name, command } = check;
      noticed.push({ name, command, noticed: notices(await run(check, join(path, repo.prefix)), check) });
    }
    return { files: count, noticed };
  });
}

/** Creates a worktree of the run's base commit with its installed packages, and removes it afterwards. */
export async function inBaseTree<T>(workplace: BranchWorkplace, work: (path: string) => Promise<T>): Promise<T> {
  const { repo, base, folder, name } = workplace;
  const path = join(folder, "worktrees", name === "run" ? "trial" : `trial-${name}`);
  const remove = () => removeWorktree(repo, path, "", { evenWithWork: true });
  // An earlier process may have been cut off in the middle of it.
  await remove();
  try {
    await repo.git.must(repo.root, ["worktree", "add", "-q", ...LOCKED, "--detach", path, base], { alone: true });
    await shareInstalled(workplace, path);
    return await work(path);
  } finally {
    await remove();
  }
}

/** The regular files of the commit that the run began from. */
async function trackedIn({ listed }: BranchWorkplace): Promise<string[]> {
  return (await listed).flatMap((line) => (/^100(?:644|755) /.test(line) ? [line.slice(line.indexOf("\t") + 1)] : []));
}

/** The commands behind the project's npm scripts. */
function scriptsIn(root: string, prefix: string): string[] {
  const text = smallTextAt(join(root, prefix, "package.json"), 1_000_000);
  try {
    const { scripts } = z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(text ?? ""));
    return Object.values(scripts);
  } catch {
    // There is none, or it has no scripts.
    return [];
  }
}
