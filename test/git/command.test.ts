import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { NAMELESS, openRepo } from "../../src/git/repository.ts";
import { AND_STATE } from "../../src/git/scripts.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { projectEnvironment } from "../../src/process/environment.ts";
import type { Wrap } from "../../src/process/sandbox.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { makeProject, git as plainGit } from "../support/swarm/index.ts";

/** Runs another program in place of git. */
const instead =
  (...argv: [string, ...string[]]): Wrap =>
  async () =>
    argv;

test("git gets no secrets, nothing that redirects it to another repository, and never prompts", async () => {
  const set = {
    MY_API_KEY: "hush",
    INNOCENT: "known-to-the-redactor",
    MIRROR: "https://me:pass@mirror.invalid/",
    GIT_DIR: "/elsewhere",
    GIT_TRACE2_EVENT: "/tmp/trace",
    GIT_CONFIG_PARAMETERS: "'core.fsmonitor=evil'",
    IO_HOME: "/io",
    ORDINARY: "kept",
  };
  const env = { PATH: process.env.PATH, ...set };
  const environment = () => projectEnvironment(env, createRedactor(["known-to-the-redactor"]));
  const git = testGit({ wrap: instead("env"), environment }, env);
  const { stdout } = await git.run(temporaryFolder(), ["status"], { env: { GIT_INDEX_FILE: "/index" } });
  const lines = stdout.split("\n");
  const names = Object.keys(set).filter((name) => lines.some((line) => line.startsWith(`${name}=`)));
  expect(names).toEqual(["ORDINARY"]);
  const told = [
    "GIT_TERMINAL_PROMPT=0",
    "LC_ALL=C",
    "GIT_INDEX_FILE=/index",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ALLOW_PROTOCOL=",
  ];
  expect(lines).toEqual(expect.arrayContaining(told));
});

test("every call disables the repository's hooks and helpers, and the sandbox sees the whole command", async () => {
  const seen: unknown[] = [];
  const wrap: Wrap = async (argv, cwd, options) => {
    seen.push(argv, cwd, options);
    return [...argv];
  };
  const folder = temporaryFolder();
  const git = testGit({ wrap }).with({ writable: ["/w"] });
  const { stdout } = await git.run(folder, ["config", "--list"], { writable: ["/v"], settings: ["a.b=c"] });
  expect(stdout.split("\n")).toEqual(expect.arrayContaining(["core.hookspath=/dev/null", "core.fsmonitor=false", "a.b=c"]));
  const [argv, ...where] = seen;
  expect(argv).toEqual([expect.stringMatching(/\/git$/), "--no-pager", "config", "--list"]);
  expect(where).toEqual([folder, expect.objectContaining({ writable: ["/w", "/v"], network: false, access: "read" })]);
});

test("a successful command's output can end with the folder's commit, tree and branch; a failed one's does not", async () => {
  const folder = temporaryFolder();
  const git = testGit().with({ writable: [folder] });
  await git.must(folder, ["init", "-q"]);
  const identity = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
  const commit = () =>
    git.run(folder, [...identity, "commit", "-q", "--allow-empty", "-F", "-"], { input: "'$x'\n", script: AND_STATE });
  const { stdout } = await commit();
  expect(stdout.trim()).toBe(await git.must(folder, ["rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"]));
  expect(await git.must(folder, ["log", "-1", "--format=%s"])).toBe("'$x'");
  expect(await git.run(folder, [...identity, "commit", "-q", "-m", "x"], { script: AND_STATE })).toMatchObject({
    code: 1,
    stdout: expect.not.stringContaining("refs/heads/"),
  });
});

test("a git that hangs is killed at its deadline, and a missing folder or program is a result", async () => {
  const slow = testGit({ wrap: instead("sleep", "60") });
  expect(await slow.run(temporaryFolder(), [], { deadlineMs: 100 })).toMatchObject({ ending: "deadline" });
  const result = await testGit().run("/nowhere/at-all", ["status"]);
  expect(result).toMatchObject({ ending: "not-started", stderr: expect.stringContaining("/nowhere/at-all does not exist") });
  const none = testGit({}, { PATH: temporaryFolder() });
  expect(await none.run("/", ["status"])).toMatchObject({
    ending: "not-started",
    stderr: expect.stringContaining("git was found in no"),
  });
});

test("git gets no access to a folder around the data folder, and a repository inside it is recognised as IO's own", async () => {
  const home = join(realpathSync(temporaryFolder()), "home");
  mkdirSync(home);
  const git = testGit({ home });
  for (const writable of [home, dirname(home), "/"]) {
    const { ending, stderr } = await git.run("/", ["--version"], { writable: [writable] });
    expect([ending, stderr]).toEqual(["not-started", expect.stringContaining("holds IO's data folder")]);
  }
  expect([git.isOwn(join(home, "runs", "x")), git.isOwn(dirname(home)), git.isOwn(`${home}-else`)]).toEqual([true, true, false]);
});

test("git cannot reach the data folder through a link, but sees what IO itself names there", async () => {
  const root = realpathSync(temporaryFolder());
  const [home, project] = [join(root, "home"), join(root, "project")];
  for (const folder of [join(home, "runs"), project]) mkdirSync(folder, { recursive: true });
  symlinkSync(join(home, "runs"), join(project, "link"));
  symlinkSync(home, join(root, "home-by-another-name"));
  const git = testGit({ home });
  const led = await git.run(project, ["--version"], { writable: [join(project, "link")] });
  expect([led.ending, led.stderr]).toEqual(["not-started", expect.stringContaining("leads into IO's data folder")]);
  expect(await git.run(project, ["--version"], { writable: [join(home, "runs")] })).toMatchObject({ code: 0 });
  const other = testGit({ home: join(root, "home-by-another-name") });
  const spelled = join(root, "home-by-another-name", "runs");
  expect(await other.run(project, ["--version"], { writable: [spelled, join(home, "runs")] })).toMatchObject({ code: 0 });
});

test("git gets a fixed list of the user's settings, and nothing from files that are not settings", async () => {
  const home = realpathSync(temporaryFolder());
  const set = (name: string, value: string) =>
    execFileSync("git", ["config", "--file", join(home, ".gitconfig"), "--add", name, value]);
  writeFileSync(join(home, "ignore"), "*.log\n");
  set("user.name", "Ada");
  set("user.email", "ada@example.invalid");
  set("safe.directory", "/srv/a");
  set("safe.directory", "*");
  set("core.excludesFile", "~/ignore");
  set("core.autocrlf", "input");
  set("filter.lfs.process", "git-lfs filter-process");
  set("filter.lfs.clean", "touch /tmp/x");
  set("core.fsmonitor", "touch /tmp/x");
  set("http.proxy", "http://me:secret@proxy.invalid");
  const git = testGit({}, { PATH: process.env.PATH, HOME: home });
  const settings = (await git.run(home, ["config", "--list"], { fetchBy: ["https"] })).stdout.split("\n");
  expect(settings).toEqual(expect.arrayContaining(["safe.directory=/srv/a", "safe.directory=*", "core.autocrlf=input"]));
  expect(settings).toEqual(
    expect.arrayContaining(["filter.lfs.process=git-lfs filter-process", `core.excludesfile=${home}/ignore`]),
  );
  expect(settings.filter((each) => /touch|http\.proxy|user\./.test(each))).toEqual([]);
  expect(await git.user()).toMatchObject({ name: "Ada", email: "ada@example.invalid" });
});

test("a git that prints nothing about a folder does not fall back to this process's working directory", async () => {
  const folder = temporaryFolder();
  execFileSync("git", ["init", "-q", folder]);
  const silent = testGit({ wrap: instead("/bin/true") });
  await expect(openRepo(silent, folder)).rejects.toThrow(`git said nothing of ${folder}`);
  expect((await openRepo(testGit(), folder))?.root).toBe(realpathSync(folder));
});

test("a conflict in IO's worktree is not recorded by rerere, even if the user enabled it", async () => {
  const folder = makeProject({ "a.txt": "a\n" });
  const change = (text: string) => {
    writeFileSync(join(folder, "a.txt"), text);
    plainGit(folder, "commit", "-q", "-a", "-m", text);
  };
  plainGit(folder, "switch", "-q", "-c", "theirs");
  change("theirs\n");
  plainGit(folder, "switch", "-q", "main");
  change("mine\n");
  // Git enables rerere wherever this folder exists, even without a setting.
  mkdirSync(join(folder, ".git", "rr-cache"));
  const merged = await testGit().run(folder, [...NAMELESS, "merge", "-q", "theirs"]);
  expect(merged.code).toBe(1);
  expect(readdirSync(join(folder, ".git", "rr-cache"))).toEqual([]);
  plainGit(folder, "merge", "--abort");
  expect(() => plainGit(folder, "merge", "-q", "theirs")).toThrow();
  expect(readdirSync(join(folder, ".git", "rr-cache"))).toHaveLength(1);
});
