import { expect, test } from "vitest";
import {
  attemptSession,
  belongsToRound,
  checksKey,
  draftKey,
  engineerSession,
  fixerSession,
  implementKeys,
  qaKey,
  questionKeys,
  RUN_CHECKS,
  recordKeys,
  reviewerKey,
  roundKeys,
  runKeys,
  secondLook,
  streamKeys,
  tasksKey,
  turnOwner,
} from "../../src/swarm/steps/keys.ts";

const TREE = "0123456789abcdef0123456789abcdef01234567";

test("a step is called what it was called in every version, so that a run of an older one finds its finished steps", () => {
  const stream = streamKeys("implement", 2);
  const round = roundKeys(reviewerKey(stream.prefix, "eng-code-reviewer", 2), 3);
  expect({
    run: runKeys,
    phase: recordKeys.phase("spec"),
    loop: recordKeys.loop("spec/review:pm-reviewer"),
    stream: recordKeys.stream(2),
    note: recordKeys.note(TREE),
    draft: draftKey("spec", "pm"),
    tasks: tasksKey("decompose", "pm", 1),
    question: questionKeys("design/draft:designer", 1),
    mergedChecks: checksKey(RUN_CHECKS, TREE),
    streamChecks: checksKey(stream.prefix, TREE),
    reviewer: reviewerKey("spec", "pm-reviewer"),
    crossModelReviewer: reviewerKey("cross-model-review", "cross-model-reviewer"),
    secondLook: reviewerKey(secondLook("cross-model-review"), "eng-code-reviewer"),
    secondQa: qaKey(secondLook("cross-model-review"), "tester"),
    qa: qaKey(stream.prefix, "tester"),
    round: { ...round, revise: round.revise("pm"), fix: round.fix("engineer") },
    result: implementKeys("implement").result,
    turn: implementKeys("implement").turn(4),
    open: stream.open,
    streamDraft: stream.draft,
    commit: stream.commit(1),
    afterChecks: stream.afterChecks(1),
    merge: stream.merge(1),
    conflict: stream.conflict(1),
    settle: stream.settle(1, 2),
    sync: stream.sync(1),
    mend: stream.mend(1),
    undo: stream.undo(1),
    owner: turnOwner("r_1", "spec/draft:pm"),
  }).toEqual({
    run: {
      commits: "run/commits",
      base: "run/base",
      checkout: "run/checkout",
      decisions: "run/decisions",
      apply: "run/apply",
      summary: "run/summary",
      prepare: "run/prepare",
      baseline: "run/baseline",
      trial: "run/trial",
    },
    phase: "phase:spec",
    loop: "loop:spec/review:pm-reviewer",
    stream: "stream:2",
    note: "note:0123456789ab",
    draft: "spec/draft:pm",
    tasks: "decompose/tasks:pm/1",
    question: { clarify: "design/draft:designer/clarify/1", answered: "design/draft:designer/answered/1" },
    mergedChecks: "run/checks/0123456789ab",
    streamChecks: "implement/stream-2/checks/0123456789ab",
    reviewer: "spec/review:pm-reviewer",
    crossModelReviewer: "cross-model-review/review:cross-model-reviewer",
    secondLook: "cross-model-review/again/review:eng-code-reviewer",
    secondQa: "cross-model-review/again/qa:tester",
    qa: "implement/stream-2/qa:tester",
    round: {
      review: "implement/stream-2/review:eng-code-reviewer~2/3",
      clarify: "implement/stream-2/review:eng-code-reviewer~2/3/clarify",
      revise: "implement/stream-2/review:eng-code-reviewer~2/3/revise:pm",
      fix: "implement/stream-2/review:eng-code-reviewer~2/3/fix:engineer",
      commit: "implement/stream-2/review:eng-code-reviewer~2/3/commit",
      tidy: "implement/stream-2/review:eng-code-reviewer~2/3/tidy",
      after: "implement/stream-2/review:eng-code-reviewer~2/3/after",
    },
    result: "implement/result",
    turn: "implement/turn/4",
    open: "implement/stream-2/open",
    streamDraft: "implement/stream-2/draft",
    commit: "implement/stream-2/commit/1",
    afterChecks: "implement/stream-2/commit/1/after-checks",
    merge: "implement/stream-2/merge/1",
    conflict: "implement/stream-2/conflict/1",
    settle: "implement/stream-2/conflict/1/settle/2",
    sync: "implement/stream-2/sync/1",
    mend: "implement/stream-2/mend/1",
    undo: "implement/stream-2/undo/1",
    owner: "r_1/spec/draft:pm",
  });
});

test("an agent's session is found again by the same id", () => {
  expect([
    attemptSession("r_1", "spec/draft:pm", 1),
    engineerSession("r_1", 2),
    fixerSession("r_1", "cross-model-review"),
  ]).toEqual(["swarm-r_1-66bd83dbe9b24544", "swarm-r_1-1dc4fef329d78392", "swarm-r_1-c58a23a86dd7200b"]);
});

test("the steps of a round are told from those of another whose number begins the same", () => {
  const { review, clarify } = roundKeys(reviewerKey("spec", "pm-reviewer"), 1);
  expect([review, clarify].map((step) => belongsToRound(step, review))).toEqual([true, true]);
  expect(belongsToRound(roundKeys(reviewerKey("spec", "pm-reviewer"), 12).review, review)).toBe(false);
});
