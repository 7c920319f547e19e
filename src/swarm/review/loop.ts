import type { LoopOutcome, ReviewLoop } from "../../protocol/runs.ts";
import type { Reply } from "../steps/reply.ts";
import { readVerdict } from "./verdict.ts";

/** A reviewer whose approval the work needs. */
export interface Reviewer {
  key: string;
  agent: string;
  maxIterations: number;
  approvalKeyword: string;
  clarificationKeyword?: string | undefined;
  clarificationAgent?: string | undefined;
  onExhausted: "continue" | "fail";
  /** The state it approved before these loops began, so that it is asked only if the work changes. */
  approvedBefore?: string | undefined;
}

export interface Round {
  reviewer: Reviewer;
  /** Counted from 1 over the whole loop. */
  number: number;
  findings: readonly string[];
}

/** The work under review: a text, or a tree. */
export interface Reviewed {
  /** Identifies the exact state of the work. */
  state(): string;
  review(round: Round): Promise<Reply>;
  /** Why an approval of the present state does not count, whatever the reviewer says. */
  veto?(reviewer: Reviewer): string | undefined;
  revise(round: Round & { answer?: string }): Promise<Reply>;
  clarify?(round: Round & { question: string }): Promise<Reply>;
}

interface ReviewerState {
  reviewer: Reviewer;
  reviews: number;
  revisions: number;
  approved: string | null;
  approvals: { round: number; saw: string }[];
  outcome: LoopOutcome | undefined;
  /** It has ended for good: no later change reopens it. */
  settled: boolean;
  findings: string[];
}

export interface LoopsDeps {
  reviewers: readonly Reviewer[];
  work: Reviewed;
  phase: string;
  stream: number | null;
  /** Called with a loop each time it ends. */
  record: (loop: ReviewLoop) => void;
}

/** Review loops. An approval names the state it saw; a later change voids it, and the reviewer is asked again. */
export function createLoops({ reviewers, work, phase, stream, record }: LoopsDeps) {
  const states = reviewers.map(
    (reviewer): ReviewerState => ({
      reviewer,
      reviews: 0,
      revisions: 0,
      approved: reviewer.approvedBefore ?? null,
      approvals: [],
      outcome: undefined,
      settled: false,
      findings: [],
    }),
  );

  function end(state: ReviewerState, outcome: LoopOutcome): void {
    state.outcome = outcome;
    state.approved = outcome === "approved" ? work.state() : null;
    if (state.approved !== null) state.approvals.push({ round: state.reviews, saw: state.approved });
    state.settled = outcome !== "approved";
    record(describe(state));
  }

  function describe(state: ReviewerState): ReviewLoop {
    const { reviewer, reviews, revisions, approved, approvals, outcome = "skipped", findings } = state;
    return {
      key: reviewer.key,
      phase,
      stream,
      agent: reviewer.agent,
      outcome,
      reviews,
      revisions,
      approved,
      ...(approvals.length > 0 && { approvals: [...approvals] }),
      findings: outcome === "approved" ? null : (findings.at(-1) ?? null),
    };
  }

  async function pass(state: ReviewerState): Promise<void> {
    const { reviewer } = state;
    for (;;) {
      state.reviews += 1;
      const round = { reviewer, number: state.reviews, findings: [...state.findings] };
      const reply = await work.review(round);
      if (!reply.ok) {
        state.findings.push(`There was no verdict: ${reply.reason}`);
        return end(state, "failed");
      }
      const verdict = readVerdict(
        reply.text,
        reviewer.approvalKeyword,
        reviewer.clarificationAgent ? reviewer.clarificationKeyword : undefined,
      );
      const veto = verdict === "approved" ? work.veto?.(reviewer) : undefined;
      if (verdict === "approved" && veto === undefined) return end(state, "approved");
      const findings = veto ?? reply.text;
      state.findings.push(findings);
      if (state.revisions >= reviewer.maxIterations) return end(state, "exhausted");
      const answer = verdict === "clarification" ? await work.clarify?.({ ...round, question: reply.text }) : undefined;
      if (answer?.ok)
        state.findings.push(`${state.findings.pop()}\n\nThe answer of ${reviewer.clarificationAgent}:\n${answer.text}`);
      state.revisions += 1;
      const revised = await work.revise({ ...round, findings: [findings], ...(answer?.ok && { answer: answer.text }) });
      if (!revised.ok) {
        state.findings.push(`The revision failed: ${revised.reason}`);
        return end(state, "failed");
      }
    }
  }

  return {
    /** Asks the reviewers until each has approved the present state or given up; false if one that must approve did not. */
    async run(): Promise<boolean> {
      for (;;) {
        const next = states.find((state) => !state.settled && state.approved !== work.state());
        if (!next) return true;
        await pass(next);
        if (next.outcome !== "approved" && next.reviewer.onExhausted === "fail") return false;
      }
    },
    /** Records the loops that never began, and approvals that later changes voided. */
    close(): void {
      for (const state of states) {
        if (state.outcome === undefined && state.reviewer.approvedBefore === undefined) record(describe(state));
        else if (state.outcome === "approved" && state.approved !== work.state()) end(state, "exhausted");
      }
    },
    loops: () => states.map(describe),
  };
}
export type Loops = ReturnType<typeof createLoops>;
