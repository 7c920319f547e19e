import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { setAside } from "../../src/git/aside.ts";
import { beginMerge, mergeInto } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, treeOf } from "../../src/git/worktrees.ts";
import { cutOff } from "../support/cut-off.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const FILES = 1_500;
const names = Array.from({ length: FILES }, (_, at) => `src/f${at}.txt`);
const filesOf = (word: string, of = names) => Object.fromEntries(of.map((name) => [name, `${word} ${name}\n`.repeat(60)]));

/** A project of many files, all of which another branch has changed and as many added, and a worktree of it. */
async function ground() {
  const project = makeProject(filesOf("first"));
  git(project, "switch", "-q", "-c", "changed");
  for (const [name, text] of Object.entries({ ...filesOf("second"), ...filesOf("second", ["new/one.txt", "new/two.txt"]) })) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "everything changed");
  const commit = git(project, "rev-parse", "HEAD");
  git(project, "switch", "-q", "main");
  const path = join(temporaryFolder(), "tree");
  const open = async (kept: boolean) => {
    const repo = (await openRepo(testGit(), project))!;
    await addWorktree(repo, { path, branch: "work", base: repo.head!, kept });
    return { repo, tree: treeOf(repo, path, "work") };
  };
  await open(false);
  return { project, path, commit, open };
}

/** Git writes its files in the order of their names. */
const hasBegun = (path: string) => () => existsSync(join(path, "new", "one.txt"));
const isHalf = (path: string) => !readFileSync(join(path, "src/f999.txt"), "utf8").startsWith("second");

/** The lock that a git leaves which was cut off at this very moment, a while ago. */
function leaveLock(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.lock`, "");
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(`${file}.lock`, longAgo, longAgo);
}

function expectMerged(path: string): void {
  for (const name of [...names, "new/one.txt", "new/two.txt"]) expect(readFileSync(join(path, name), "utf8")).toMatch(/^second/);
}

test("a merge that is killed while it writes its files is made by the next one", async () => {
  const { project, path, commit, open } = await ground();
  await cutOff(project, path, hasBegun(path), { merge: commit });
  expect(isHalf(path)).toBe(true);
  leaveLock(join(git(path, "rev-parse", "--absolute-git-dir"), "ORIG_HEAD"));
  const { repo, tree } = await open(true);
  expect((await mergeInto(repo, tree, { commit, message: "Merge" })).conflicts).toEqual([]);
  expectMerged(path);
  expect(git(path, "status", "--porcelain")).toBe("");
  expect(git(path, "log", "-1", "--format=%s")).toBe("Merge");
}, 60_000);

test("a merge that somebody is to settle, killed while it writes its files, is begun by the next one", async () => {
  const { project, path, commit, open } = await ground();
  await cutOff(project, path, hasBegun(path), { begin: commit });
  expect(isHalf(path)).toBe(true);
  const { tree } = await open(true);
  expect(await beginMerge(tree, commit)).toEqual([]);
  expectMerged(path);
  expect(git(path, "rev-parse", "MERGE_HEAD")).toBe(commit);
}, 60_000);

test("whoever is killed while files are put aside has the next one put them aside", async () => {
  const { project, path, open } = await ground();
  for (const [name, text] of Object.entries(filesOf("left"))) {
    mkdirSync(join(path, "left"), { recursive: true });
    writeFileSync(join(path, name.replace("src/", "left/")), text);
  }
  const record = git(path, "rev-parse", "--absolute-git-dir");
  // The index that is read first has a lock too, for a moment.
  const isAdding = () => readdirSync(record).filter((name) => name.startsWith("index-")).length === 2;
  expect(await cutOff(project, path, isAdding, { aside: "refs/swarm/work/left" })).toBe(true);
  leaveLock(join(project, ".git", "refs", "swarm", "work", "left"));
  const { tree } = await open(true);
  expect(await setAside(tree, "refs/swarm/work/left")).toBe("refs/swarm/work/left");
  expect(git(path, "status", "--porcelain")).toBe("");
  expect(git(path, "ls-tree", "-r", "--name-only", "refs/swarm/work/left", "left/").split("\n")).toHaveLength(FILES);
}, 60_000);

test("whoever is killed while the tree is made clean has put aside what is gone from it", async () => {
  const { path, open } = await ground();
  const { tree } = await open(true);
  for (const name of ["gone.txt", "there.txt"]) writeFileSync(join(path, name), "left\n");
  await setAside(tree, "refs/swarm/work/left");
  // The first had been deleted, the second not yet.
  writeFileSync(join(path, "there.txt"), "left\n");
  await setAside(tree, "refs/swarm/work/left");
  const kept = git(path, "log", "--format=", "-m", "--first-parent", "--name-only", "refs/swarm/work/left", "^HEAD").split("\n");
  const all = git(path, "log", "--format=", "-m", "--name-only", "refs/swarm/work/left", "^HEAD").split("\n");
  expect([kept.includes("there.txt"), all.includes("gone.txt")]).toEqual([true, true]);
});
