import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { openRepo } from "../git/repository.ts";
import { UserError } from "../lib/errors.ts";
import { Branch } from "../protocol/pulls.ts";
import { type ForgeFinder, renamed } from "./find.ts";
import type { Forge } from "./port.ts";
import type { Pusher } from "./push.ts";

export interface FreshBaseDeps {
  git: Git;
  finder: ForgeFinder;
  pusher: Pick<Pusher, "fetch">;
}

/**
 * Fetches the latest commit of the forge's default branch into the project, so that work can start from it. Returns that
 * commit.
 */
export function createFreshBase({ git, finder, pusher }: FreshBaseDeps) {
  return async (projectPath: string, forge: Forge, signal: AbortSignal): Promise<string> => {
    const place = await finder.placeOf(projectPath);
    const { defaultBranch, fullName } = await forge.repository();
    const branch = Branch.safeParse(defaultBranch).data;
    const repo = await openRepo(git, projectPath);
    if (branch === undefined || repo === undefined)
      throw new UserError(
        repo ? `${place.host}/${place.repo} names no default branch.` : `${projectPath} is no git repository any more.`,
      );
    const token = await finder.tokenFor(place);
    const from = { branch, objects: join(repo.commonDir, "objects"), known: repo.head };
    return pusher.fetch(from, { url: renamed(place, fullName).baseUrl, token, signal });
  };
}
export type FreshBase = ReturnType<typeof createFreshBase>;
