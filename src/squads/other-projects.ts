import type { Git } from "../git/command.ts";
import { openRepo } from "../git/repository.ts";
import { usageError } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import type { Squad } from "../protocol/squads.ts";
import { folderAt } from "./input.ts";

export interface OtherProjectsDeps {
  git: Git;
  dataFolder: string | undefined;
  /** The folder of a squad. */
  folderOfSquad: (slug: string) => string | undefined;
}

/** The most repositories that a task may change besides its own. */
const MOST = 9;

/**
 * The folders of the other projects that a task is to change, each named by its folder or by its squad's slug. Refuses what could
 * not be changed together: every project needs a repository of its own with a commit.
 */
export function createOtherProjects({ git, dataFolder, folderOfSquad }: OtherProjectsDeps) {
  async function repositoryOf(path: string): Promise<string> {
    const repo = await openRepo(git, path);
    if (!repo)
      throw usageError(
        `--with: ${named(path, 300)} is in no git repository, so it cannot get a worktree of its own. Nothing was begun.`,
      );
    if (repo.head === null) throw usageError(`--with: ${named(path, 300)} has no commit yet. Nothing was begun. Make one first.`);
    return repo.commonDir;
  }

  return async (squad: Pick<Squad, "projectPath">, names: readonly string[], cwd?: string): Promise<string[]> => {
    if (names.length === 0) return [];
    if (names.length > MOST) throw usageError(`--with: at most ${MOST} other projects can be part of one task.`);
    const repositories = new Map([[await repositoryOf(squad.projectPath), squad.projectPath]]);
    const folders: string[] = [];
    for (const name of names) {
      const folder = folderAt(folderOfSquad(name) ?? name, cwd, dataFolder);
      const repository = await repositoryOf(folder);
      const same = repositories.get(repository);
      if (same !== undefined)
        throw usageError(`--with: ${named(folder, 300)} is in the same repository as ${named(same, 300)}. Name it once.`);
      repositories.set(repository, folder);
      folders.push(folder);
    }
    return folders;
  };
}
export type OtherProjects = ReturnType<typeof createOtherProjects>;
