import type { Git } from "./command.ts";
import type { Repo } from "./repository.ts";

/** A worktree of a run, with the git that works in it. */
export interface Tree {
  git: Git;
  path: string;
  branch: string;
  repo: Repo;
  /** The folder in which the repository keeps what it knows of the worktree. */
  record: string;
}
