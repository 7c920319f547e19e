import { UserError } from "../lib/errors.ts";
import type { Git, GitOptions } from "./command.ts";
import type { Repo } from "./repository.ts";
import { ADD_ALL, ADD_READABLE } from "./scripts.ts";

/** A worktree of a run, and the git that works in it. */
export interface Tree {
  git: Git;
  path: string;
  branch: string;
  repo: Repo;
  /** The repository's folder of records about the worktree. */
  record: string;
}

const UNREADABLE = /^error: open\("(.+)"\): (?:Permission denied|Operation not permitted)$/;
/** A pipe, socket or device replaced a file. */
const NO_FILE = /^error: (.+): can only add regular files, symbolic links or git-directories$/;

/** Adds everything in a worktree that git can store; returns the files that it cannot, whose index entries stay unchanged. */
export async function addAll(git: Git, path: string, options?: Pick<GitOptions, "env">): Promise<string[]> {
  const added = await git.run(path, ADD_ALL, options);
  if (added.code === 0) return [];
  const rest = await git.run(path, ADD_READABLE, options);
  const leftOut = rest.stderr.split("\n").flatMap((line) => (UNREADABLE.exec(line) ?? NO_FILE.exec(line))?.[1] ?? []);
  if (rest.code !== 0 && leftOut.length === 0)
    throw new UserError(`git add failed in ${path}: ${(rest.stderr.trim() || added.stderr.trim()).slice(-600)}`);
  return leftOut;
}
