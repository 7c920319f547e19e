import type { Purpose } from "./scope.ts";

const MAX_SCRIPT = 10_000;

/** A script that a job runs, and its surroundings. */
export interface CiScript {
  text: string;
  /** Relative to the project; undefined if unknown. */
  cwd: string | undefined;
  env: Readonly<Record<string, string>>;
  /** The purpose that the step's name suggests. */
  called?: Purpose | undefined;
  /** Variables of the whole job or workflow. */
  around?: Readonly<Record<string, string>>;
}

/** The lines of a script, without blank ones and comments; continued lines are joined. */
export const linesOf = (script: string): string[] =>
  script
    .slice(0, MAX_SCRIPT)
    .replace(/\\\r?\n/g, " ")
    .split(/\r?\n/)
    .map((line) => line.trim().replace(/\s+/g, " "))
    .filter((line) => line !== "" && !line.startsWith("#"));

/** Names of workflows, jobs, stages and steps whose commands are never checks. */
export const PUBLISHING = /(?:^|[^a-z])(?:publish|release|deploy|upload|pages|docker|nightly|canary|benchmarks?|bench|fuzz)/i;

/** Commands that show that their whole job publishes. */
const PUBLISHES =
  /\b(?:npm|pnpm|yarn|bun|cargo|poetry|uv|flit|hatch|gem|mvn|mvnw|gradle|gradlew) (?:publish|push|deploy)\b|\btwine upload\b|\bdocker (?:push|login)\b|\bgh release\b|\bgit push\b|\bsemantic-release\b|\bgoreleaser\b|\bkubectl apply\b|\bterraform apply\b|\bhelm (?:upgrade|install)\b/;

export const publishesIn = (script: string): boolean => PUBLISHES.test(script);

/** Whether a line changes the project's own files, so that later lines do not run on the project as it is. */
export const changesSources = (line: string): boolean =>
  /-Z ?(?:direct-)?minimal-versions|^(?:sed (?:.* )?-i|perl -\w*i|patch\b|git (?:apply|checkout|am|reset|cherry-pick|switch|merge)\b)/.test(
    line,
  );

/** The purpose of a step whose name begins with a word for it; undefined if it looks at the pull request rather than the code. */
export function purposeByName(name: string): Purpose | undefined {
  if (/\b(?:chang(?:e|es|ed)|labels?|title|commits?|tags?|versions?|branch|release|links?|license)\b/i.test(name))
    return undefined;
  const first = /^\W*(\w+)/.exec(name)?.[1] ?? "";
  if (/^(?:test|tests|unittest|selftest)$/i.test(first)) return "test";
  return /^(?:lint|check|verify|validate|ensure|forbid|typecheck)$/i.test(first) ? "lint" : undefined;
}
