import { basename } from "node:path";
import type { Git } from "../../git/command.ts";
import { leftOutMessage, surveyProject } from "../../project/analyze.ts";
import type { Check } from "../../project/commands.ts";
import type { PlannedCheck } from "../../protocol/plans.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import type { ChosenChecks } from "./chosen-checks.ts";

/** Finds the checks of a folder, and notes if the changed files concern more checks than it returns. */
export type FindChecks = (folder: string, changed?: readonly string[], note?: (text: string) => void) => Promise<Check[]>;

/** Finds them in the files of the folder. */
export const findChecksWith =
  (git: Git): FindChecks =>
  async (folder, changed, note) => {
    const { checks, leftOut } = await surveyProject(git, folder, { changed });
    if (leftOut > 0) note?.(leftOutMessage(leftOut));
    return checks;
  };

/** How the checks of a project are found. */
export interface CheckFinders {
  /** The checks of a folder; checks of single packages only if they concern the changed files. */
  findChecks: FindChecks;
  /** The commands that a person chose for a project, for pipeline files that name none. */
  chosenChecks?: ((projectPath: string) => ChosenChecks | null) | undefined;
}

/** The checks a run would use, and where each command was found: what people chose precedes what the project's files say. */
export async function plannedChecks(
  projectPath: string,
  { path, pipeline }: Pick<LoadedPipeline, "path" | "pipeline">,
  { findChecks, chosenChecks }: CheckFinders,
): Promise<PlannedCheck[]> {
  const chosen = pipeline.checks ? { commands: pipeline.checks, from: basename(path) } : chosenChecks?.(projectPath);
  if (chosen) return chosen.commands.map((command) => ({ command, cwd: ".", from: chosen.from, perPackage: false }));
  const found = await findChecks(projectPath);
  return found.map(({ command, cwd, from, isPerPackage = false }) => ({
    ...{ command, cwd, from: from ?? null, perPackage: isPerPackage },
  }));
}
