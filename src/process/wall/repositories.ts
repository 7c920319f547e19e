import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { realOf } from "../../lib/real-path.ts";

/**
 * The folders outside a checkout to which its commits are written: for linked worktrees and submodules. Each must refer back
 * to the checkout, so that no file in a project can point at another repository.
 */
export function repositoriesOf(checkout: string): string[] {
  const marker = join(checkout, ".git");
  if (lstatSync(marker, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const text = smallTextAt(marker);
  if (text === undefined || !text.startsWith("gitdir:")) return [];
  const own = realOf(resolve(checkout, text.slice("gitdir:".length).trim()));
  const common = smallTextAt(join(own, "commondir"))?.trim();
  if (common !== undefined) {
    const named = smallTextAt(join(own, "gitdir"))?.trim();
    const repository = realOf(resolve(own, common));
    const isMutual = named !== undefined && realOf(resolve(own, named)) === realOf(marker);
    return isMutual && dirname(own) === join(repository, "worktrees") ? [repository] : [];
  }
  const worktree = worktreeIn(smallTextAt(join(own, "config")) ?? "");
  return worktree !== undefined && realOf(resolve(own, worktree)) === realOf(checkout) ? [own] : [];
}

/** The checkout that a repository's settings name. */
function worktreeIn(settings: string): string | undefined {
  const lines = settings.split("\n").map((line) => line.split("="));
  return lines.find(([key = ""]) => key.trim() === "worktree")?.[1]?.trim();
}
