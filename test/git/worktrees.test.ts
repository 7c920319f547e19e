import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, removeWorktree } from "../../src/git/worktrees.ts";
import { testGit, walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

test("worktrees created at the same time do not interfere", { timeout: 120_000 }, async () => {
  const home = temporaryFolder();
  const project = makeProject();
  const found = (await openRepo(testGit(), project))!;
  // Like two runs on one repository, each with its own git instance.
  const folders = ["one", "two"].map((name) => join(home, "runs", name));
  const repos = folders.map((folder) => ({ ...found, git: found.git.with({ writable: [folder] }) }));
  const added: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    const wanted = Array.from({ length: 16 }, (_, index) => ({
      repo: repos[index % 2]!,
      path: join(folders[index % 2]!, "worktrees", `${round}-${index}`),
      branch: `swarm/${round}-${index}`,
    }));
    const how = await Promise.all(wanted.map(({ repo, ...tree }) => addWorktree(repo, { ...tree, base: found.head! })));
    added.push(...how);
    expect(wanted.filter(({ path }) => !existsSync(join(path, "README.md")))).toEqual([]);
  }
  expect(new Set(added)).toEqual(new Set(["made"]));
});

test("a checkout is scanned once, and only when its changes are requested", async () => {
  const project = makeProject();
  writeFileSync(join(project, "new.txt"), "not committed\n");
  const plain = testGit();
  const asked: string[] = [];
  const recording: typeof plain = {
    ...plain,
    run: (cwd, args, options) => {
      asked.push(args[0]!);
      return plain.run(cwd, args, options);
    },
  };
  const repo = (await openRepo(recording, project))!;
  expect(repo).toMatchObject({ head: git(project, "rev-parse", "HEAD"), branch: "main" });
  expect(asked).not.toContain("status");
  expect(await Promise.all([repo.status(), repo.status()])).toMatchObject([{ dirty: true }, { dirty: true }]);
  expect(asked.filter((word) => word === "status")).toHaveLength(1);
});

test.each(["secrets", "workspace"] as const)(
  "creating, finding and removing a worktree in the sandbox leaves every other one registered (%s)",
  { timeout: 60_000 },
  async (height) => {
    const home = temporaryFolder();
    const elsewhere = temporaryFolder();
    const project = makeProject();
    const { git: walled } = walledGit(home, process.env, height);
    const found = (await openRepo(walled, project))!;
    const repoOf = (run: string) => ({ ...found, git: found.git.with({ writable: [join(home, "runs", run)] }) });
    const treeIn = (run: string) => ({
      path: join(home, "runs", run, "worktrees", "run"),
      branch: `swarm/${run}`,
      base: found.head!,
    });
    for (const name of ["mine", "locked", "unmounted"]) git(project, "worktree", "add", "-q", "--detach", join(elsewhere, name));
    git(project, "worktree", "lock", join(elsewhere, "locked"));
    rmSync(join(elsewhere, "unmounted"), { recursive: true });
    await addWorktree(repoOf("one"), treeIn("one"));
    const registered = () =>
      git(project, "worktree", "list", "--porcelain")
        .split("\n")
        .filter((line) => line.startsWith("worktree "))
        .sort();
    const others = registered();
    const two = treeIn("two");
    // Three cases: its branch exists, so the first attempt fails; its creation was interrupted; its files are gone.
    git(project, "branch", two.branch);
    expect(await addWorktree(repoOf("two"), two)).toBe("found");
    rmSync(join(two.path, "README.md"));
    expect(await addWorktree(repoOf("two"), two)).toBe("found");
    expect(readFileSync(join(two.path, "README.md"), "utf8")).toBe("A project.\n");
    rmSync(two.path, { recursive: true });
    expect(await addWorktree(repoOf("two"), two)).toBe("found");
    expect(registered()).toEqual([...others, `worktree ${two.path}`].sort());
    expect(await removeWorktree(repoOf("two"), two.path, two.branch)).toBe("removed");
    expect(registered()).toEqual(others);
    // The user's own commands, which cannot see the data folder, prune only the user's worktrees.
    git(project, "worktree", "prune");
    expect(registered()).toEqual(others.filter((line) => !line.endsWith("/unmounted")));
  },
);

test("a worktree whose .git was deleted is reconnected to its repository with its work", async () => {
  const project = makeProject();
  const repo = (await openRepo(testGit(), project))!;
  const tree = { path: join(temporaryFolder(), "worktrees", "run"), branch: "swarm/one", base: repo.head! };
  await addWorktree(repo, tree);
  writeFileSync(join(tree.path, "work.txt"), "not committed\n");
  rmSync(join(tree.path, ".git"));
  expect(await addWorktree(repo, { ...tree, kept: true })).toBe("found");
  expect(git(tree.path, "status", "--porcelain")).toBe("?? work.txt");
  expect(git(tree.path, "symbolic-ref", "--short", "HEAD")).toBe("swarm/one");
});
