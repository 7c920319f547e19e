import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepo } from "../../../src/git/repository.ts";
import { addWorktree } from "../../../src/git/worktrees.ts";
import { captureFiles } from "../../../src/workers/remote/code.ts";
import { testGit } from "../../support/git.ts";
import { temporaryFolder } from "../../support/home.ts";

const STREAMS = 6;

test("the files of trees that are sent side by side are each tree's own, and nothing is left of how that was done", async () => {
  const folder = realpathSync(temporaryFolder());
  const [root, scratch] = [join(folder, "project"), join(folder, "scratch")];
  mkdirSync(root);
  const git = (cwd: string, ...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, encoding: "utf8" }).trim();
  git(root, "init", "-q", "-b", "main");
  writeFileSync(join(root, "base.txt"), "base\n");
  git(root, "add", "-A");
  git(root, "commit", "-q", "-m", "base");
  const repo = (await openRepo(testGit(), root))!;
  const streams = Array.from({ length: STREAMS }, (_, at) => ({ path: join(folder, `s${at}`), branch: `io/s${at}` }));
  for (const stream of streams) {
    await addWorktree(repo, { ...stream, base: "HEAD" });
    writeFileSync(join(stream.path, "own.txt"), `${stream.branch}\n`);
  }
  const commits = await Promise.all(streams.map((stream) => captureFiles({ repo, scratch, ...stream }, stream.branch.slice(3))));
  expect(commits.map((commit) => git(root, "show", `${commit}:own.txt`))).toEqual(streams.map(({ branch }) => branch));
  expect(commits.map((commit) => git(root, "show", `${commit}:base.txt`))).toEqual(streams.map(() => "base"));
  expect(readdirSync(scratch)).toEqual([]);
  expect(streams.map(({ path }) => git(path, "status", "--porcelain"))).toEqual(streams.map(() => "?? own.txt"));
});
