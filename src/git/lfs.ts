import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "./command.ts";
import { LFS_REMEDY, type Repo } from "./repository.ts";

/** A reason why a worktree cannot be created, or a warning about it. */
export interface Hindrance {
  refused?: string;
  note?: string;
}

const MAX_OUTPUT = 20_000_000;

/** Whether the repository of a folder uses Git LFS. */
export async function usesLfs(git: Git, folder: string): Promise<boolean> {
  const attributes = ["grep", "-q", "-E", "filter=lfs( |$)", "HEAD", "--", ":(top,glob)**/.gitattributes"];
  return (await git.run(folder, attributes)).code === 0;
}

/** Whether a repository's LFS files can be brought into a worktree without fetching. */
export async function lfsHindrance({ git, root }: Repo, env: NodeJS.ProcessEnv): Promise<Hindrance> {
  const set = await git.run(root, ["config", "--get-regexp", "^filter\\.lfs\\.(process|smudge)$"]);
  if (set.code !== 0)
    return {
      note: "this repository keeps files in Git LFS, which is not set up here: agents see pointers in their place (git lfs install)",
    };
  const lfs = await git.run(root, ["lfs", "env"]);
  if (lfs.code !== 0)
    return {
      refused: `${root} keeps files in Git LFS, and git is told to use git-lfs, which cannot be started: ${lfs.output.trim().slice(-200)}\n${LFS_REMEDY}`,
    };
  if (/--skip/.test(set.stdout) || isOn(env.GIT_LFS_SKIP_SMUDGE))
    return { note: "files in Git LFS are not filled in here, so agents see pointers in their place" };
  const media = /^LocalMediaDir=(.+)$/m.exec(lfs.stdout)?.[1];
  const listed = await git.run(root, ["lfs", "ls-files", "--long", "HEAD"], { maxOutput: MAX_OUTPUT });
  if (media === undefined || listed.code !== 0) return {};
  const missing = listed.stdout.split("\n").flatMap((line) => {
    const [, hash = "", file = ""] = /^([0-9a-f]{64}) [*-] (.+)$/.exec(line) ?? [];
    return hash === "" || existsSync(join(media, hash.slice(0, 2), hash.slice(2, 4), hash)) ? [] : [file];
  });
  if (missing.length === 0) return {};
  const names = `${missing.slice(0, 5).join(", ")}${missing.length > 5 ? ` and ${missing.length - 5} more` : ""}`;
  return {
    refused: `${names}: the content in Git LFS is not here, and a run fetches nothing. Say: git lfs pull\nOr have the agents see pointers: GIT_LFS_SKIP_SMUDGE=1`,
  };
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && /^(?:1|true|yes|on|t)$/i.test(value);
}
