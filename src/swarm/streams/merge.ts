import { z } from "zod";
import { diffOf } from "../../git/diff.ts";
import { beginMerge, dropMerges, type Merge, mergeInto, unsettled } from "../../git/repository.ts";
import { UserError } from "../../lib/errors.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import { conflictPrompt, describeTask, mendPrompt } from "../phases/prompts.ts";
import { MAX_CONFLICTS, MAX_MERGE_FIXES, MAX_SETTLINGS } from "../pipeline/limits.ts";
import type { RunContext } from "../run/context.ts";
import { RunFailed } from "../run/journal.ts";
import type { Workplace } from "../run/workspace.ts";
import { passed } from "./checks.ts";
import { review, type Stream, title } from "./stream.ts";

const Merged = z.object({ tree: z.string(), commit: z.string(), conflicts: z.array(z.string()) });
const Begun = z.object({ files: z.array(z.string()), ours: z.string(), theirs: z.string() });

/** How much of each side of a conflict its engineer is shown. */
const SIDE_CHARACTERS = 30_000;

export interface MergeDeps {
  context: RunContext;
  workplace: Extract<Workplace, { kind: "branch" }>;
  /** The stream's worktree and the commit it began from. */
  path: string;
  base: string;
}

interface Result {
  tree: string;
  commit: string;
  evidence: CheckEvidence[];
}

/**
 * Merges a stream into the run's branch and checks the result. Conflicts, and what the merge broke, go to the stream's engineer.
 * Of a stream that fails at that nothing stays on the branch.
 */
export async function mergeStream(stream: Stream, parts: MergeDeps): Promise<Result> {
  const merges: Merge[] = [];
  try {
    return await mergeAndMend(stream, parts, merges);
  } catch (error) {
    if ((error instanceof RunFailed || error instanceof UserError) && merges.length > 0) await undo(stream, parts, merges);
    throw error;
  }
}

/** Puts the run's branch back to where it was before a stream's merges. */
async function undo(stream: Stream, { context, workplace }: MergeDeps, merges: readonly Merge[]): Promise<void> {
  const { number } = stream.record;
  const head = { phase: "implement", stream: number, kind: "git" as const, key: `${stream.prefix}/undo/${merges.length}` };
  await context.journal.step(z.string(), head, { merges }, async () => {
    const ref = await workplace.workspace.tidy?.(`undo-${number}-${merges.length}`);
    if (ref) context.note(`what was in the run's tree when the merge of stream ${number} was undone is set aside as ${ref}`);
    return { value: await dropMerges(workplace.workspace.path, workplace.branch, merges), verdict: "undone" };
  });
}

async function mergeAndMend(stream: Stream, { context, workplace, path, base }: MergeDeps, merges: Merge[]): Promise<Result> {
  const { journal, checks } = context;
  const { number } = stream.record;
  const at = { phase: "implement", stream: number, kind: "git" as const };
  const told = describeTask(stream.task);
  let conflicts = 0;
  let fixes = 0;

  for (let round = 1; ; round += 1) {
    const { commit } = stream.state();
    if (commit === null) throw new RunFailed("the stream has no commit");
    const merged = await journal.step(Merged, { ...at, key: `${stream.prefix}/merge/${round}` }, { commit }, async () => {
      const { saved, conflicts: files } = await mergeInto(workplace.repo, {
        path: workplace.workspace.path,
        branch: workplace.branch,
        commit,
        message: `Merge stream ${number}: ${title(stream.task)}`,
      });
      return { value: { ...saved, conflicts: files }, verdict: files.length > 0 ? "conflict" : "merged" };
    });

    if (merged.conflicts.length > 0) {
      if (conflicts >= MAX_CONFLICTS) throw new RunFailed(`its conflicts could not be settled: ${merged.conflicts.join(", ")}`);
      conflicts += 1;
      const begun = await journal.step(
        Begun,
        { ...at, key: `${stream.prefix}/conflict/${round}` },
        { onto: merged.commit },
        async () => {
          const files = await beginMerge(path, merged.commit);
          const [ours, theirs] = await Promise.all([
            diffOf(path, base, commit, { most: SIDE_CHARACTERS }),
            diffOf(path, base, merged.commit, { most: SIDE_CHARACTERS }),
          ]);
          return { value: { files: files.length > 0 ? files : merged.conflicts, ours, theirs } };
        },
      );
      await settleConflict(stream, path, round, begun, told);
      await stream.settle(`Settle the conflicts of stream ${number}`);
      await review(stream);
      continue;
    }

    merges.push({ commit: merged.commit, of: commit });
    const tidy = async () => {
      const ref = await workplace.workspace.tidy?.(`merge-${number}-${round}`);
      if (ref) context.note(`the checks after merging stream ${number} left files, set aside as ${ref}`);
    };
    const own = stream.state();
    const evidence = await checks.run({
      prefix: "run",
      phase: "implement",
      folder: workplace.workspace.cwd,
      tree: merged.tree,
      after: tidy,
    });
    if (passed(evidence) || !passed(own.evidence) || fixes >= MAX_MERGE_FIXES) return { ...merged, evidence };
    fixes += 1;
    await journal.step(Begun, { ...at, key: `${stream.prefix}/sync/${round}` }, { onto: merged.commit }, async () => {
      await beginMerge(path, merged.commit);
      return { value: { files: [], ours: "", theirs: "" } };
    });
    const mended = await stream.engineer(`mend/${round}`, mendPrompt(told, evidence));
    if (!mended.ok) throw new RunFailed(`what its merge broke was not mended: ${mended.reason}`);
    await stream.settle(`Mend stream ${number} after its merge`);
    await review(stream);
  }
}

async function settleConflict(
  stream: Stream,
  path: string,
  round: number,
  begun: z.infer<typeof Begun>,
  told: string,
): Promise<void> {
  let files = begun.files;
  for (let attempt = 1; attempt <= MAX_SETTLINGS; attempt += 1) {
    const reply = await stream.engineer(
      `conflict/${round}/settle/${attempt}`,
      conflictPrompt(told, files, begun.ours, begun.theirs),
    );
    if (!reply.ok) throw new RunFailed(`its conflicts were not settled: ${reply.reason}`);
    files = await unsettled(path, begun.files);
    if (files.length === 0) return;
  }
  throw new RunFailed(`its engineer left conflict markers in ${files.join(", ")}`);
}
