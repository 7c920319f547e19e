import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepo } from "../../src/git/repository.ts";
import { changedIn, restoreFiles, treeOf } from "../../src/git/worktrees.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git } from "../support/swarm/index.ts";

/** Commits these files, changes them all in a worktree, and restores them as after a check that fails. Returns how many differ. */
async function leftAfterRestore(names: readonly (string | Buffer)[]): Promise<number> {
  const project = realpathSync(temporaryFolder());
  let path = project;
  const at = (name: string | Buffer) => Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name)]);
  mkdirSync(join(path, "sources-with-a-long-name"));
  const write = (text: string) => {
    for (const name of names) writeFileSync(at(name), text);
  };
  git(path, "init", "-q", "-b", "main");
  write("committed\n");
  git(path, "add", "-A");
  git(path, "commit", "-q", "-m", "start");
  path = join(realpathSync(temporaryFolder()), "tree");
  git(project, "worktree", "add", "-q", "-b", "work", path);
  write("changed\n");
  const tree = treeOf((await openRepo(testGit(), project))!, path, "work");
  const { files } = await changedIn(tree);
  expect(files).toHaveLength(names.length);
  await restoreFiles(tree, files);
  return names.filter((name) => readFileSync(at(name), "utf8") !== "committed\n").length;
}

test("thousands of files that a failing check changed are restored", async () => {
  const names = Array.from({ length: 4_000 }, (_, index) => `sources-with-a-long-name/a-file-with-a-long-name-${index}.txt`);
  expect(await leftAfterRestore(names)).toBe(0);
});

test("files whose names are not UTF-8, or are patterns, are restored like any other", async () => {
  const latin = Buffer.concat([Buffer.from("caf"), Buffer.from([0xe9]), Buffer.from("[1] *.txt")]);
  expect(await leftAfterRestore([latin, "café.txt", "[a]*?.txt", "two\nlines.txt", "plain.txt"])).toBe(0);
});
