import { z } from "zod";
import { describeEvidence, fence, passed } from "../checks/checks.ts";
import { total } from "../pipeline/most-calls.ts";
import { AgentName, Condition, Iterations, OnExhausted, REVIEW_DEFAULTS } from "../pipeline/schema.ts";
import { lastRounds } from "../review/last-round.ts";
import { NotApproved } from "../steps/journal.ts";
import { checksJudge } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";
import { openMergedTree } from "../streams/merged-tree.ts";
import { implement } from "./implement.ts";
import { phaseKind } from "./kind.ts";
import { type MergedTree, reviewWhole } from "./whole.ts";

const name = "verify";
/** The approval keyword of the checks. */
const PASSED = "ALL_PASSED";
const standard = { fixAgent: "engineer", maxIterations: REVIEW_DEFAULTS.maxIterations };

/** Runs the checks on the merged result, and has the fixing agent fix it until they pass. */
export const verify = phaseKind({
  name,
  schema: z.strictObject({
    phase: z.literal(name),
    fixAgent: AgentName.default(standard.fixAgent),
    maxIterations: Iterations.default(standard.maxIterations),
    onExhausted: OnExhausted,
    condition: Condition.optional(),
  }),
  standard,
  needs: implement.name,
  members: ({ fixAgent, maxIterations }) => [
    {
      name: fixAgent,
      duty: "build",
      label: `mends what the checks find, at most ${maxIterations} times`,
      key: "fixAgent",
      onDemand: true,
    },
  ],
  mostCalls(phase, { approvers }) {
    const fixes = total([phase, ...approvers]);
    return fixes + approvers.length * fixes;
  },
  whySkipped: (_, { tree, baseTree }) => (tree === baseTree ? "nothing was changed" : undefined),
  async run(context, { id, fixAgent, maxIterations, onExhausted }, progress) {
    const result = openMergedTree(context, id, progress.tree);
    await result.check();
    if (result.evidence().length === 0) {
      context.note(`${id}: no checks were found in this project, so nothing was verified`);
      return progress;
    }
    const first = { key: checksJudge(id), agent: "checks", maxIterations, approvalKeyword: PASSED, onExhausted };
    const whole = { id, first, judge, fixAgent };
    const { wentOn, tree, replies } = await reviewWhole(context, progress, whole);
    context.documents.write(`${name}.md`, "What the checks say of the result", replies.join("\n\n"), context.served(id));
    if (!wentOn) throw new NotApproved(`${id}: the checks do not pass`);
    return { ...progress, tree };
  },
  documents: () => [`${name}.md`],
  /** The checks too: they may have failed for a reason that is gone. */
  askAgain: ({ onExhausted }, steps) => [
    ...lastRounds(steps, () => onExhausted === "fail"),
    ...(onExhausted === "fail" ? steps.filter((step) => step.kind === "checks" && step.verdict === "failed").slice(-1) : []),
  ],
});

function judge(result: MergedTree): Reply {
  const evidence = result.evidence();
  const said = fence(describeEvidence(evidence));
  return { ok: true, text: passed(evidence) ? `${said}\n\n${PASSED}` : said };
}
