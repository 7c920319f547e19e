import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Git } from "./command.ts";
import { diffOf } from "./diff.ts";
import { releaseLocks } from "./locks.ts";

/** A record of a folder's states that leaves the folder and its own repository alone. */
export async function openShadow(plain: Git, gitDir: string, folder: string, leftOut: readonly string[]) {
  const place = { writable: [dirname(gitDir)] };
  const git = plain.with({ ...place, env: { GIT_DIR: gitDir, GIT_WORK_TREE: folder } });
  if (!existsSync(join(gitDir, "HEAD"))) {
    mkdirSync(dirname(gitDir), { recursive: true, mode: 0o700 });
    await plain.must(dirname(gitDir), ["init", "-q", "--bare", gitDir], place);
  }
  await releaseLocks([join(gitDir, "index.lock")]);
  const excludes = ["node_modules", ".venv", ...leftOut].map(
    (name) => `:(exclude,glob)${name.includes("/") ? name : `**/${name}`}`,
  );
  return {
    async save(): Promise<string> {
      await git.must(folder, ["add", "-A", "--ignore-errors", "--", ".", ...excludes]);
      return git.must(folder, ["write-tree"]);
    },
    diff: (from: string, to: string) => diffOf(git, folder, from, to),
  };
}
