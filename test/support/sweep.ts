import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { packageRoot } from "../../src/lib/package-root.ts";

/** `npm run test:nightly` tries every case of a sweep; otherwise a share of them is drawn, which is another one for each commit. */
export const isWhole = process.env.IO_TEST_SWEEP === "whole";

/** Set IO_TEST_SEED to the one that a failed test names to draw the same again. */
const seed =
  process.env.IO_TEST_SEED ??
  execFileSync("git", ["rev-parse", "--short=12", "HEAD"], { cwd: packageRoot, encoding: "utf8" }).trim();

/** What a sweep says of itself in its test's name. */
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

/** One in `share` of the cases of a sweep, at least one, in their order. */
export function someOf<T>(name: string, cases: readonly T[], share = 4): T[] {
  if (isWhole) return [...cases];
  const ranks = cases.map((_, at) => draw(name, at));
  const last = [...ranks].sort((a, b) => a - b)[Math.max(0, Math.ceil(cases.length / share) - 1)]!;
  return cases.filter((_, at) => ranks[at]! <= last);
}

/** After how many steps to kill the next time: each one, or about every fourth. */
export const stepsUntilKill = (name: string, life: number): number => (isWhole ? 1 : 1 + Math.floor(draw(name, life) * 7));
