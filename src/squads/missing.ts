import { named } from "../lib/quoted.ts";
import type { Failure } from "../protocol/messages.ts";
import type { Squad } from "../protocol/squads.ts";

/** Explains that a squad's project is not where it was. */
export function folderGone({ slug, projectPath }: Pick<Squad, "slug" | "projectPath">): string {
  return `The project's folder ${named(projectPath, 300)} is not there any more. Put it back, tell where it is now (io squad move ${slug} <folder>), or delete the squad.`;
}

/** Why nobody can work for a squad. */
export function projectMissing(squad: Pick<Squad, "slug" | "projectPath">): Failure {
  return { code: "project_missing", message: `${folderGone(squad)} Then delegate the task again.` };
}
