import { z } from "zod";
import { current } from "../../git/worktrees.ts";
import { type SwarmTask, WHOLE_TASK } from "../agents/task-list.ts";
import type { Progress, RunContext } from "../context/context.ts";
import { clarifier, reviewMembers, revisions } from "../pipeline/kind.ts";
import { MAX_CONFLICTS, MAX_MERGE_FIXES, MAX_SETTLINGS } from "../pipeline/limits.ts";
import { mostCallsWithReviews } from "../pipeline/most-calls.ts";
import { AgentName, Keyword, Qa, type Review, Reviews } from "../pipeline/schema.ts";
import { isDemanded, lastRounds } from "../review/last-round.ts";
import { reviewersOf } from "../review/reviewers.ts";
import { IMPLEMENT, implementKeys, streamKeys } from "../steps/keys.ts";
import { streamReviewers } from "../streams/reviews.ts";
import { runStreams } from "../streams/streams.ts";
import { phaseKind } from "./kind.ts";

const name = IMPLEMENT;
const standard = { agent: "engineer", parallel: true, reviews: [{ agent: "code-reviewer" }], qa: { agent: "tester" } };

/** Runs every task in a stream of its own. */
export const implement = phaseKind({
  name,
  schema: z.strictObject({
    phase: z.literal(name),
    agent: AgentName.default(standard.agent),
    parallel: z.boolean().default(standard.parallel),
    reviews: Reviews,
    qa: Qa.optional(),
    clarificationAgent: AgentName.optional(),
    clarificationKeyword: Keyword.optional(),
  }),
  standard,
  members: ({ agent, parallel, reviews, qa, clarificationAgent }) => [
    { name: agent, duty: "build", label: parallel ? "implements, streams side by side" : "implements, in order" },
    ...clarifier(clarificationAgent, agent),
    ...reviewMembers(reviews),
    ...(qa ? [{ name: qa.agent, duty: "qa" as const, label: `tests, ${revisions(qa)}` }] : []),
  ],
  approvers: ({ reviews, qa }) => [
    ...reviews.map((review) => ({ ...approverOf(review), duty: "review" as const })),
    ...(qa ? [{ ...qa, duty: "qa" as const }] : []),
  ],
  perTask: true,
  mostCalls: ({ reviews, qa, clarificationAgent }) =>
    mostCallsWithReviews({
      reviews,
      qa,
      asksBack: clarificationAgent !== undefined,
      merging: { calls: MAX_CONFLICTS * MAX_SETTLINGS + MAX_MERGE_FIXES, states: MAX_CONFLICTS + MAX_MERGE_FIXES },
    }),
  workplace: ({ parallel }) => (parallel ? "branch" : "in place"),
  reviewers: ({ id, reviews }) => reviewersOf(id, reviews),
  async run(context, phase, progress) {
    const tasks = progress.tasks.length > 0 ? progress.tasks : [theOnlyTask(progress)];
    const { streams, tip } = await runStreams(context, phase, { ...progress, tasks });
    const tree = await resultingTree(context, phase.id, streams, () => {
      // The reviewer of the whole needs the diff, so compute it early.
      context.workplace.workspace.diff(progress.baseTree, tip.tree).catch(() => undefined);
    });
    return { ...progress, tasks, streams: [...progress.streams, ...streams], tree };
  },
  documents: ({ agent }) => [`${agent}-stream-*.md`],
  askAgain: (phase, steps) =>
    lastRounds(steps, (loop) => {
      const prefix = loop.stream === null ? phase.id : streamKeys(phase.id, loop.stream).prefix;
      return isDemanded(streamReviewers(prefix, phase), loop);
    }),
});

function approverOf({ agent, maxIterations, approvalKeyword, onExhausted }: Review): Qa {
  return { agent, maxIterations, approvalKeyword, onExhausted };
}

/** The task if nothing was split into tasks. */
function theOnlyTask({ spec }: Progress): SwarmTask {
  return {
    id: "T1",
    text: spec ? WHOLE_TASK.ofSpec : WHOLE_TASK.ofRequest,
    acceptanceCriteria: [],
    dependsOn: [],
    frontend: false,
  };
}

function resultingTree({ journal, workplace }: RunContext, id: string, after: unknown, meanwhile: () => void): Promise<string> {
  return journal.step(z.string(), { key: implementKeys(id).result, kind: "git", phase: id }, { after }, async () => {
    if (workplace.kind === "in place") return { value: (await workplace.workspace.save("")).tree };
    const state = current(workplace.workspace.tree);
    meanwhile();
    return { value: await workplace.stateWith((await state).tree) };
  });
}
