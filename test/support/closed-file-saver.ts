import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, commitAll, treeOf } from "../../src/git/worktrees.ts";
import { testGit } from "./git.ts";

/** Commits a worktree that contains files without read permission, and prints the result. Runs as an unprivileged user. */
const top = mkdtempSync(join(tmpdir(), "c-"));
const project = join(top, "project");
mkdirSync(project);
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@t", ...args], { cwd: project, encoding: "utf8" }).trim();
git("init", "-q", "-b", "main");
git("commit", "-q", "--allow-empty", "-m", "start");
const repo = (await openRepo(testGit(), project))!;
const path = join(top, "run", "worktrees", "run");
await addWorktree(repo, { path, branch: "work", base: repo.head! });
for (const name of ["open.txt", "closed.txt", "folder/closed too.txt", "folder/open.txt"]) {
  mkdirSync(join(path, name, ".."), { recursive: true });
  writeFileSync(join(path, name), `${name}\n`);
  if (name.includes("closed")) chmodSync(join(path, name), 0);
}
const notes: string[] = [];
await commitAll(repo, treeOf(repo, path, "work"), "work", (text) => notes.push(text));
process.stdout.write(JSON.stringify({ saved: git("ls-tree", "-r", "--name-only", "work").split("\n"), notes }));
