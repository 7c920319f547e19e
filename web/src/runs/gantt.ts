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

/** Every attempt of a step as a bar of its own; one that was cut off ends where the next began. */
export function barsOf(step: RunStep, { begin, end, now }: { begin: number; end: number; now: number }): Bar[] {
  const span = Math.max(1, end - begin);
  const { tries = [] } = step;
  const attempts = tries.length > 0 ? tries : [{ startedAt: step.startedAt, finishedAt: step.finishedAt, error: step.error }];
  return attempts
    .filter(({ startedAt }) => Date.parse(startedAt) <= end)
    .map(({ startedAt, finishedAt, error }, index, all) => {
      const next = all[index + 1];
      const isLast = next === undefined;
      const from = Date.parse(startedAt);
      const until = finishedAt ?? next?.startedAt ?? (isLast ? step.finishedAt : null);
      const to = Math.min(end, until === null ? now : Date.parse(until));
      const state = stateOf(step, { isLast, isCut: finishedAt === null, isBad: error !== null });
      const which = all.length > 1 ? `attempt ${index + 1} of ${all.length}, ` : "";
      return {
        left: ((from - begin) / span) * 100,
        width: Math.max(LEAST, ((to - from) / span) * 100),
        state,
        says: `${which}${state === "cut" ? "cut off" : duration(to - from)}${error === null ? "" : `: ${error}`}`,
      };
    });
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
