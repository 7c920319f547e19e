import { join } from "node:path";
import { messageOf, UserError } from "../lib/errors.ts";
import { quotedForShell } from "../lib/invocation.ts";
import { type Checkout, type Move, surveyMove } from "./checkout.ts";
import { undoMove } from "./half-moved.ts";
import { operationIn } from "./operations.ts";
import { deleteRefs, isAncestor } from "./refs.ts";
import { openRepo, type Repo } from "./repository.ts";

const MAX_NAMED = 20;

/** Why a result was not merged, and the commands for doing it by hand. */
export interface NotApplied {
  why: string;
  commands: readonly string[];
}

export interface ApplyDeps {
  repo: Repo;
  /** The run's branch, and the commit it started from. */
  branch: string;
  base: string;
  /** The ref that records the move of the checkout before it begins. */
  notes: string;
}

/**
 * Merges the run's branch into the user's checkout, or says why not. The merge commit is created beside the checkout, which
 * is then fast-forwarded; git does that only if nothing is in the way, so there is never a merge to abort.
 */
export async function applyBranch({ repo, branch, base, notes }: ApplyDeps): Promise<NotApplied | undefined> {
  const git = repo.git.with({ writable: [repo.root] });
  const merge = `git merge ${branch}`;
  const now = await openRepo(repo.git, join(repo.root, repo.prefix)).catch((error: unknown) => {
    if (error instanceof UserError) return messageOf(error);
    throw error;
  });
  if (typeof now === "string") return { why: now, commands: [merge] };
  const gitDir = await git.must(repo.root, ["rev-parse", "--absolute-git-dir"]);
  const place: Checkout = { git, root: repo.root, gitDir };
  const left = await finishEarlier(place, notes);
  if (left !== undefined) return { why: left, commands: ["git status", merge] };
  if (!now?.head) return { why: "the checkout has no commit to merge into", commands: [`git switch ${branch}`] };
  if (await isAncestor(git, repo.root, branch, "HEAD")) return undefined;
  const locks = [
    ...["index.lock", "HEAD.lock"].map((name) => join(gitDir, name)),
    ...(now.branch === null ? [] : [join(repo.commonDir, `refs/heads/${now.branch}.lock`)]),
  ];
  const underWay = operationIn(gitDir, locks);
  if (underWay) return { why: underWay.what, commands: [...underWay.commands, merge] };
  if (now.branch === null)
    return { why: "the checkout is on no branch (detached head)", commands: ["git switch <branch>", merge] };
  if (!(await isAncestor(git, repo.root, base, "HEAD")))
    return {
      why: `${now.branch} no longer holds ${base.slice(0, 12)}, the commit the run began from: it was reset, amended or rebased since`,
      commands: [`git cherry-pick ${base.slice(0, 12)}..${branch}`],
    };
  const merged = await mergeBeside(place, repo.identity, branch);
  if ("why" in merged) return { why: merged.why, commands: [merge] };
  return moveTo(place, { from: now.head, to: merged.commit }, { notes, merge });
}

/** The merge commit, created without touching the checkout. */
async function mergeBeside(
  { git, root }: Checkout,
  identity: readonly string[],
  branch: string,
): Promise<{ commit: string } | { why: string }> {
  if (await isAncestor(git, root, "HEAD", branch)) return { commit: await git.must(root, ["rev-parse", branch]) };
  const tried = await git.run(root, ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "HEAD", branch]);
  const [tree = "", ...files] = tried.stdout.split("\0").filter((part) => part !== "");
  if (tried.code === 1) return { why: `both sides changed ${files.slice(0, 20).join(", ")}, and git cannot settle it` };
  if (tried.code !== 0) return { why: `git cannot merge it beside the checkout: ${tried.output.trim().slice(-400)}` };
  const parents = ["-p", "HEAD", "-p", branch];
  const message = `Merge branch '${branch}'\n`;
  return { commit: await git.must(root, [...identity, "commit-tree", tree, ...parents], { input: message }) };
}

async function moveTo(
  place: Checkout,
  { from, to }: Move,
  { notes, merge }: { notes: string; merge: string },
): Promise<NotApplied | undefined> {
  const { git, root } = place;
  const { files, forget: drop } = await surveyMove(place, { from, to });
  drop();
  const inTheWay = files.filter(({ state }) => state !== "from").map(({ file }) => file);
  if (inTheWay.length > 0)
    return blocked(`in the way, changed or untracked: ${inTheWay.slice(0, MAX_NAMED).join(", ")}`, inTheWay, merge);
  const note = [`update ${notes}/from ${from}`, `update ${notes}/to ${to}`];
  await git.must(root, ["update-ref", "--stdin"], { input: `${note.join("\n")}\n` });
  const args = ["-c", "core.quotePath=false", "merge", "-q", "--ff-only", "--no-autostash", "--no-overwrite-ignore", to];
  const moved = await git.run(root, args);
  const failed = moved.code === 0 ? undefined : await undoMove(place, { from, to });
  if (failed === undefined) await forget(place, notes);
  if (moved.code === 0) return undefined;
  const why = `git says: ${moved.output.trim().slice(-600)}${failed === undefined ? "" : `; ${failed}`}`;
  return blocked(
    why,
    [...moved.output.matchAll(/^\t(.+)$/gm)].map(([, file = ""]) => file),
    merge,
  );
}

/** The user's files are in the way: how to stash them, merge, and restore them. */
function blocked(why: string, files: readonly string[], merge: string): NotApplied {
  if (files.length === 0 || files.length > MAX_NAMED) return { why, commands: [merge] };
  return { why, commands: [`git stash push --all -- ${files.map(quotedForShell).join(" ")}`, merge, "git stash pop"] };
}

/** Reverts an interrupted move of the checkout; returns the reason if that is impossible. */
async function finishEarlier(place: Checkout, notes: string): Promise<string | undefined> {
  const { git, root } = place;
  const noted = await git.run(root, ["rev-parse", `${notes}/from`, `${notes}/to`, "HEAD"]);
  const [from = "", to = "", head = ""] = noted.stdout.trim().split("\n");
  if (noted.code !== 0) return undefined;
  const why = head === from ? await undoMove(place, { from, to }) : undefined;
  if (why === undefined) await forget(place, notes);
  return why;
}

async function forget({ git, root }: Checkout, notes: string): Promise<void> {
  await deleteRefs(git, root, [`${notes}/from`, `${notes}/to`]);
}
