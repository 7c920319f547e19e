import type { Git } from "../git/command.ts";
import { surveyProject } from "../project/analyze.ts";
import { detectTests } from "../project/test-commands.ts";
import type { Analysis, ProjectCommand } from "../protocol/analysis.ts";
import type { Squad } from "../protocol/squads.ts";
import { suggestRoster } from "./roster.ts";

/** A project's squad, whose commands precede those that are found. */
export type ChosenChecks = Pick<Squad, "slug" | "checks">;

export interface AnalyzeOptions {
  signal?: AbortSignal;
  chosen?: ChosenChecks | undefined;
}

/** What a project is, and who should work on it. */
export async function analyzeProject(git: Git, path: string, { signal, chosen }: AnalyzeOptions = {}): Promise<Analysis> {
  const { facts, frameworks, shipped } = await surveyProject(git, path, signal ? { signal } : {});
  const own = chosen?.checks?.map((command) => chosenCommand(command, chosen.slug));
  const known = own ? { ...facts, commands: own } : facts;
  return { ...known, roster: suggestRoster(known, frameworks, shipped) };
}

/** A command that a person chose, with the purpose that its words suggest. */
function chosenCommand(command: string, slug: string): ProjectCommand {
  const purpose = detectTests(command).isTest ? "test" : /\b(?:build|compile)\b/.test(command) ? "build" : "lint";
  return { purpose, command, cwd: ".", from: `io squad set ${slug}` };
}
