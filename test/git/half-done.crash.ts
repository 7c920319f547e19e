import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
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
import type { Work } from "../support/worktree-maker.ts";

const FILES = 1_500;
const names = Array.from({ length: FILES }, (_, at) => `src/f${at}.txt`);
const filesOf = (word: string, of = names) => Object.fromEntries(of.map((name) => [name, `${word} ${name}\n`.repeat(60)]));

/** A project with many files, a branch that changes all of them and adds two, and a worktree. */
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

/** Retries until the kill lands mid-operation; on a busy machine it may come too late. */
async function untilKilledMidway(attempt: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) if (await attempt()) return;
  throw new Error("it was never in the middle of it");
}

/** Kills a merge after its first file and before its last; git writes files in order of their names. */
function killMerge(project: string, path: string, work: Work): Promise<void> {
  const record = git(path, "rev-parse", "--absolute-git-dir");
  const base = git(path, "rev-parse", "HEAD");
  return untilKilledMidway(async () => {
    await cutOff(project, path, () => existsSync(join(path, "new", "one.txt")), work);
    const last = join(path, "src/f999.txt");
    if (!existsSync(last) || !readFileSync(last, "utf8").startsWith("second")) return true;
    rmSync(join(record, "index.lock"), { force: true });
    git(path, "reset", "-q", "--hard", base);
    git(path, "clean", "-q", "-fd");
    return false;
  });
}

/** Creates a stale lock, as left by an interrupted git. */
function leaveLock(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.lock`, "");
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(`${file}.lock`, longAgo, longAgo);
}

function expectMerged(path: string): void {
  for (const name of [...names, "new/one.txt", "new/two.txt"]) expect(readFileSync(join(path, name), "utf8")).toMatch(/^second/);
}

test("a merge killed while writing files is completed by the next one", async () => {
  const { project, path, commit, open } = await ground();
  await killMerge(project, path, { merge: commit });
  leaveLock(join(git(path, "rev-parse", "--absolute-git-dir"), "ORIG_HEAD"));
  const { repo, tree } = await open(true);
  expect((await mergeInto(repo, tree, { commit, message: "Merge" })).conflicts).toEqual([]);
  expectMerged(path);
  expect(git(path, "status", "--porcelain")).toBe("");
  expect(git(path, "log", "-1", "--format=%s")).toBe("Merge");
}, 120_000);

test("a merge with conflicts to resolve, killed while writing files, is started again by the next one", async () => {
  const { project, path, commit, open } = await ground();
  await killMerge(project, path, { begin: commit });
  const { tree } = await open(true);
  expect(await beginMerge(tree, commit)).toEqual([]);
  expectMerged(path);
  expect(git(path, "rev-parse", "MERGE_HEAD")).toBe(commit);
}, 120_000);

test("if setting files aside is killed, the next attempt completes it", async () => {
  const { project, path, open } = await ground();
  const record = git(path, "rev-parse", "--absolute-git-dir");
  // Reading the index takes a lock first, for a moment.
  const isAdding = () => readdirSync(record).filter((name) => name.startsWith("index-")).length === 2;
  await untilKilledMidway(() => {
    mkdirSync(join(path, "left"), { recursive: true });
    for (const [name, text] of Object.entries(filesOf("left"))) writeFileSync(join(path, name.replace("src/", "left/")), text);
    return cutOff(project, path, isAdding, { aside: "refs/swarm/work/left" });
  });
  leaveLock(join(project, ".git", "refs", "swarm", "work", "left"));
  const { tree } = await open(true);
  expect(await setAside(tree, "refs/swarm/work/left")).toBe("refs/swarm/work/left");
  expect(git(path, "status", "--porcelain")).toBe("");
  expect(git(path, "ls-tree", "-r", "--name-only", "refs/swarm/work/left", "left/").split("\n")).toHaveLength(FILES);
}, 120_000);

test("if cleaning the tree is killed, everything it deleted was set aside before", async () => {
  const { path, open } = await ground();
  const { tree } = await open(true);
  for (const name of ["gone.txt", "there.txt"]) writeFileSync(join(path, name), "left\n");
  await setAside(tree, "refs/swarm/work/left");
  // The first file was deleted, the second was not yet.
  writeFileSync(join(path, "there.txt"), "left\n");
  await setAside(tree, "refs/swarm/work/left");
  const kept = git(path, "log", "--format=", "-m", "--first-parent", "--name-only", "refs/swarm/work/left", "^HEAD").split("\n");
  const all = git(path, "log", "--format=", "-m", "--name-only", "refs/swarm/work/left", "^HEAD").split("\n");
  expect([kept.includes("there.txt"), all.includes("gone.txt")]).toEqual([true, true]);
});
