import { expect, test } from "vitest";
import { git } from "../../src/git/command.ts";
import type { Wrap } from "../../src/process/sandbox.ts";
import { temporaryFolder } from "../support/home.ts";

/** Runs something else in git's place. */
const instead =
  (...argv: [string, ...string[]]): Wrap =>
  async () =>
    argv;

test("git learns no secret, nothing that would lead it to another repository, and is told to ask nobody", async () => {
  const folder = temporaryFolder();
  const set = { MY_API_KEY: "hush", GIT_DIR: "/elsewhere", IO_HOME: "/io" };
  Object.assign(process.env, set);
  try {
    const { stdout } = await git(folder, ["status"], { wrap: instead("env"), env: { GIT_INDEX_FILE: "/index" } });
    const lines = stdout.split("\n");
    expect(lines.filter((line) => /^(?:MY_API_KEY|GIT_DIR|IO_HOME)=/.test(line))).toEqual([]);
    expect(lines).toEqual(expect.arrayContaining(["GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_INDEX_FILE=/index"]));
  } finally {
    for (const name of Object.keys(set)) delete process.env[name];
  }
  const { stdout } = await git(folder, ["status"], {
    wrap: instead("env"),
    environment: { PATH: process.env.PATH, ONLY: "this" },
  });
  expect(stdout).toContain("ONLY=this");
  expect(stdout).not.toContain("HOME=");
});

test("hooks and helpers of the repository are switched off on every call, and the wrap sees the whole command", async () => {
  const seen: unknown[] = [];
  const wrap: Wrap = async (argv, cwd, options) => {
    seen.push(argv, cwd, options);
    return ["true"];
  };
  const folder = temporaryFolder();
  await git(folder, ["status"], { wrap, writable: ["/w"], settings: ["a.b=c"] });
  const [argv, ...where] = seen;
  expect(argv).toEqual(expect.arrayContaining(["git", "core.hooksPath=/dev/null", "core.fsmonitor=false", "a.b=c", "status"]));
  expect(where).toEqual([folder, { writable: ["/w"] }]);
});

test("a git that hangs is ended at its deadline, and a folder that is not there is a result", async () => {
  expect(await git(temporaryFolder(), [], { wrap: instead("sleep", "60"), deadlineMs: 100 })).toMatchObject({
    ending: "deadline",
  });
  const result = await git("/nowhere/at-all", ["status"]);
  expect(result).toMatchObject({ ending: "not-started", stderr: expect.stringContaining("/nowhere/at-all does not exist") });
});
