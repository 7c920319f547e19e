import { execFileSync } from "node:child_process";
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSnapshots } from "../../src/git/snapshots.ts";
import type { TaskEvidence } from "../../src/protocol/squads.ts";
import { formatEvidence } from "../../src/squads/evidence.ts";
import { quietLog } from "../support/engine.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { project } from "../support/squads.ts";

const snapshots = createSnapshots({ git: testGit(), log: quietLog });

/** The evidence text after a change of the folder's files. */
async function evidenceAfter(folder: string, change: () => void): Promise<string> {
  const treeBefore = await snapshots.take(folder);
  change();
  const treeAfter = treeBefore === null ? null : await snapshots.take(folder);
  const filesChanged = await snapshots.changed(folder, treeBefore, treeAfter);
  return filesLine({ filesChanged, commands: [], treeBefore, treeAfter });
}
const filesLine = (evidence: TaskEvidence) =>
  formatEvidence(evidence, "done")
    .split("\n")
    .find((line) => line.startsWith("Files changed"))!;
const UNKNOWN =
  "Files changed: unknown, git could not tell: there is no repository, or it leaves this folder out, or it is not in order.";

test("changed files are reported; none only if git compared two snapshots and found none", async () => {
  const folder = project({ "a.js": "1\n" });
  expect(await evidenceAfter(folder, () => writeFileSync(join(folder, "b.js"), "2\n"))).toBe(
    "Files changed, by git's account: b.js.",
  );
  expect(await evidenceAfter(folder, () => {})).toBe("Files changed, by git's account: none.");
  const known = { filesChanged: [], commands: [], treeBefore: "a".repeat(40), treeAfter: null };
  expect(filesLine(known)).toBe("Files changed: unknown, git could not tell at the end.");
});

test("a repository damaged before or during the work is reported neither as missing nor as unchanged", async () => {
  const folder = project();
  const damage = () => writeFileSync(join(folder, ".git", "index"), "no index");
  expect(await evidenceAfter(folder, damage)).toBe("Files changed: unknown, git could not tell at the end.");
  expect(await evidenceAfter(folder, () => {})).toBe(UNKNOWN);
  const other = project();
  const before = await snapshots.take(other);
  expect(await snapshots.changed(other, before, "1".repeat(40))).toEqual(["… which ones, git could not tell"]);
});

test("an unfinished merge in another folder of the repository does not hide changes", async () => {
  const root = project({ "else where/ä.txt": "first\n", "app/a.js": "1\n" });
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@localhost", ...args], { cwd: root, stdio: "ignore" });
  const commit = (text: string) => {
    writeFileSync(join(root, "else where", "ä.txt"), text);
    git("commit", "-qam", text);
  };
  git("checkout", "-qb", "other");
  commit("theirs\n");
  git("checkout", "-q", "-");
  commit("ours\n");
  expect(() => git("merge", "-q", "other")).toThrow();
  const app = join(root, "app");
  expect(await evidenceAfter(app, () => writeFileSync(join(app, "b.js"), "2\n"))).toBe("Files changed, by git's account: b.js.");
  const status = () => execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  expect(status()).toContain("UU ");
});

test("nothing is claimed about a folder that an outer repository ignores, or one outside any repository", async () => {
  const root = project({ ".gitignore": "work/\n" });
  const inside = join(root, "work", "app");
  mkdirSync(inside, { recursive: true });
  writeFileSync(join(inside, "a.js"), "1\n");
  expect(await evidenceAfter(inside, () => writeFileSync(join(inside, "b.js"), "2\n"))).toBe(UNKNOWN);
  const outside = realpathSync(temporaryFolder());
  expect(await evidenceAfter(outside, () => writeFileSync(join(outside, "b.js"), "2\n"))).toBe(UNKNOWN);
  rmSync(join(root, ".gitignore"));
  expect(await evidenceAfter(inside, () => writeFileSync(join(inside, "c.js"), "3\n"))).toBe(
    "Files changed, by git's account: c.js.",
  );
});
