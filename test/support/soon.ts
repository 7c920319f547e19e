import { availableParallelism, loadavg } from "node:os";
import { measurePace } from "./pace.mjs";

/** The result of `measurePace` on an idle machine of the kind that the tests' time limits were written for. */
const USUAL_PACE_MS = 1;
const MOST_SLOWED = 5;

/**
 * How many milliseconds to allow now for something that takes less than `ms` on an idle machine. More if the machine is slow,
 * or if more programs want to run than it has processors.
 */
export function soon(ms: number): number {
  const slowedBy = Math.max(1, measurePace(15) / USUAL_PACE_MS, loadavg()[0]! / availableParallelism());
  return ms * Math.min(MOST_SLOWED, slowedBy);
}
