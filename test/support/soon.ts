import { availableParallelism, loadavg } from "node:os";
import { measurePace } from "./pace.mjs";

/** What `measurePace` says on an idle machine of the kind that the limits in the tests were written for. */
const USUAL_PACE_MS = 1;
const MOST_SLOWED = 5;

/**
 * How long something may take right now that takes less than this on an idle machine: longer where the machine is slow, and
 * where more programs want to run than it has processors.
 */
export function soon(ms: number): number {
  const slowedBy = Math.max(1, measurePace(15) / USUAL_PACE_MS, loadavg()[0]! / availableParallelism());
  return ms * Math.min(MOST_SLOWED, slowedBy);
}
