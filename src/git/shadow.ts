import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeFolder } from "../lib/pinned/folder.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import type { Git } from "./command.ts";
import { diffOf } from "./diff.ts";
import { asExcludes } from "./ignore-files.ts";
import { releaseLocks } from "./locks.ts";

const MAX_OUTPUT = 50_000_000;

/** A separate repository that records a folder's states without touching the folder or its own repository. Skips ignored files. */
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
  const list = async (...pathspecs: string[]) => {
    const args = ["ls-files", "-c", "-o", "--exclude-standard", "-z", "--", ...pathspecs];
    const { code, stdout } = await git.run(folder, args, { maxOutput: MAX_OUTPUT });
    return code === 0 && stdout.length <= MAX_OUTPUT ? stdout.split("\0").filter((name) => name !== "") : undefined;
  };
  const patterns = ((await list(":(glob)**/.ignore")) ?? []).flatMap((file) =>
    asExcludes(file, smallTextAt(join(folder, file), 100_000) ?? ""),
  );
  const info = makeFolder(join(realOf(gitDir), "info"));
  replaceFile(info, "exclude", `${patterns.join("\n")}\n`, { durable: false });
  info.close();
  return {
    async save(): Promise<string> {
      await git.must(folder, ["add", "-A", "--ignore-errors", "--", ".", ...excludes]);
      return git.must(folder, ["write-tree"]);
    },
    diff: (from: string, to: string) => diffOf(git, folder, from, to),
    /** The files it would record; undefined if there are too many to list. */
    files: () => list(".", ...excludes),
  };
}

export interface FolderSize {
  files: number;
  bytes: number;
}

/** The number and size of files that such a repository would record, without storing any; undefined if too many to list. */
export async function measureFolder(git: Git, folder: string, leftOut: readonly string[]): Promise<FolderSize | undefined> {
  const temporary = mkdtempSync(join(realOf(tmpdir()), "io-measure-"));
  try {
    const shadow = await openShadow(git, join(temporary, "shadow.git"), folder, leftOut);
    const files = await shadow.files();
    const sizeOf = (file: string) => statsAt(join(folder, file))?.size ?? 0;
    return files && { files: files.length, bytes: files.reduce((sum, file) => sum + sizeOf(file), 0) };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
