import type { RunStep } from "../../../src/protocol/runs.ts";
import { duration } from "../lib/format.ts";

export interface Bar {
  /** From the left, and how wide, in hundredths of the whole. */
  left: number;
  width: number;
  state: "done" | "failed" | "begun" | "cut";
  says: string;
}

/** The least of a bar that can still be seen. */
const LEAST = 0.5;

/**
 * Every attempt of a step as a bar of its own; one that was cut off ends where the next began. `end` is where the axis ends, and
 * `now` the moment that is shown: nothing of a bar lies behind it.
 */
export function barsOf(step: RunStep, { begin, end, now }: { begin: number; end: number; now: number }): Bar[] {
  const span = Math.max(1, end - begin);
  const { tries = [] } = step;
  const attempts = tries.length > 0 ? tries : [{ startedAt: step.startedAt, finishedAt: step.finishedAt, error: step.error }];
  const shown = Math.min(now, end);
  return attempts
    .filter(({ startedAt }) => Date.parse(startedAt) <= shown)
    .map((attempt) => (isLater(attempt.finishedAt, shown) ? { ...attempt, finishedAt: null, error: null } : attempt))
    .map(({ startedAt, finishedAt, error }, index, all) => {
      const next = all[index + 1];
      const isLast = next === undefined;
      const from = Date.parse(startedAt);
      const until = finishedAt ?? next?.startedAt ?? (isLast ? step.finishedAt : null);
      const to = until === null ? shown : Math.min(shown, Date.parse(until));
      const state = stateOf(step, { isLast, isCut: finishedAt === null, isBad: error !== null });
      const which = all.length > 1 ? `attempt ${index + 1} of ${all.length}, ` : "";
      return {
        ...placeOf((from - begin) / span, (to - begin) / span, (shown - begin) / span),
        state,
        says: `${which}${state === "cut" ? "cut off" : duration(to - from)}${error === null ? "" : `: ${error}`}`,
      };
    });
}

const isLater = (iso: string | null, time: number) => iso !== null && Date.parse(iso) > time;

/** In hundredths. What is too short to be seen is drawn a little wider, but never past the moment that is shown. */
function placeOf(from: number, to: number, shown: number): { left: number; width: number } {
  const width = Math.min(Math.max(LEAST, (to - from) * 100), Math.max(0, shown) * 100);
  return { left: Math.max(0, Math.min(from * 100, shown * 100 - width)), width };
}

function stateOf(step: RunStep, { isLast, isCut, isBad }: { isLast: boolean; isCut: boolean; isBad: boolean }): Bar["state"] {
  if (isBad) return "failed";
  if (isLast) return step.state;
  return isCut ? "cut" : "done";
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Steps that read well, the smallest first. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((each) => each * HOUR),
];

/** Where the axis is marked: in even steps that read well, at most so many of them. */
export function marksOf(spanMs: number, most = 5): { left: number; words: string }[] {
  const span = Math.max(1, spanMs);
  const step = STEPS.find((each) => span / each <= most) ?? Math.ceil(span / most / (24 * HOUR)) * 24 * HOUR;
  const count = Math.floor(span / step) + 1;
  return Array.from({ length: count }, (_, index) => ({
    left: ((index * step) / span) * 100,
    words: index === 0 ? "0" : duration(index * step).replace(/ 0 (?:s|min)$/, ""),
  }));
}
