import { z } from "zod";
import { phaseOf, revisions } from "../pipeline/kind.ts";
import { total } from "../pipeline/most-calls.ts";
import { AgentName, Condition, Iterations, Keyword, OnExhausted } from "../pipeline/schema.ts";
import { lastRounds } from "../review/last-round.ts";
import { createLoops, type Reviewed, type Reviewer } from "../review/loop.ts";
import { reviewersOf, testersOf } from "../review/reviewers.ts";
import { readVerdict } from "../review/verdict.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { NotApproved } from "../run/journal.ts";
import { fixerSession, reviewerKey, roundKeys, secondLook } from "../run/keys.ts";
import { passed } from "../streams/checks.ts";
import { openMergedTree } from "../streams/merged-tree.ts";
import { implement } from "./implement.ts";
import { phaseKind } from "./kind.ts";
import { fixPrompt, reviewPrompt } from "./prompts.ts";

const name = "cross-model-review";

const schema = z.strictObject({
  phase: z.literal(name),
  agent: AgentName,
  fixAgent: AgentName,
  maxIterations: Iterations,
  approvalKeyword: Keyword,
  onExhausted: OnExhausted,
  condition: Condition.optional(),
});
type CrossModelPhase = z.infer<typeof schema>;

/** Has another model review everything together, and the fixing agent meet its findings. */
export const crossModelReview = phaseKind({
  name,
  schema,
  needs: implement.name,
  members: (phase) => [
    { name: phase.agent, duty: "review", label: `reviews, ${revisions(phase)}`, review: true },
    { name: phase.fixAgent, duty: "build", label: "fixes", key: "fixAgent" },
  ],
  /** Those who approved before are asked only about what a fix has changed. */
  mostCalls(phase, { pipeline }) {
    const built = phaseOf(pipeline, implement);
    const others = [...(built?.reviews ?? []), ...(built?.qa ? [built.qa] : [])];
    const fixes = total([phase, ...others]);
    return 1 + fixes + others.length * fixes + fixes;
  },
  compares: ({ agent }, pipeline) => ({ builder: phaseOf(pipeline, implement)?.agent, reviewer: agent }),
  firstAsked: ({ agent }, { pipeline, cwd }) => [
    { key: roundKeys(reviewerKey(name, agent), 1).review, agent, duty: "review", model: pipeline.reviewModel, cwd },
  ],
  reviewers: ({ agent }) => [{ key: reviewerKey(name, agent), agent }],
  whySkipped: (_, { tree, baseTree }) => (tree === baseTree ? "nothing was changed" : undefined),
  run: runCrossModelReview,
  documents: () => [`${name}.md`],
  askAgain: ({ onExhausted }, steps) => lastRounds(steps, () => onExhausted === "fail"),
});

async function runCrossModelReview(context: RunContext, phase: CrossModelPhase, progress: Progress): Promise<Progress> {
  const { pipeline } = context;
  const built = phaseOf(pipeline, implement);
  const reviewer: Reviewer = {
    key: reviewerKey(name, phase.agent),
    agent: phase.agent,
    maxIterations: phase.maxIterations,
    approvalKeyword: phase.approvalKeyword,
    onExhausted: phase.onExhausted,
  };
  const testers = testersOf(secondLook(name), built?.qa);
  // A fix voids earlier approvals, so whoever approved a part then looks at the whole.
  const others = [...reviewersOf(secondLook(name), built?.reviews ?? []), ...testers].map(
    (each): Reviewer => ({
      ...each,
      clarificationAgent: undefined,
      clarificationKeyword: undefined,
      approvedBefore: progress.tree,
    }),
  );
  const result = openMergedTree(context, name, progress.tree);
  const replies: string[] = [];
  await result.check();

  const loops = createLoops({
    reviewers: [reviewer, ...others],
    phase: name,
    stream: null,
    record: context.recordLoop,
    work: reviewedWhole({
      context,
      phase,
      progress,
      result,
      isFirst: ({ key }) => key === reviewer.key,
      isTester: ({ key }) => testers.some((tester) => tester.key === key),
      onReply: (heading, text) => replies.push(`## ${heading}\n\n${text}`),
    }),
  });
  const wentOn = await loops.run();
  loops.close();
  context.documents.write(`${name}.md`, `Review by ${phase.agent}`, replies.join("\n\n"), context.served(name));
  if (!wentOn) throw new NotApproved(`${name}: ${phase.agent} did not approve`);
  return { ...progress, tree: result.tree() };
}

interface Whole {
  context: RunContext;
  phase: CrossModelPhase;
  progress: Progress;
  result: ReturnType<typeof openMergedTree>;
  isFirst: (reviewer: Reviewer) => boolean;
  isTester: (reviewer: Reviewer) => boolean;
  onReply: (heading: string, text: string) => void;
}

/** The result of all streams, as reviewers judge it and the fixing agent changes it. */
function reviewedWhole({ context, phase, progress, result, isFirst, isTester, onReply }: Whole): Reviewed {
  const { caller, journal, about, pipeline, workplace } = context;
  const base = { phase: name, cwd: workplace.workspace.cwd };
  return {
    state: result.tree,
    async review({ reviewer, number, findings }) {
      const { agent, approvalKeyword } = reviewer;
      const keys = roundKeys(reviewer.key, number);
      const reply = await caller.ask({
        ...base,
        key: keys.review,
        agent,
        duty: isTester(reviewer) ? "qa" : "review",
        model: isFirst(reviewer) ? pipeline.reviewModel : pipeline.primaryModel,
        prompt: reviewPrompt({
          about,
          spec: progress.spec,
          artefact: { diff: await result.diffFrom(progress.baseTree), tree: result.tree() },
          evidence: result.evidence(),
          findings,
          approvalKeyword,
        }),
        verdict: (text) => readVerdict(text, approvalKeyword),
      });
      if (isTester(reviewer)) await result.afterTester(keys);
      onReply(`${agent}, round ${number}`, reply.ok ? reply.text : `No verdict: ${reply.reason}`);
      return reply;
    },
    veto: (reviewer) =>
      isTester(reviewer) && !passed(result.evidence())
        ? "The runtime's own record of this tree does not bear this out."
        : undefined,
    async revise({ reviewer: { key, agent }, number, findings }) {
      const keys = roundKeys(key, number);
      const reply = await caller.ask({
        ...base,
        key: keys.fix(phase.fixAgent),
        agent: phase.fixAgent,
        duty: "build",
        model: pipeline.primaryModel,
        session: fixerSession(journal.runId),
        prompt: fixPrompt(progress.spec, agent, findings.join("\n\n"), result.evidence()),
      });
      if (reply.ok) await result.commit(keys.commit, `Meet the findings of ${agent}\n`);
      return reply;
    },
  };
}
