import type { NewFailures } from "../../project/reports/compare.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import {
  type CheckRecord,
  failedTwice,
  isGreen,
  type Judgement,
  judgeBaseline,
  judgeCheck,
  judgeTwice,
  leftOut,
  type Noticed,
  sameCheck,
} from "./verdicts.ts";

/** Says what the results of a check mean. */
export interface Judge {
  once: (ran: CheckRecord) => CheckRecord;
  /** The failures that a second run has to confirm. */
  doubted: (ran: CheckRecord) => NewFailures | undefined;
  twice: (first: CheckRecord, second: CheckRecord) => CheckRecord;
}

/** For the commit that a run begins from. */
export const baselineJudge: Judge = {
  once: (ran) => withJudgement(ran, judgeBaseline(ran)),
  doubted: (ran) => judgeBaseline(ran).news,
  twice(first, second) {
    const both = isGreen(second) ? second : failedTwice(first, second);
    const judged = judgeBaseline(both);
    return withJudgement(both, isGreen(second) ? judgeTwice(judgeBaseline(first), judged) : judged);
  },
};

/** For trees that a run made: compares each check with its result before the run. */
export function judgeAgainst(baseline: readonly CheckRecord[], notices: readonly Noticed[]): Judge {
  const judgementOf = (ran: CheckRecord) => judgeCheck(ran, sameCheck(baseline, ran));
  const judged = (ran: CheckRecord, judgement: Judgement): CheckRecord => {
    const bound = sameCheck(notices, ran)?.noticed;
    return { ...withJudgement(ran, judgement), ...(bound !== undefined && { bound }) };
  };
  return {
    once: (ran) => judged(ran, judgementOf(ran)),
    doubted: (ran) => judgementOf(ran).news,
    twice: (first, second) => judged(second, judgeTwice(judgementOf(first), judgementOf(second), leftOut(first, second))),
  };
}

function withJudgement(record: CheckRecord, { verdict, why }: Pick<CheckEvidence, "verdict" | "why">): CheckRecord {
  const excused = { "as before": "failed before", "could not run": "cannot run" } as const;
  return {
    ...record,
    verdict,
    ...(why !== undefined && { why }),
    ...((verdict === "as before" || verdict === "could not run") && { excused: excused[verdict] }),
  };
}
