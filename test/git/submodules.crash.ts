import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mergeInto } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, treeOf } from "../../src/git/worktrees.ts";
import { cutOff } from "../support/cut-off.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const FILES = 800;
const filesOf = (word: string) =>
  Object.fromEntries(Array.from({ length: FILES }, (_, at) => [`src/f${at}.txt`, `${word} ${at}\n`.repeat(40)]));

/** A project with a large library as a submodule, and the path for its worktree. */
function ground() {
  const library = makeProject(filesOf("first"));
  const project = makeProject();
  git(project, "submodule", "--quiet", "add", library, "vendor/lib");
  git(project, "commit", "-q", "-m", "a library");
  const path = join(temporaryFolder(), "tree");
  return { library, project, path, files: join(path, "vendor", "lib", "src") };
}

function expectComplete(path: string, word: string): void {
  const place = join(path, "vendor", "lib");
  expect(readdirSync(join(place, "src"))).toHaveLength(FILES);
  for (const at of [0, 7, FILES - 1]) expect(readFileSync(join(place, "src", `f${at}.txt`), "utf8")).toMatch(`${word} ${at}\n`);
  expect([git(path, "status", "--porcelain"), git(place, "status", "--porcelain")]).toEqual(["", ""]);
}

test("a kill while a worktree's submodule is filled does not break the next attempt", async () => {
  const { project, path, files } = ground();
  const records = join(project, ".git", "worktrees");
  const isCloning = () =>
    existsSync(records) && readdirSync(records).some((name) => existsSync(join(records, name, "modules", "vendor")));
  const isFilling = () => existsSync(files) && readdirSync(files).length > 0;
  for (const isThere of [isCloning, isFilling, isFilling]) await cutOff(project, path, isThere);
  const repo = (await openRepo(testGit(), project))!;
  await addWorktree(repo, { path, branch: "work", base: repo.head! });
  expectComplete(path, "first");
});

test("a kill while a merge updates a submodule does not break the next attempt", async () => {
  const { library, project, path, files } = ground();
  const repo = (await openRepo(testGit(), project))!;
  await addWorktree(repo, { path, branch: "work", base: repo.head! });
  for (const [name, text] of Object.entries(filesOf("second"))) writeFileSync(join(library, name), text);
  git(library, "commit", "-q", "-a", "-m", "moved on");
  git(join(project, "vendor", "lib"), "pull", "-q");
  git(project, "switch", "-q", "-c", "moved");
  git(project, "commit", "-q", "-a", "-m", "the library as it is now");
  const commit = git(project, "rev-parse", "HEAD").trim();
  git(project, "switch", "-q", "--recurse-submodules", "-");
  const isMoving = () => textOf(join(files, "f0.txt")).startsWith("second");
  expect(await cutOff(project, path, isMoving, { merge: commit })).toBe(true);
  const tree = treeOf(repo, path, "work");
  await mergeInto(repo, tree, { commit, message: "Merge" });
  expectComplete(path, "second");
});

/** Empty for the moment in which git has taken a file away and not put the new one there yet. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
