import type { RunStream } from "../../protocol/runs.ts";
import type { UpcomingCall } from "../agents/caller.ts";
import { clarifyPrompt, fixPrompt, reviewPrompt } from "../agents/prompts.ts";
import { describeEvidence, passed } from "../checks/checks.ts";
import type { Progress, RunContext } from "../context/context.ts";
import type { Qa, Review } from "../pipeline/schema.ts";
import type { Reviewed, Reviewer } from "../review/loop.ts";
import { reviewersOf, testersOf } from "../review/reviewers.ts";
import { readVerdict } from "../review/verdict.ts";
import { roundKeys } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";
import type { StreamTree } from "./stream-tree.ts";

/** Every reviewer of a stream, the tester last. */
export function streamReviewers(
  prefix: string,
  { reviews, qa }: { reviews: readonly Review[]; qa?: Qa | undefined },
): Reviewer[] {
  return [...reviewersOf(prefix, reviews), ...testersOf(prefix, qa)];
}

export interface StreamReviewsDeps {
  context: RunContext;
  /** The phase's id. */
  phase: string;
  progress: Progress;
  record: RunStream;
  reviewers: readonly Reviewer[];
  isTester: (reviewer: Reviewer) => boolean;
  /** The task in words. */
  told: string;
  tree: StreamTree;
  /** The engineer addresses findings; its changes are then committed and checked. */
  fix: (key: string, reviewer: Reviewer, prompt: string) => Promise<Reply>;
  /** The agent that implements. */
  engineer: string;
}

/** A stream's tree as its reviewers judge it and its engineer revises it. */
export function reviewedStream(deps: StreamReviewsDeps): { work: Reviewed; firstRounds: UpcomingCall[] } {
  const { context, phase, progress, record, reviewers, isTester, told, tree, fix, engineer } = deps;
  const { caller, about, pipeline } = context;
  const base = { phase, stream: record.number, model: pipeline.primaryModel, cwd: tree.cwd };
  const asked = (reviewer: Reviewer, round: number): UpcomingCall => ({
    ...base,
    key: roundKeys(reviewer.key, round).review,
    agent: reviewer.agent,
    duty: isTester(reviewer) ? "qa" : "review",
  });
  const work: Reviewed = {
    state: () => tree.state().tree,
    async review({ reviewer, number, findings }) {
      const { approvalKeyword, clarificationKeyword } = reviewer;
      const { tree: seen, evidence } = tree.state();
      const reply = await caller.ask({
        ...base,
        ...asked(reviewer, number),
        prompt: reviewPrompt({
          about,
          spec: progress.spec,
          task: told,
          artefact: { diff: await tree.diff(), tree: seen },
          evidence,
          findings,
          approvalKeyword,
          clarificationKeyword,
        }),
        verdict: (text) => readVerdict(text, approvalKeyword, clarificationKeyword),
      });
      if (isTester(reviewer)) await tree.afterTester(number, roundKeys(reviewer.key, number));
      return reply;
    },
    veto(reviewer) {
      const { evidence } = tree.state();
      if (!isTester(reviewer) || passed(evidence)) return undefined;
      const failing = describeEvidence(evidence.filter((each) => each.exitCode !== 0));
      return `The runtime's own record of this tree does not bear out ${reviewer.approvalKeyword}:\n${failing}`;
    },
    clarify: ({ reviewer, number, question }) =>
      caller.ask({
        ...base,
        key: roundKeys(reviewer.key, number).clarify,
        agent: reviewer.clarificationAgent!,
        duty: "plan",
        prompt: clarifyPrompt(about, progress.spec, reviewer.agent, question),
      }),
    revise: ({ reviewer, number, findings, answer }) =>
      fix(
        roundKeys(reviewer.key, number).fix(engineer),
        reviewer,
        fixPrompt(told, reviewer.agent, findings.join("\n\n"), tree.state().evidence, answer),
      ),
  };
  return { work, firstRounds: reviewers.map((reviewer) => asked(reviewer, 1)) };
}
