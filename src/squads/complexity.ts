import type { ModelTier } from "../protocol/squads.ts";
import { stem, wordsOf } from "./words.ts";

const TIERS = ["low", "medium", "high"] as const;

const stems = (words: string) => new Set(words.split(" ").map(stem));
const HARD = stems(
  "refactor rearchitect architecture redesign rewrite security vulnerability migrate migration concurrency concurrent deadlock race distributed encryption cryptography authentication authorization protocol algorithm compiler parser scalability consistency transaction intermittent flaky investigate",
);
const EASY = stems(
  "typo typos rename format formatting reformat whitespace spelling comment comments docs readme changelog wording bump lint indentation copyright label",
);

const LONG = 800;
const SHORT = 200;
const MANY_PARTS = 4;

/** The model tier for a task: the agent's own, one up for hard work and one down for easy work. */
export function modelTierFor(agentTier: ModelTier, task: string): { tier: ModelTier; reason: string } {
  const words = [...new Set(wordsOf(task))];
  const hard = words.filter((word) => HARD.has(stem(word)));
  const easy = words.filter((word) => EASY.has(stem(word)));
  const parts = partsOf(task);
  const weight = hard.length - easy.length + (task.length > LONG ? 1 : 0) + (parts >= MANY_PARTS ? 1 : 0);
  const step = weight > 0 ? 1 : weight < 0 && task.length <= SHORT ? -1 : 0;
  const why = [
    ...(step > 0 ? hard : step < 0 ? easy : []).slice(0, 3).map((word) => `"${word}"`),
    ...(step > 0 && task.length > LONG ? ["a long description"] : []),
    ...(step > 0 && parts >= MANY_PARTS ? [`${parts} parts`] : []),
  ].join(", ");
  const tier = TIERS[Math.min(2, Math.max(0, TIERS.indexOf(agentTier) + step))]!;
  if (step === 0) return { tier, reason: `the agent's own tier, ${tier}: nothing makes the task harder or easier than usual` };
  if (tier === agentTier) return { tier, reason: `already the ${step > 0 ? "highest" : "lowest"} tier (${why})` };
  return { tier, reason: `${step > 0 ? "raised" : "lowered"} from ${agentTier} to ${tier}: ${why}` };
}

/** List items, or steps joined by "then" and semicolons. */
function partsOf(task: string): number {
  const items = task.match(/^[ \t]*(?:[-*•]|\d+[.)])[ \t]+\S/gm)?.length ?? 0;
  const steps = task.match(/;\s|\bthen\b|\bafter that\b/gi)?.length ?? 0;
  return Math.max(1, items, steps + 1);
}
