import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applyBranch } from "../../src/git/apply.ts";
import { openRepo } from "../../src/git/repository.ts";
import { testGit } from "../support/git.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const RESULT = "swarm/r_1";
const NOTES = "refs/swarm/r_1/applying";

/** A checkout on main, a branch with a result, and a function that merges it into the checkout. */
function scene(result: Record<string, string> = { "new.txt": "new\n", "a.txt": "a of the run\n" }) {
  const project = makeProject({ "a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.secret\n" });
  const base = git(project, "rev-parse", "HEAD");
  const put = (files: Record<string, string>, message: string) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
    git(project, "add", "-A", "-f");
    git(project, "commit", "-q", "-m", message);
  };
  git(project, "switch", "-q", "-c", RESULT);
  put(result, "the result");
  git(project, "switch", "-q", "main");
  const apply = async () => {
    const repo = (await openRepo(testGit(), project))!;
    return applyBranch({ repo, branch: RESULT, base, notes: NOTES });
  };
  const read = (name: string) => readFileSync(join(project, name), "utf8");
  return { project, base, put, apply, read, git: (...words: string[]) => git(project, ...words) };
}

/** Everything of the user's in a checkout: files, index, head, branches, and unfinished git operations. */
function everythingOf(project: string): Record<string, string> {
  const has = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "index.lock"];
  return {
    status: git(project, "status", "--porcelain=v2", "--branch", "--ignored"),
    refs: git(project, "for-each-ref"),
    stash: git(project, "stash", "list"),
    index: git(project, "ls-files", "--stage"),
    diff: git(project, "diff"),
    begun: has.filter((name) => existsSync(join(project, ".git", name))).join(),
  };
}

const failing = (work: () => void) => expect(work).toThrow();

/** A branch whose change to b.txt conflicts with one on main. */
function clash({ put, git: run }: ReturnType<typeof scene>): void {
  run("switch", "-q", "-c", "theirs");
  put({ "b.txt": "b of theirs\n" }, "theirs");
  run("switch", "-q", "main");
  put({ "b.txt": "b of main\n" }, "mine");
}

test.each<[string, (at: ReturnType<typeof scene>) => void, string]>([
  ["a merge", ({ git: run }) => failing(() => run("merge", "theirs")), "git merge --continue   # or: git merge --abort"],
  ["a rebase", ({ git: run }) => failing(() => run("rebase", "theirs")), "git rebase --continue   # or: git rebase --abort"],
  [
    "a rebase by patches",
    ({ git: run }) => failing(() => run("rebase", "--apply", "theirs")),
    "git rebase --continue   # or: git rebase --abort",
  ],
  [
    "a cherry-pick",
    ({ git: run }) => failing(() => run("cherry-pick", "theirs")),
    "git cherry-pick --continue   # or: git cherry-pick --abort",
  ],
  [
    "patches",
    ({ git: run, project }) => {
      writeFileSync(join(project, "..", "one.patch"), `${run("format-patch", "-1", "--stdout", "theirs")}\n`);
      failing(() => run("am", "../one.patch"));
    },
    "git am --continue   # or: git am --abort",
  ],
  [
    "a revert",
    ({ put, git: run }) => {
      put({ "b.txt": "b once more\n" }, "more");
      failing(() => run("revert", "--no-edit", "HEAD~1"));
    },
    "git revert --continue   # or: git revert --abort",
  ],
  [
    "a cherry-pick of several, one of them settled",
    ({ put, git: run, project }) => {
      run("switch", "-q", "theirs");
      put({ "c.txt": "c\n" }, "and more");
      run("switch", "-q", "main");
      failing(() => run("cherry-pick", "theirs~1", "theirs"));
      writeFileSync(join(project, "b.txt"), "settled\n");
      run("commit", "-q", "-am", "settled");
    },
    "git cherry-pick --continue   # or: git cherry-pick --abort",
  ],
  [
    "a squashed merge",
    ({ git: run }) => void run("merge", "-q", "--squash", "theirs~0^0", "-Xours"),
    "git commit   # or: git reset --merge",
  ],
  [
    "the lock of another git",
    ({ project }) => writeFileSync(join(project, ".git", "index.lock"), ""),
    "index.lock   # only if no git is running there",
  ],
  [
    "the lock of the branch",
    ({ project }) => writeFileSync(join(project, ".git", "refs", "heads", "main.lock"), ""),
    "main.lock   # only if no git is running there",
  ],
])("while there is %s in the checkout nothing is applied and nothing of it is touched", async (_, begin, command) => {
  const at = scene();
  clash(at);
  begin(at);
  const before = everythingOf(at.project);
  const said = await at.apply();
  expect(said?.commands.join("\n")).toContain(command);
  expect(said?.commands).toContain(`git merge ${RESULT}`);
  expect(everythingOf(at.project)).toEqual(before);
});

test("a bisect on a branch, a detached head and a branch that was reset are left as they are", async () => {
  const bisecting = scene();
  bisecting.put({ "c.txt": "c\n" }, "more");
  bisecting.git("bisect", "start", "HEAD", "HEAD~1");
  bisecting.git("switch", "-q", "main");
  expect(await bisecting.apply()).toMatchObject({
    why: expect.stringContaining("bisect"),
    commands: ["git bisect reset", expect.anything()],
  });

  const detached = scene();
  detached.git("switch", "-q", "--detach");
  expect(await detached.apply()).toMatchObject({ why: expect.stringContaining("detached head") });

  const reset = scene();
  reset.git("switch", "-q", "--orphan", "fresh");
  reset.put({ "z.txt": "z\n" }, "another beginning");
  reset.git("branch", "-q", "-f", "main", "HEAD");
  reset.git("switch", "-q", "main");
  const before = everythingOf(reset.project);
  expect(await reset.apply()).toMatchObject({ why: expect.stringMatching(/no longer holds .* reset, amended or rebased/) });
  expect(everythingOf(reset.project)).toEqual(before);
});

test.each<[string, (at: ReturnType<typeof scene>) => void, string]>([
  ["a changed file", ({ project }) => writeFileSync(join(project, "a.txt"), "mine\n"), "a.txt"],
  ["a file that was emptied", ({ project }) => writeFileSync(join(project, "a.txt"), ""), "a.txt"],
  ["an untracked file", ({ project }) => writeFileSync(join(project, "new.txt"), "mine\n"), "new.txt"],
  ["a file that git ignores", ({ project }) => writeFileSync(join(project, "key.secret"), "mine\n"), "key.secret"],
])("%s in the way is not overwritten, stashed or committed, even where the repository says to stash", async (_, lay, name) => {
  const at = scene({ "new.txt": "new\n", "a.txt": "a of the run\n", "key.secret": "of the run\n" });
  at.git("config", "merge.autoStash", "true");
  lay(at);
  const before = everythingOf(at.project);
  const said = await at.apply();
  expect(said?.why).toContain(name);
  expect(said?.commands).toEqual([`git stash push --all -- ${name}`, `git merge ${RESULT}`, "git stash pop"]);
  expect(everythingOf(at.project)).toEqual(before);
});

test("a conflict is found beside the checkout; a result that goes beside the user's own commits becomes a merge", async () => {
  const at = scene();
  at.put({ "a.txt": "a of main\n" }, "mine");
  const before = everythingOf(at.project);
  expect(await at.apply()).toMatchObject({ why: expect.stringContaining("both sides changed a.txt") });
  expect(everythingOf(at.project)).toEqual(before);

  const beside = scene();
  beside.put({ "b.txt": "b of main\n" }, "mine");
  const mine = beside.git("rev-parse", "HEAD");
  writeFileSync(join(beside.project, "README.md"), "not committed\n");
  expect(await beside.apply()).toBeUndefined();
  expect(beside.git("rev-list", "--parents", "-n", "1", "HEAD").split(" ").slice(1)).toEqual([
    mine,
    beside.git("rev-parse", RESULT),
  ]);
  expect([beside.read("a.txt"), beside.read("b.txt"), beside.read("README.md")]).toEqual([
    "a of the run\n",
    "b of main\n",
    "not committed\n",
  ]);
  expect(beside.git("for-each-ref", "refs/swarm")).toBe("");
});

/** Kills git while it writes a file in the middle of the move, as when the machine or the daemon dies. */
function cutOff(at: ReturnType<typeof scene>): void {
  at.git("update-ref", `${NOTES}/from`, "main");
  at.git("update-ref", `${NOTES}/to`, RESULT);
  mkdirSync(join(at.project, ".git", "info"), { recursive: true });
  writeFileSync(join(at.project, ".git", "info", "attributes"), "middle.txt filter=killer\n");
  at.git("config", "filter.killer.smudge", "kill -9 $PPID");
  failing(() => at.git("merge", "-q", "--ff-only", RESULT));
  rmSync(join(at.project, ".git", "info", "attributes"));
  // The lock is as old as when somebody comes back to it.
  utimesSync(join(at.project, ".git", "index.lock"), new Date(0), new Date(0));
}

const WIDE = { "a.txt": "a of the run\n", "middle.txt": "m\n", "zz.txt": "z\n" };

test("a move of the checkout that was killed in the middle is made whole by the next life", async () => {
  const at = scene(WIDE);
  writeFileSync(join(at.project, "b.txt"), "not committed\n");
  cutOff(at);
  expect([at.read("a.txt"), existsSync(join(at.project, "zz.txt"))]).toEqual(["a of the run\n", false]);
  expect(await at.apply()).toBeUndefined();
  expect(at.git("rev-parse", "main")).toBe(at.git("rev-parse", RESULT));
  expect(at.git("status", "--porcelain")).toBe("M b.txt");
  expect(at.git("for-each-ref", "refs/swarm")).toBe("");
});

test("what the user changed after the move was killed is theirs, and is named", async () => {
  const at = scene(WIDE);
  cutOff(at);
  writeFileSync(join(at.project, "a.txt"), "mine by now\n");
  expect(await at.apply()).toMatchObject({ why: expect.stringContaining("a.txt changed since") });
  expect(at.read("a.txt")).toBe("mine by now\n");
  expect(at.git("rev-parse", "main")).toBe(at.base);
});

test("a move that was killed after the files and before the branch, or after both, ends whole too", async () => {
  const before = scene(WIDE);
  before.git("update-ref", `${NOTES}/from`, "main");
  before.git("update-ref", `${NOTES}/to`, RESULT);
  before.git("read-tree", "-m", "-u", "main", RESULT);
  expect(await before.apply()).toBeUndefined();
  expect(before.git("rev-parse", "main")).toBe(before.git("rev-parse", RESULT));
  expect(before.git("status", "--porcelain")).toBe("");

  const after = scene(WIDE);
  after.git("merge", "-q", "--ff-only", RESULT);
  after.git("update-ref", `${NOTES}/from`, after.base);
  after.git("update-ref", `${NOTES}/to`, RESULT);
  expect(await after.apply()).toBeUndefined();
  expect(after.git("for-each-ref", "refs/swarm")).toBe("");
});
