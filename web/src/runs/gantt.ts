import type { RunStep } from "../../../src/protocol/runs.ts";
import { duration } from "../lib/format.ts";

export interface Bar {
  /** The position from the left and the width, in percent of the whole. */
  left: number;
  width: number;
  state: "done" | "failed" | "begun" | "cut";
  says: string;
}

interface Scale {
  begin: number;
  end: number;
  now: number;
  isOver?: boolean;
}

/** The smallest width of a bar that is still visible. */
const LEAST = 0.5;

/**
 * Returns a bar for each attempt of a step; one that was cut off ends where the next starts. `end` is the end of the axis.
 * `now` is the moment shown: no bar goes beyond it. If the run `isOver`, no bar is shown as running.
 */
export function barsOf(step: RunStep, { begin, end, now, isOver = false }: Scale): Bar[] {
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
      const state = stateOf(step, { isLast, isCut: finishedAt === null, isBad: error !== null, isOver });
      const which = all.length > 1 ? `attempt ${index + 1} of ${all.length}, ` : "";
      return {
        ...placeOf((from - begin) / span, (to - begin) / span, (shown - begin) / span),
        state,
        says: `${which}${state === "cut" ? "cut off" : duration(to - from)}${error === null ? "" : `: ${error}`}`,
      };
    });
}

const isLater = (iso: string | null, time: number) => iso !== null && Date.parse(iso) > time;

/** The position in percent. Bars that are too short to see are widened, but never beyond the moment shown. */
function placeOf(from: number, to: number, shown: number): { left: number; width: number } {
  const width = Math.min(Math.max(LEAST, (to - from) * 100), Math.max(0, shown) * 100);
  return { left: Math.max(0, Math.min(from * 100, shown * 100 - width)), width };
}

interface Attempt {
  isLast: boolean;
  isCut: boolean;
  isBad: boolean;
  isOver: boolean;
}

function stateOf(step: RunStep, { isLast, isCut, isBad, isOver }: Attempt): Bar["state"] {
  if (isBad) return "failed";
  if (isLast) return isOver && step.state === "begun" ? "cut" : step.state;
  return isCut ? "cut" : "done";
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Round intervals for the axis, the smallest first. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((each) => each * HOUR),
];

/** The marks of the axis: at round intervals, at most about `most` of them. */
export function marksOf(spanMs: number, most = 5): { left: number; words: string }[] {
  const span = Math.max(1, spanMs);
  const step = STEPS.find((each) => span / each <= most) ?? Math.ceil(span / most / (24 * HOUR)) * 24 * HOUR;
  const count = Math.floor(span / step) + 1;
  return Array.from({ length: count }, (_, index) => ({
    left: ((index * step) / span) * 100,
    words: index === 0 ? "0" : wordsOf(index * step, step),
  }));
}

/** Marks that are less than a second apart show tenths, so that no two read the same. */
const wordsOf = (ms: number, step: number) => (step < SECOND && ms >= SECOND ? `${ms / SECOND} s` : duration(ms));
