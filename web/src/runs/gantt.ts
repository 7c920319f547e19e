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

/** Where the axis is marked, in even steps. */
export function marksOf(spanMs: number, most = 5): { left: number; words: string }[] {
  const span = Math.max(1, spanMs);
  return Array.from({ length: most }, (_, index) => ({
    left: (index / (most - 1)) * 100,
    words: duration((index / (most - 1)) * span),
  }));
}
