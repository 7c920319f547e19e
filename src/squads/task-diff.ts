import type { Git } from "../git/command.ts";
import { diffOf, filesOf } from "../git/diff.ts";
import { conflict, missing } from "../lib/errors.ts";
import type { Difference } from "../protocol/changes.ts";
import type { Squad, Task } from "../protocol/squads.ts";

export interface TaskDiffDeps {
  git: Git;
  findTask: (id: string) => Task;
  findSquad: (slug: string) => Squad;
}

/** What has changed in the files of a task's project since the task began. */
export function createTaskDiff({ git, findTask, findSquad }: TaskDiffDeps) {
  return async (id: string): Promise<Pick<Difference, "from" | "to" | "text" | "files">> => {
    const { squad, evidence, status } = findTask(id);
    const { treeBefore: from, treeAfter: to } = evidence ?? { treeBefore: null, treeAfter: null };
    if (from === null || to === null)
      throw conflict(
        status === "running" || status === "queued"
          ? "What a task changed is compared when it has ended."
          : "Git could not tell what this task changed: there is no repository, or it is not in order.",
      );
    const own = await differenceIn(git, findSquad(squad).projectPath, from, to);
    const texts = [own.text];
    for (const { projectPath, treeBefore, treeAfter } of evidence?.others ?? []) {
      if (treeAfter === null || treeAfter === treeBefore) continue;
      const other = await differenceIn(git, projectPath, treeBefore, treeAfter);
      texts.push(`# The repository ${projectPath}:\n${other.text}`);
      own.files.push(...other.files);
    }
    return { from, to, text: texts.filter((text) => text !== "").join("\n"), files: own.files };
  };
}

async function differenceIn(git: Git, folder: string, from: string, to: string): Promise<Pick<Difference, "text" | "files">> {
  const known = await git.run(folder, ["cat-file", "-e", `${to}^{tree}`]);
  if (known.code !== 0) throw missing("The repository no longer holds what this task left; git has cleaned it away.");
  const [text, files] = await Promise.all([diffOf(git, folder, from, to, { most: 1_000_000 }), filesOf(git, folder, from, to)]);
  return { text, files: files.map((file) => ({ folder, ...file })) };
}
