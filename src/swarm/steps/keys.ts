import { createHash } from "node:crypto";

/**
 * The names of a run's steps and sessions: made here, and parsed nowhere else. A resumed run finds its finished steps by them, so
 * they must never change.
 */

/** The steps of a run outside its phases. */
export const runKeys = {
  base: "run/base",
  prepare: "run/prepare",
  baseline: "run/baseline",
  trial: "run/trial",
  checkout: "run/checkout",
  decisions: "run/decisions",
  commits: "run/commits",
  apply: "run/apply",
  summary: "run/summary",
} as const;

/** The records about a run besides its steps. A phase is named by its id, which for the first of a kind is the kind's name. */
export const recordKeys = {
  phase: (id: string) => `phase:${id}`,
  loop: (reviewerKey: string) => `loop:${reviewerKey}`,
  stream: (number: number) => `stream:${number}`,
  note: (hash: string) => `note:${hash.slice(0, 12)}`,
};

/** The first version of a text. */
export const draftKey = (phase: string, agent: string) => `${phase}/draft:${agent}`;
/** One request for the task list. */
export const tasksKey = (phase: string, agent: string, round: number) => `${phase}/tasks:${agent}/${round}`;

/** A call that returned a question: the call that answers it, and the one that continues with the answer. */
export const questionKeys = (call: string, round: number) => ({
  clarify: `${call}/clarify/${round}`,
  answered: `${call}/answered/${round}`,
});

/** The steps of a round on an ended run. */
export const reopenedKeys = (round: number) => ({
  begin: `reopened/${round}/begin`,
  work: (tried: number) => `reopened/${round}/work/${tried}`,
  commit: (tried: number) => `reopened/${round}/commit/${tried}`,
  end: `reopened/${round}/end`,
});

/** The prefix for checks of merged trees, which belong to no single stream. */
export const RUN_CHECKS = "run";
export const checksKey = (prefix: string, tree: string) => `${prefix}/checks/${tree.slice(0, 12)}`;

/** A reviewer; the same agent a second time in one list is another reviewer. */
export const reviewerKey = (prefix: string, agent: string, occurrence = 1) =>
  `${prefix}/review:${agent}${occurrence > 1 ? `~${occurrence}` : ""}`;
/** The runtime's own checks, as the judge in a phase of their own. */
export const checksJudge = (phase: string) => `${phase}/checks`;
export const qaKey = (prefix: string, agent: string) => `${prefix}/qa:${agent}`;
/** The prefix for reviewers of an earlier phase who review once more. */
export const secondLook = (phase: string) => `${phase}/again`;

/** One round of a reviewer, and what follows from it. */
export const roundKeys = (reviewer: string, round: number) => {
  const review = `${reviewer}/${round}`;
  return {
    review,
    clarify: `${review}/clarify`,
    revise: (agent: string) => `${review}/revise:${agent}`,
    fix: (agent: string) => `${review}/fix:${agent}`,
    commit: `${review}/commit`,
    tidy: `${review}/tidy`,
    after: `${review}/after`,
  };
};

/** Whether a step is a round's review or follows from it. */
export const belongsToRound = (step: string, review: string) => step === review || step.startsWith(`${review}/`);

/** The kind of phase in which streams work. */
export const IMPLEMENT = "implement";
export const implementKeys = (phase: string) => ({
  /** The start of the streams, in a later phase of the kind. */
  begin: `${phase}/begin`,
  result: `${phase}/result`,
  turn: (number: number) => `${phase}/turn/${number}`,
});

/** One stream of `implement`. Streams are numbered across the whole run. */
export const streamKeys = (phase: string, number: number) => {
  const prefix = `${phase}/stream-${number}`;
  return {
    phase,
    prefix,
    open: `${prefix}/open`,
    companionsBegin: `${prefix}/companions`,
    companionsUndo: `${prefix}/companions/undo`,
    draft: `${prefix}/draft`,
    commit: (count: number) => `${prefix}/commit/${count}`,
    mended: (count: number) => `${prefix}/commit/${count}/mended`,
    afterChecks: (count: number) => `${prefix}/commit/${count}/after-checks`,
    merge: (round: number) => `${prefix}/merge/${round}`,
    conflict: (round: number) => `${prefix}/conflict/${round}`,
    settle: (round: number, attempt: number) => `${prefix}/conflict/${round}/settle/${attempt}`,
    sync: (round: number) => `${prefix}/sync/${round}`,
    mend: (round: number) => `${prefix}/mend/${round}`,
    undo: (merges: number) => `${prefix}/undo/${merges}`,
  };
};

/** The session of one attempt at a call. */
export const attemptSession = (runId: string, call: string, attempt: number) => sessionOf(runId, `${call}#${attempt}`);
/** The one session of a stream's engineer. */
export const engineerSession = (runId: string, stream: number) => sessionOf(runId, `stream-${stream}`);
/** The one session of the fixing agent in a phase that reviews everything together. */
export const fixerSession = (runId: string, phase: string) =>
  sessionOf(runId, phase === "cross-model-review" ? "cross-model-fix" : `${phase}-fix`);

/** The owner of a turn's tool calls is its step, so that the next attempt does not repeat what one attempt did. */
export const turnOwner = (runId: string, call: string) => `${runId}/${call}`;
/** The number of an attempt at a step, unique across all lives of its run. */
export const turnAttempt = (life: number, attempt: number) => (life - 1) * 1_000 + attempt;

function sessionOf(runId: string, what: string): string {
  return `swarm-${runId}-${createHash("sha256").update(what).digest("hex").slice(0, 16)}`;
}
