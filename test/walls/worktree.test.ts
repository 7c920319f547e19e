import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSandboxProfiles } from "../../src/git/sandbox-profiles.ts";
import { attack, EVERYONE, type Ground, give, makeGround } from "../support/wall.ts";

/** A checkout with a worktree in the data folder, as a pipeline creates it for a run. */
function makeWorktree(ground: Ground, user: "root" | "ordinary", options: readonly string[] = []) {
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
  git("worktree", "add", "-q", ...options, "-b", "swarm/mine", path);
  mkdirSync(join(folder, "worktrees", "stream-2"));
  writeFileSync(join(folder, "worktrees", "stream-2", "code"), "the other stream's");
  writeFileSync(join(folder, "record"), "a record");
  give(ground.home, user);
  give(ground.project, user);
  const profile = createSandboxProfiles({ projectPath: ground.project, folder })(path);
  const state = () =>
    `${git("for-each-ref")} ${git("symbolic-ref", "HEAD")} ${git("status", "--porcelain")} ${readFileSync(join(ground.project, ".git", "config"), "utf8")}`;
  return { folder, path, profile, state };
}

test.each(EVERYONE)("a stream's agent works in its worktree and can read its history (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { path, profile } = makeWorktree(ground, user);
  const { stdout } = await attack({
    ...{ height, user, ground, cwd: path, profile },
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
  const { folder, path, profile, state } = makeWorktree(ground, user);
  const before = state();
  const marker = readFileSync(join(path, ".git"), "utf8");
  for (const [name, script] of ATTACKS) {
    await attack({ height, user, ground, cwd: path, profile, script: script({ ...ground, path }) });
    expect(state(), name).toBe(before);
    expect(readFileSync(join(path, ".git"), "utf8"), name).toBe(marker);
  }
  expect(readFileSync(join(folder, "worktrees", "stream-2", "code"), "utf8")).toBe("the other stream's");
  expect(readFileSync(join(folder, "record"), "utf8")).toBe("a record");
});

test.each(EVERYONE)(
  "git in a repository deeper inside a workspace forgets no worktree that it does not see (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const git = (cwd: string, ...args: string[]) =>
      execFileSync(
        "git",
        [
          ...["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "safe.directory=*", "-c", "protocol.file.allow=always"],
          ...args,
        ],
        { cwd, encoding: "utf8" },
      );
    const start = (cwd: string) => {
      mkdirSync(cwd, { recursive: true });
      git(cwd, "init", "-q", "-b", "main");
      git(cwd, "commit", "-q", "--allow-empty", "-m", "start");
    };
    // A repository inside another, one in a plain folder, a submodule, and a bare repository.
    start(ground.project);
    const source = join(ground.userHome, "work", "library");
    start(source);
    git(ground.project, "submodule", "--quiet", "add", source, "libs/library");
    start(join(ground.project, "packages", "one"));
    start(join(ground.project, "packages", "group", "deep", "two"));
    git(ground.project, "clone", "-q", "--bare", source, join(ground.project, "mirror.git"));
    const inside = ["packages/one", "packages/group/deep/two", "libs/library", "mirror.git"];
    const repositories = inside.map((path) => join(ground.project, path));
    for (const [index, cwd] of repositories.entries())
      git(cwd, "worktree", "add", "-q", "--detach", join(ground.userHome, "elsewhere", `of-${index}`));
    give(ground.userHome, user);
    const listed = () => repositories.map((cwd) => git(cwd, "worktree", "list", "--porcelain").replace(/^prunable.*\n/gm, ""));
    const before = listed();
    for (const script of ["worktree prune -v", "gc -q", "-c gc.worktreePruneExpire=now gc -q"])
      await attack({
        ...{ height, user, ground },
        script: inside.map((path) => `git -C ${path} -c safe.directory='*' ${script}`).join("; "),
      });
    expect(listed()).toEqual(before);
    for (const [index] of repositories.entries())
      expect(git(join(ground.userHome, "elsewhere", `of-${index}`), "status", "--porcelain")).toBe("");
  },
);

test.each(EVERYONE)("git in a workspace forgets no worktree that it does not see there (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { path } = makeWorktree(ground, user, ["--lock"]);
  const theirs = (name: string) => join(ground.userHome, "elsewhere", name);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "safe.directory=*", ...args], { cwd: ground.project, encoding: "utf8" });
  for (const name of ["kept", "locked"]) git("worktree", "add", "-q", "--detach", theirs(name));
  git("worktree", "lock", theirs("locked"));
  // By default, git prunes worktrees that have not been used for three months.
  const record = join(ground.project, ".git", "worktrees", "kept", "index");
  utimesSync(record, 0, 0);
  const inside = join(ground.project, "inside");
  git("worktree", "add", "-q", "--detach", inside);
  give(ground.userHome, user);
  const before = git("worktree", "list", "--porcelain").replace(/^prunable.*\n/gm, "");
  const tried = await attack({
    ...{ height, user, ground },
    script: `git -c gc.worktreePruneExpire=now -c safe.directory='*' gc -q; git -c safe.directory='*' worktree prune; rm -rf inside; git -c safe.directory='*' worktree prune; git -c safe.directory='*' worktree list`,
  });
  // A visible worktree that was deleted is pruned, as anywhere.
  expect(tried.output).not.toContain(`${inside} `);
  const after = git("worktree", "list", "--porcelain").replace(/^prunable.*\n/gm, "");
  expect(after).toBe(before.replace(new RegExp(`^worktree ${inside}\n(?:.+\n)*\n`, "m"), ""));
  expect(execFileSync("git", ["-c", "safe.directory=*", "status", "--porcelain"], { cwd: path, encoding: "utf8" })).toBe("");
  expect(
    execFileSync("git", ["-c", "safe.directory=*", "status", "--porcelain"], { cwd: theirs("kept"), encoding: "utf8" }),
  ).toBe("");
});
