import type { Git } from "../git/command.ts";
import { surveyProject } from "../project/analyze.ts";
import type { Analysis } from "../protocol/analysis.ts";
import { suggestRoster } from "./roster.ts";

/** What a project is, and who should work on it. */
export async function analyzeProject(git: Git, path: string, options: { signal?: AbortSignal } = {}): Promise<Analysis> {
  const { facts, frameworks, shipped } = await surveyProject(git, path, options);
  return { ...facts, roster: suggestRoster(facts, frameworks, shipped) };
}
