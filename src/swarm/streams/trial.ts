import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { smallTextAt } from "../../lib/pinned/read.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import { type BranchWorkplace, shareInstalled } from "../run/workspace.ts";
import { isGreen } from "./baseline.ts";
import { breakFiles, importable } from "./broken-sources.ts";

/** What a trial found: how many files were broken, and which checks noticed. */
export const Trial = z.object({
  files: z.number().int(),
  noticed: z.array(z.object({ name: z.string(), noticed: z.boolean() })),
});
export type Trial = z.infer<typeof Trial>;

export interface TrialDeps {
  workplace: BranchWorkplace;
  /** The checks that pass on the commit that the run began from. */
  checks: readonly CheckEvidence[];
  /** Runs one of them in a folder. */
  run: (check: CheckEvidence, folder: string) => Promise<CheckEvidence>;
  signal: AbortSignal;
}

/**
 * Breaks the code in a tree of its own, as far as checks can only have imported it, and looks whether they notice. A check that
 * does not runs other code than the tree's: one that is installed elsewhere, or the checkout's.
 */
export async function tryChecks({ workplace, checks, run, signal }: TrialDeps): Promise<Trial> {
  const { repo, base, folder } = workplace;
  const path = join(folder, "worktrees", "trial");
  const files = await trackedIn(workplace);
  const broken = importable(files, [...checks.map(({ command }) => command), ...scriptsIn(repo.root, repo.prefix)]);
  if (broken.length === 0 || checks.length === 0) return { files: 0, noticed: [] };
  // An earlier life may have been cut off in the middle of it.
  const remove = async () => {
    await repo.git.run(repo.root, ["worktree", "remove", "--force", path], { alone: true });
    if (existsSync(path)) rmSync(path, { recursive: true, force: true });
    await repo.git.run(repo.root, ["worktree", "prune"], { alone: true });
  };
  if (existsSync(path)) await remove();
  try {
    await repo.git.must(repo.root, ["worktree", "add", "-q", "--detach", path, base], { alone: true });
    await shareInstalled(workplace, path);
    const count = await breakFiles(path, broken, signal);
    const noticed: Trial["noticed"] = [];
    for (const check of checks) {
      const { name } = check;
      noticed.push({ name, noticed: !isGreen(await run(check, join(path, repo.prefix))) });
    }
    return { files: count, noticed };
  } finally {
    await remove();
  }
}

/** The regular files of the commit that the run began from. */
async function trackedIn({ repo, base }: BranchWorkplace): Promise<string[]> {
  const listed = await repo.git.must(repo.root, ["ls-tree", "-r", "-z", "--full-tree", base], { maxOutput: 50_000_000 });
  return listed.split("\0").flatMap((line) => (/^100(?:644|755) /.test(line) ? [line.slice(line.indexOf("\t") + 1)] : []));
}

/** What the project's own short names for commands stand for. */
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
