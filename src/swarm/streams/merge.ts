import { z } from "zod";
import { diffOf } from "../../git/diff.ts";
import { beginMerge, dropMerges, type Merge, mergeInto, unsettled } from "../../git/merges.ts";
import type { Tree } from "../../git/worktrees.ts";
import { UserError } from "../../lib/errors.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import { conflictPrompt, describeTask, mendPrompt } from "../agents/prompts.ts";
import { passed } from "../checks/checks.ts";
import type { RunContext } from "../context/context.ts";
import { MAX_CONFLICTS, MAX_MERGE_FIXES, MAX_SETTLINGS } from "../pipeline/limits.ts";
import { RunFailed } from "../steps/journal.ts";
import { RUN_CHECKS } from "../steps/keys.ts";
import type { BranchWorkplace } from "../workspace/workspace.ts";
import { review, type Stream, title } from "./stream.ts";

const Merged = z.object({ tree: z.string(), commit: z.string(), conflicts: z.array(z.string()) });
type Merged = z.infer<typeof Merged>;
const Begun = z.object({ files: z.array(z.string()), ours: z.string(), theirs: z.string() });

/** How much of each side of a conflict the engineer is shown. */
const SIDE_CHARACTERS = 30_000;

export interface MergeDeps {
  context: RunContext;
  workplace: BranchWorkplace;
  /** The stream's worktree and the commit it began from. */
  tree: Tree;
  base: string;
}

interface Result {
  tree: string;
  commit: string;
  evidence: CheckEvidence[];
}

/**
 * Merges a stream into the run's branch and checks the result. The stream's engineer resolves conflicts and fixes what the merge
 * broke; if that fails, none of the stream's work stays on the branch.
 */
export async function mergeStream(stream: Stream, deps: MergeDeps): Promise<Result> {
  const merges: Merge[] = [];
  try {
    return await mergeAndFix(stream, deps, merges);
  } catch (error) {
    if ((error instanceof RunFailed || error instanceof UserError) && merges.length > 0) await undo(stream, deps, merges);
    throw error;
  }
}

/** Removes a stream's merges from the run's branch. */
async function undo(stream: Stream, { context, workplace }: MergeDeps, merges: readonly Merge[]): Promise<void> {
  const { number } = stream.record;
  const head = { phase: stream.keys.phase, stream: number, kind: "git" as const, key: stream.keys.undo(merges.length) };
  await context.journal.step(z.string(), head, { merges }, async () => {
    const ref = await workplace.workspace.tidy?.(`undo-${number}-${merges.length}`);
    if (ref) context.note(`what was in the run's tree when the merge of stream ${number} was undone is set aside as ${ref}`);
    return { value: await dropMerges(workplace.workspace.tree, merges), verdict: "undone" };
  });
}

async function mergeAndFix(stream: Stream, deps: MergeDeps, merges: Merge[]): Promise<Result> {
  const told = describeTask(stream.task);
  let conflicts = 0;
  let fixes = 0;
  for (let round = 1; ; round += 1) {
    const { commit, evidence: own } = stream.state();
    if (commit === null) throw new RunFailed("the stream has no commit");
    const merged = await mergeOnce(stream, deps, round, commit);
    if (merged.conflicts.length > 0) {
      if (conflicts >= MAX_CONFLICTS) throw new RunFailed(`its conflicts could not be settled: ${merged.conflicts.join(", ")}`);
      conflicts += 1;
      await resolveConflict(stream, deps, round, { commit, merged, told });
    } else {
      merges.push({ commit: merged.commit, of: commit });
      const evidence = await checkMerged(stream, deps, round, merged.tree);
      if (passed(evidence) || !passed(own) || fixes >= MAX_MERGE_FIXES) return { ...merged, evidence };
      fixes += 1;
      await fixMerge(stream, deps, round, { onto: merged.commit, evidence, told });
    }
    await review(stream);
  }
}

const stepOf = (stream: Stream, key: string) => ({
  phase: stream.keys.phase,
  stream: stream.record.number,
  kind: "git" as const,
  key,
});

function mergeOnce(stream: Stream, { context, workplace }: MergeDeps, round: number, commit: string): Promise<Merged> {
  return context.journal.step(Merged, stepOf(stream, stream.keys.merge(round)), { commit }, async () => {
    const { saved, conflicts } = await mergeInto(workplace.repo, workplace.workspace.tree, {
      commit,
      message: `Merge stream ${stream.record.number}: ${title(stream.task)}`,
    });
    return {
      value: { ...saved, tree: await workplace.stateWith(saved.tree), conflicts },
      verdict: conflicts.length > 0 ? "conflict" : "merged",
    };
  });
}

function checkMerged(stream: Stream, { context, workplace }: MergeDeps, round: number, tree: string): Promise<CheckEvidence[]> {
  const { number } = stream.record;
  return context.checks.run({
    prefix: RUN_CHECKS,
    phase: stream.keys.phase,
    folder: workplace.workspace.cwd,
    changed: workplace.workspace.changed,
    tree,
    after: async () => {
      const ref = await workplace.workspace.tidy?.(`merge-${number}-${round}`);
      if (ref) context.note(`the checks after merging stream ${number} left files, set aside as ${ref}`);
    },
  });
}

/** Merges the result into the stream's tree, where the engineer fixes it. */
async function fixMerge(
  stream: Stream,
  { context, tree }: MergeDeps,
  round: number,
  { onto, evidence, told }: { onto: string; evidence: readonly CheckEvidence[]; told: string },
): Promise<void> {
  await context.journal.step(Begun, stepOf(stream, stream.keys.sync(round)), { onto }, async () => {
    await beginMerge(tree, onto);
    return { value: { files: [], ours: "", theirs: "" } };
  });
  const mended = await stream.engineer(stream.keys.mend(round), mendPrompt(told, evidence));
  if (!mended.ok) throw new RunFailed(`what its merge broke was not mended: ${mended.reason}`);
  await stream.commitAndCheck(`Mend stream ${stream.record.number} after its merge`);
}

/** Begins the merge in the stream's own tree, where the engineer resolves the conflicts. */
async function resolveConflict(
  stream: Stream,
  { context, tree, base }: MergeDeps,
  round: number,
  { commit, merged, told }: { commit: string; merged: Merged; told: string },
): Promise<void> {
  const onto = merged.commit;
  const begun = await context.journal.step(Begun, stepOf(stream, stream.keys.conflict(round)), { onto }, async () => {
    const files = await beginMerge(tree, onto);
    const [ours, theirs] = await Promise.all([
      diffOf(tree.git, tree.path, base, commit, { most: SIDE_CHARACTERS }),
      diffOf(tree.git, tree.path, base, onto, { most: SIDE_CHARACTERS }),
    ]);
    return { value: { files: files.length > 0 ? files : merged.conflicts, ours, theirs } };
  });
  let files = begun.files;
  for (let attempt = 1; attempt <= MAX_SETTLINGS && files.length > 0; attempt += 1) {
    const prompt = conflictPrompt(told, files, begun.ours, begun.theirs);
    const reply = await stream.engineer(stream.keys.settle(round, attempt), prompt);
    if (!reply.ok) throw new RunFailed(`its conflicts were not settled: ${reply.reason}`);
    files = await unsettled(tree, begun.files);
  }
  if (files.length > 0) throw new RunFailed(`its engineer left conflict markers in ${files.join(", ")}`);
  await stream.commitAndCheck(`Settle the conflicts of stream ${stream.record.number}`);
}
