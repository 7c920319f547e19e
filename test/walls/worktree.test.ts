import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createStands } from "../../src/git/stand.ts";
import { attack, EVERYONE, type Ground, give, makeGround } from "../support/wall.ts";

/** A checkout with a worktree of a run in the data folder, as a pipeline makes them. */
function makeWorktree(ground: Ground, user: "root" | "ordinary") {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "safe.directory=*", ...args], {
      cwd: ground.project,
      encoding: "utf8",
    }).trim();
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "start");
  git("branch", "precious");
  const folder = join(ground.home, "runs", "mine");
  const path = join(folder, "worktrees", "stream-1");
  mkdirSync(join(path, ".."), { recursive: true });
  git("worktree", "add", "-q", "-b", "swarm/mine", path);
  mkdirSync(join(folder, "worktrees", "stream-2"));
  writeFileSync(join(folder, "worktrees", "stream-2", "code"), "the other stream's");
  writeFileSync(join(folder, "record"), "a record");
  give(ground.home, user);
  give(ground.project, user);
  const stand = createStands({ projectPath: ground.project, folder })(path);
  const state = () =>
    `${git("for-each-ref")} ${git("symbolic-ref", "HEAD")} ${git("status", "--porcelain")} ${readFileSync(join(ground.project, ".git", "config"), "utf8")}`;
  return { folder, path, stand, state };
}

test.each(EVERYONE)("a stream's agent works in its worktree and can read its history (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { path, stand } = makeWorktree(ground, user);
  const { stdout } = await attack({
    ...{ height, user, ground, cwd: path, stand },
    script:
      "echo changed > code; mkdir -p a/b; echo new > a/b/c; git log --oneline | wc -l; git status --short; git diff | tail -1",
  });
  expect(stdout.trim()).toBe("1\n M code\n?? a/\n+changed");
  expect(readFileSync(join(path, "code"), "utf8")).toBe("changed\n");
});

const ATTACKS: [string, (at: Ground & { path: string }) => string][] = [
  ["the checkout's files", ({ project }) => `echo x > ${project}/code; rm -f ${project}/code; touch ${project}/new`],
  [
    "its branches by git",
    () =>
      "git branch -D precious; git update-ref refs/heads/main HEAD~0 --no-deref; git update-ref -d refs/heads/precious; git checkout -q precious; git commit -qam mine",
  ],
  [
    "its branches by hand",
    ({ project }) =>
      `rm -rf ${project}/.git/refs; echo 0 > ${project}/.git/refs/heads/main; echo x > ${project}/.git/packed-refs`,
  ],
  [
    "its settings and hooks",
    ({ project }) =>
      `git config core.pager evil; echo evil >> ${project}/.git/config; echo evil > ${project}/.git/hooks/post-commit`,
  ],
  ["its objects", ({ project }) => `rm -rf ${project}/.git/objects; git gc --prune=now -q`],
  [
    "where the worktree belongs",
    ({ path }) =>
      `echo gitdir: /tmp > ${path}/.git; rm -f ${path}/.git; mv ${path}/.git ${path}/g; git init -q ${path}/x --separate-git-dir=${path}/.git`,
  ],
  [
    "the folders above",
    ({ project, userHome }) => `mv ${project} ${project}2; mv ${userHome}/work ${userHome}/work2; rm -rf ${userHome}/work`,
  ],
  [
    "another stream and the record",
    ({ home }) =>
      `echo x > ${home}/runs/mine/worktrees/stream-2/code; echo x > ${home}/runs/mine/record; rm -rf ${home}/runs/mine`,
  ],
];

test.each(EVERYONE)("a stream's agent writes neither the checkout nor its branches (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { folder, path, stand, state } = makeWorktree(ground, user);
  const before = state();
  const marker = readFileSync(join(path, ".git"), "utf8");
  for (const [name, script] of ATTACKS) {
    await attack({ height, user, ground, cwd: path, stand, script: script({ ...ground, path }) });
    expect(state(), name).toBe(before);
    expect(readFileSync(join(path, ".git"), "utf8"), name).toBe(marker);
  }
  expect(readFileSync(join(folder, "worktrees", "stream-2", "code"), "utf8")).toBe("the other stream's");
  expect(readFileSync(join(folder, "record"), "utf8")).toBe("a record");
});
