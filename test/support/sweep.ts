import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { packageRoot } from "../../src/lib/package-root.ts";

/** `npm run test:nightly` runs every case of a sweep. Other runs draw a share of the cases, a different one for each commit. */
export const isWhole = process.env.IO_TEST_SWEEP === "whole";

/** To repeat a draw, set IO_TEST_SEED to the seed in the name of the failed test. */
const seed =
  process.env.IO_TEST_SEED ??
  execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { cwd: packageRoot, encoding: "utf8" }).trim();

/** Says in the test's name which cases a sweep ran. */
export const drawn = isWhole ? "all" : `drawn by seed ${seed}`;

/** A number from 0 up to 1, the same for the same words and seed. */
function draw(...words: (string | number)[]): number {
  return (
    createHash("sha256")
      .update([seed, ...words].join("\n"))
      .digest()
      .readUInt32BE() /
    2 ** 32
  );
}

/** Draws one in `share` of the cases of a sweep, at least one. Keeps their order. */
export function someOf<T>(name: string, cases: readonly T[], share = 4): T[] {
  if (isWhole) return [...cases];
  const ranks = cases.map((_, at) => draw(name, at));
  const last = [...ranks].sort((a, b) => a - b)[Math.max(0, Math.ceil(cases.length / share) - 1)]!;
  return cases.filter((_, at) => ranks[at]! <= last);
}

/** The number of steps until the next kill: 1 in a whole sweep, otherwise about 4. */
export const stepsUntilKill = (name: string, life: number): number => (isWhole ? 1 : 1 + Math.floor(draw(name, life) * 7));
