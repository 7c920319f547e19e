import { basename } from "node:path";

/** The name of the worktree of the n-th other repository that is changed together with the first one, counted from 1. */
export function companionName(projectPath: string, number: number): string {
  const plain = basename(projectPath).replace(/[^\w.-]/g, "-");
  return `with-${number}-${plain.slice(0, 40)}`;
}
