import { fixPrompt, reviewPrompt } from "../agents/prompts.ts";
import { passed } from "../checks/checks.ts";
import type { Progress, RunContext } from "../context/context.ts";
import type { Approver, Member } from "../pipeline/kind.ts";
import { modelOn } from "../pipeline/named-models.ts";
import { createLoops, type Reviewed, type Reviewer } from "../review/loop.ts";
import { readVerdict } from "../review/verdict.ts";
import { fixerSession, qaKey, reviewerKey, roundKeys, secondLook } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";
import { openMergedTree } from "../streams/merged-tree.ts";

/** A reviewer of the merged result. */
interface ReviewerRole {
  reviewer: Reviewer;
  duty: Approver["duty"];
  on?: Member["on"];
}

/** How a phase reviews the merged result of all streams. */
export interface WholeReview {
  /** The phase's id. */
  id: string;
  /** Reviews first; earlier approvers review again what is changed then. */
  first: Reviewer;
  /** Judges in place of an agent. */
  judge?: (result: MergedTree) => Reply;
  on?: Member["on"];
  /** The agent that fixes what does not pass. */
  fixAgent: string;
}

export type MergedTree = ReturnType<typeof openMergedTree>;

/** Takes the merged result through a review, and has the fixing agent address its findings. */
export async function reviewWhole(context: RunContext, progress: Progress, whole: WholeReview) {
  const { id, first, on } = whole;
  const roles: ReviewerRole[] = [{ reviewer: first, duty: "review", ...(on && { on }) }, ...earlierApprovers(whole, progress)];
  const result = openMergedTree(context, id, progress.tree);
  const replies: string[] = [];
  await result.check();
  const loops = createLoops({
    reviewers: roles.map(({ reviewer }) => reviewer),
    phase: id,
    stream: null,
    record: context.recordLoop,
    work: reviewedWhole({
      ...{ context, progress, whole, result },
      roleOf: ({ key }) => roles.find(({ reviewer }) => reviewer.key === key)!,
      onReply: (heading, text) => replies.push(`## ${heading}\n\n${text}`),
    }),
  });
  const wentOn = await loops.run();
  loops.close();
  return { wentOn, tree: result.tree(), replies };
}

/** A fix voids earlier approvals, so those who approved a part review the whole. */
function earlierApprovers({ id, first, on }: WholeReview, { approvers, tree }: Progress): ReviewerRole[] {
  const others = approvers.filter((each) => each.agent !== first.agent || each.duty !== "review" || each.on !== on);
  return others.map(({ duty, on: model, ...approver }, index) => {
    const count = others.slice(0, index + 1).filter((each) => each.agent === approver.agent && each.duty === duty).length;
    const prefix = secondLook(id);
    const key = duty === "qa" ? qaKey(prefix, approver.agent) : reviewerKey(prefix, approver.agent, count);
    return { reviewer: { ...approver, key, approvedBefore: tree }, duty, ...(model && { on: model }) };
  });
}

interface ReviewedWholeDeps {
  context: RunContext;
  progress: Progress;
  whole: WholeReview;
  result: MergedTree;
  roleOf: (reviewer: Reviewer) => ReviewerRole;
  onReply: (heading: string, text: string) => void;
}

/** The merged result, as it is reviewed and as the fixing agent changes it. */
function reviewedWhole({ context, progress, whole, result, roleOf, onReply }: ReviewedWholeDeps): Reviewed {
  const { caller, journal, about, pipeline, workplace } = context;
  const { id, first, judge, fixAgent } = whole;
  const base = { phase: id, cwd: workplace.workspace.cwd };
  const isTester = (reviewer: Reviewer) => roleOf(reviewer).duty === "qa";

  async function ask(reviewer: Reviewer, number: number, findings: readonly string[]): Promise<Reply> {
    const { agent, approvalKeyword } = reviewer;
    const { duty, on } = roleOf(reviewer);
    return caller.ask({
      ...base,
      key: roundKeys(reviewer.key, number).review,
      agent,
      duty,
      model: modelOn(pipeline, on),
      prompt: reviewPrompt({
        about,
        spec: progress.spec,
        artefact: { diff: await result.diffFrom(progress.baseTree), tree: result.tree() },
        evidence: result.evidence(),
        findings,
        approvalKeyword,
      }),
      verdict: (text) => readVerdict(text, approvalKeyword),
      meanwhile: () => result.precomputeSummary(progress.baseTree),
    });
  }

  return {
    state: result.tree,
    async review({ reviewer, number, findings }) {
      const reply = judge && reviewer.key === first.key ? judge(result) : await ask(reviewer, number, findings);
      if (isTester(reviewer)) await result.afterTester(roundKeys(reviewer.key, number));
      onReply(`${reviewer.agent}, round ${number}`, reply.ok ? reply.text : `No verdict: ${reply.reason}`);
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
        key: keys.fix(fixAgent),
        agent: fixAgent,
        duty: "build",
        model: pipeline.primaryModel,
        session: fixerSession(journal.runId, id),
        prompt: fixPrompt(progress.spec, agent, findings.join("\n\n"), result.evidence()),
      });
      if (reply.ok) await result.commit(keys.commit, `Address the findings of ${agent}\n`);
      return reply;
    },
  };
}
