import { chmodSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepo } from "../../src/swarm/tree/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject, type Script, startSwarm, task, taskIn } from "./support.ts";

const YAML = (more = "", root = "") => `
${root}
pipeline:
  - {phase: decompose, agent: pm}
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED${more}}]
`;

const split =
  (...tasks: object[]): Script =>
  ({ role }) =>
    role === "pm" ? { say: JSON.stringify(tasks) } : undefined;
const both =
  (...scripts: Script[]): Script =>
  (told) =>
    scripts.map((script) => script(told)).find((act) => act !== undefined);
const engineer =
  (work: (task: string, prompt: string) => ReturnType<Script>): Script =>
  (told) =>
    told.role === "engineer" && !told.afterTool ? work(taskIn(told.prompt), told.prompt) : undefined;

async function runWith(
  script: Script,
  options: Parameters<typeof startSwarm>[0] & { yaml?: string; prepare?: (project: string) => void; apply?: boolean } = {},
) {
  const { yaml = YAML(), prepare, apply, ...rest } = options;
  const harness = await startSwarm({ script, ...rest, files: { "swarm.config.yaml": yaml, ...rest.files } });
  prepare?.(harness.project);
  const run = await harness.swarm.start({ projectPath: harness.project, issue: "Do it", settings: harness.settings, apply })
    .finished;
  return { ...harness, run };
}

test("a repository that git refuses is not worked on in place: the run says what git says, and no model is asked", async () => {
  const { run, project, model } = await runWith(split(task("T1", "One")), {
    prepare: (folder) => writeFileSync(join(folder, ".git", "index"), "no index"),
  });
  expect(run).toMatchObject({ status: "failed", outcome: "failed", branch: null });
  expect(run.reason).toMatch(/git refuses .*project.*index file.*parallel: false/s);
  expect(model.requests).toEqual([]);
  expect(existsSync(join(project, "T1.txt"))).toBe(false);
});

test("a repository of another owner is refused with the command that allows it", async () => {
  const project = makeProject();
  const folder = temporaryFolder();
  const path = process.env.PATH;
  writeFileSync(join(folder, "git"), `#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 PATH="${path}" exec git "$@"\n`);
  chmodSync(join(folder, "git"), 0o755);
  process.env.PATH = `${folder}:${path}`;
  try {
    await expect(openRepo(project)).rejects.toThrow(
      /dubious ownership[\s\S]*git config --global --add safe\.directory \S*project/,
    );
  } finally {
    process.env.PATH = path;
  }
});

test("only a folder without a repository above it is outside git", async () => {
  const outside = makeProject({ "deep/down/x.txt": "x\n" }, false);
  expect(await openRepo(join(outside, "deep", "down"))).toBeUndefined();
  const headless = makeProject({ "deep/down/x.txt": "x\n" });
  rmSync(join(headless, ".git", "HEAD"));
  await expect(openRepo(join(headless, "deep", "down"))).rejects.toThrow(/git refuses [\s\S]*not a git repository/);
  const lost = makeProject();
  git(lost, "worktree", "add", "-q", "../other");
  renameSync(lost, `${lost}-moved`);
  await expect(openRepo(join(lost, "..", "other"))).rejects.toThrow(/git refuses /);
  const empty = makeProject({}, false);
  git(empty, "init", "-q", "-b", "main");
  expect(await openRepo(empty)).toMatchObject({ head: null, branch: "main" });
});
