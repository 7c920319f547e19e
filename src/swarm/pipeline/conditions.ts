import type { RunModel } from "../../protocol/runs.ts";
import { type Condition, FRONTEND_MARKER } from "./schema.ts";

/** Any of these makes a task frontend work if neither a marker nor the task itself decides. Whole words, in either case. */
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

/** Whether a task is frontend work: the marker decides, then the task's own flag, then the documented words. */
export function isFrontend(task: { text: string; declared?: boolean | undefined }, marker: string = FRONTEND_MARKER): boolean {
  if (task.text.toLowerCase().includes(marker.toLowerCase())) return true;
  return task.declared ?? WORDS.test(task.text);
}

export interface ConditionFacts {
  /** The models that serve the agent that did the work and its reviewer. */
  models: { primary: RunModel; review: RunModel };
  tasks: readonly { frontend: boolean }[];
  /** Whether the request came from a plan. */
  planned: boolean;
}

/** The kind of phase that has to come before one with this condition. */
export function neededFor(condition: unknown): string | undefined {
  return condition === "hasFrontendTasks" ? "decompose" : undefined;
}

const TESTS = {
  hasFrontendTasks: ({ tasks }: ConditionFacts) =>
    tasks.some((task) => task.frontend) ? undefined : "no task is frontend work (hasFrontendTasks)",
  differentReviewModel: ({ models: { primary, review } }: ConditionFacts) => {
    // The rehearsal model plays both parts, so that every phase can be seen.
    if (primary.rehearsal ? review.name !== primary.name : review.model !== primary.model) return undefined;
    const same =
      review.name === primary.name
        ? `the review model is the primary model, ${primary.model}`
        : `${primary.model} serves for both ${primary.name} and ${review.name}`;
    return `${same} (differentReviewModel)`;
  },
  noPlanProvided: ({ planned }: ConditionFacts) => (planned ? "the request is a plan (noPlanProvided)" : undefined),
} as const satisfies Record<Condition, (facts: ConditionFacts) => string | undefined>;

/** Why a phase is skipped, or undefined if it runs. */
export function whySkipped(condition: Condition | undefined, facts: ConditionFacts): string | undefined {
  return condition === undefined ? undefined : TESTS[condition](facts);
}
