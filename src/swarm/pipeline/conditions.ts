import type { RunModel } from "../../protocol/runs.ts";
import { FRONTEND_MARKER } from "./schema.ts";

/**
 * The words that make a task a frontend task when it carries no marker and does not say itself. Whole words only, case folded:
 * "build" is not "ui" and "review" is not "view".
 */
export const FRONTEND_WORDS = [
  "frontend",
  "front-end",
  "front end",
  "ui",
  "ux",
  "gui",
  "css",
  "scss",
  "html",
  "stylesheet",
  "tailwind",
  "react",
  "vue",
  "svelte",
  "angular",
  "user interface",
  "dark mode",
  "button",
  "modal",
  "navbar",
  "sidebar",
  "tooltip",
  "dropdown",
  "checkbox",
  "web page",
  "webpage",
  "landing page",
  "login page",
  "settings page",
  "responsive layout",
] as const;

const WORDS = new RegExp(
  `(?<![\\p{L}\\p{N}_-])(?:${FRONTEND_WORDS.join("|").replaceAll(" ", "\\s+")})(?![\\p{L}\\p{N}_-])`,
  "iu",
);

/** Whether a task is frontend work: by the marker, else by what the task says of itself, else by the documented words. */
export function isFrontend(task: { text: string; declared?: boolean | undefined }, marker: string = FRONTEND_MARKER): boolean {
  if (task.text.toLowerCase().includes(marker.toLowerCase())) return true;
  return task.declared ?? WORDS.test(task.text);
}

export interface ConditionFacts {
  /** What serves those who did the work, and those who are to review it. */
  models: { primary: RunModel; review: RunModel };
  tasks: readonly { frontend: boolean }[];
}

const TESTS = {
  hasFrontendTasks: ({ tasks }: ConditionFacts) =>
    tasks.some((task) => task.frontend) ? undefined : "no task is frontend work (hasFrontendTasks)",
  differentReviewModel: ({ models: { primary, review } }: ConditionFacts) => {
    if (review.model !== primary.model) return undefined;
    const same =
      review.name === primary.name
        ? `the review model is the primary model, ${primary.model}`
        : `${primary.model} serves for both ${primary.name} and ${review.name}`;
    return `${same} (differentReviewModel)`;
  },
} as const;

/** Why a phase is left out, or undefined when it runs. */
export function whySkipped(condition: keyof typeof TESTS | undefined, facts: ConditionFacts): string | undefined {
  return condition === undefined ? undefined : TESTS[condition](facts);
}
