import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { z } from "zod";
import { learnCommitStyle, plain, wordCommit } from "../../git/commit-style.ts";
import { setRef } from "../../git/refs.ts";
import type { Repo } from "../../git/repository.ts";
import {
  commitMaker,
  committerOf,
  filesBetween,
  type LineCommit,
  latestMessages,
  lineOf,
  moveBranch,
} from "../../git/rewrite.ts";
import { current } from "../../git/worktrees.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import { quotedForShell } from "../../lib/invocation.ts";
import { realOf } from "../../lib/real-path.ts";
import { statsAt } from "../../lib/stats-at.ts";
import type { RunStream } from "../../protocol/runs.ts";
import { WHOLE_TASK } from "../agents/task-list.ts";
import type { RunContext } from "../context/context.ts";
import { runKeys } from "../steps/keys.ts";
import { companionJournal, treesIn } from "../workspace/companions.ts";
import type { BranchWorkplace } from "../workspace/workspace.ts";
import type { Ending } from "./execute.ts";

const Rewritten = z.object({ tip: z.string(), commit: z.string() });

/** Keeps the original commits of the run's branch. */
export const historyRef = (runId: string) => `refs/swarm/${runId}/history`;

/** Finishes the branch of a run in each of its repositories. */
export async function finishBranches(
  context: RunContext,
  issue: string,
  streams: readonly RunStream[],
  ending: Ending,
): Promise<void> {
  const { workplace } = context;
  if (workplace.kind === "in place" || ending.tree === null) return;
  const { own, others } = await treesIn(workplace, ending.tree);
  await finishBranch(context, issue, streams, { ...ending, tree: own });
  for (const [index, { name, workplace: other }] of workplace.companions.entries()) {
    const there = { ...context, workplace: other, journal: companionJournal(context.journal, name) };
    await finishBranch(there, issue, [], { ...ending, tree: others[index] ?? null });
  }
}

/**
 * Replaces the commits of an ended run's branch, which follow the run's own steps, by those that a maintainer wants to read: one
 * for each stream or one for all, worded in the project's style. The files at its tip stay the same.
 */
async function finishBranch(
  context: RunContext,
  issue: string,
  streams: readonly RunStream[],
  { status, tree }: Ending,
): Promise<void> {
  const { workplace, journal, pipeline, runId } = context;
  if (workplace.kind === "in place" || status !== "done" || tree === null || tree === workplace.baseTree) return;
  const { repo, branch } = workplace;
  const how = pipeline.commits ?? "squash";
  try {
    // Journaled before the branch moves, so that a resumed run moves it to the same commit.
    const head = { key: runKeys.commits, kind: "git" as const, phase: "run", decides: true };
    const { tip, commit } = await journal.step(Rewritten, head, { tree, how }, async () => {
      const at = await tipWithResult(workplace, tree);
      const merged = streams.filter(({ merged }) => merged);
      return { value: { tip: at, commit: await rewrite({ context, workplace, issue, streams: merged, tip: at, tree, how }) } };
    });
    const from = await tipWithResult(workplace, tree);
    await setRef(repo, historyRef(runId), tip);
    if (from !== commit) await moveBranch(repo, branch, { from, to: commit });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    context.note(`${branch} keeps the commits of the run's own steps: ${messageOf(error)}`);
  }
}

/** The tip of the run's branch, which must hold the run's result. */
async function tipWithResult({ workspace }: BranchWorkplace, tree: string): Promise<string> {
  const at = await current(workspace.tree);
  if (at.tree !== tree) throw new UserError("it no longer holds what the run came to");
  return at.commit;
}

interface Rewriting {
  context: RunContext;
  workplace: BranchWorkplace;
  issue: string;
  /** The merged streams. */
  streams: readonly RunStream[];
  tip: string;
  tree: string;
  how: "squash" | "merge";
}

async function rewrite({ context, workplace, issue, streams, tip, tree, how }: Rewriting): Promise<string> {
  const { repo, base, baseTree } = workplace;
  const { git, root } = repo;
  const style = learnCommitStyle(await latestMessages(git, root, base));
  const signer = await committerOf(repo);
  const commit = await commitMaker(repo, tip);
  const throughHook = commitMsgHook(context, workplace);
  const wordMessage = async (text: string, [from, to]: readonly [string, string], more: string[] = []) => {
    const files = await filesBetween(git, root, from, to);
    return throughHook(wordCommit(style, { text, request: issue, files }, { signer, more }));
  };

  if (how === "squash" || streams.length <= 1) {
    const tasks = streams.length > 1 ? [streams.map(({ task }) => `- ${plain(task)}`).join("\n")] : [];
    const text = streams.length === 1 ? textOf(streams[0]!, issue) : issue;
    return commit(tree, [base], await wordMessage(text, [baseTree, tree], tasks));
  }

  /** The new commit for each old one. */
  const rewritten = new Map([[base, base]]);
  let head = base;
  let before = base;
  for (const { last, stream } of groupsOf(await lineOf(git, root, base, tip), streams)) {
    const own = last.parents[1];
    const from = stream && own ? (await git.run(root, ["merge-base", own, before])).stdout.trim() : before;
    const onto = rewritten.get(from);
    if (stream === undefined || own === undefined || onto === undefined) {
      const text = stream ? textOf(stream, issue) : "Address the findings of the reviews";
      head = await commit(last.tree, [head], await wordMessage(text, [before, last.commit]));
    } else {
      const text = textOf(stream, issue);
      const ownTree = await git.must(root, ["rev-parse", `${own}^{tree}`]);
      const work = await commit(ownTree, [onto], await wordMessage(text, [from, own]));
      const isForward = onto === head && ownTree === last.tree;
      head = isForward ? work : await commit(last.tree, [head, work], `Merge "${plain(text)}" into the branch\n`);
    }
    rewritten.set(last.commit, head);
    before = last.commit;
  }
  return head;
}

/** Groups the commits of one stream, which may be merged more than once, and the fixes between streams. */
function groupsOf(line: readonly LineCommit[], streams: readonly RunStream[]) {
  const groups: { last: LineCommit; stream: RunStream | undefined }[] = [];
  for (const commit of line) {
    const number = commit.parents.length > 1 ? Number(/^Merge stream (\d{1,4}):/.exec(commit.subject)?.[1]) : undefined;
    const stream = streams.find((each) => each.number === number);
    const open = groups.at(-1);
    if (open && open.stream === stream) open.last = commit;
    else groups.push({ last: commit, stream });
  }
  return groups;
}

/** The text of a stream's task; the request, if nothing was split into tasks. */
function textOf({ task }: RunStream, issue: string): string {
  return task === WHOLE_TASK.ofSpec || task === WHOLE_TASK.ofRequest ? issue : task;
}

/** Runs the project's commit-msg hook on messages if the pipeline allows it; otherwise a note names the hook once. */
function commitMsgHook(context: RunContext, workplace: BranchWorkplace): (message: string) => Promise<string> {
  const { pipeline, note, runInTree } = context;
  const found = findHook(workplace.repo);
  return async (message) => {
    const hook = await found;
    if (hook === undefined) return message;
    if (pipeline.commitMsgHook !== true) {
      note(
        `the commit-msg hook ${hook} was not run on the branch's commits; with commitMsgHook: true in swarm.config.yaml it is`,
      );
      return message;
    }
    const mark = randomBytes(8).toString("hex");
    const command = [
      'file="$(mktemp)" || exit',
      `printf %s ${quotedForShell(message)} > "$file"`,
      `${quotedForShell(hook)} "$file" || exit`,
      `echo; echo ${mark}`,
      'cat "$file"',
    ].join("\n");
    const { exitCode, output } = await runInTree(command, workplace.workspace.cwd);
    const written = exitCode === 0 ? output.split(`${mark}\n`).at(1)?.trim() : undefined;
    if (written) return `${written}\n`;
    note(
      `the commit-msg hook ${hook} does not accept a message of the branch: ${output.trim().slice(-400) || `exit ${exitCode}`}`,
    );
    return message;
  };
}

/** The hook that git would run for a commit in the checkout. */
async function findHook({ git, root, commonDir }: Repo): Promise<string | undefined> {
  const set = await git.run(root, ["config", "--local", "--type=path", "--get", "core.hooksPath"]);
  const folder = set.code === 0 ? resolve(root, set.stdout.trim()) : join(commonDir, "hooks");
  const hook = join(folder, "commit-msg");
  const stats = statsAt(realOf(hook));
  return stats?.isFile() && (stats.mode & 0o111) !== 0 ? hook : undefined;
}
