import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const workflow: { jobs: { publish: { steps: { run?: string }[] } } } = parse(
  readFileSync(join(packageRoot, ".github", "workflows", "swarm.yml"), "utf8"),
);
const script = workflow.jobs.publish.steps.find((step) => step.run)!.run!;

/** Runs the publishing step on a real bundle and a real origin, with a `gh` that records its arguments. */
function publish(branch: string, { pr = "echo https://example.test/pull/1", prepare = (_origin: string) => {} } = {}) {
  const folder = temporaryFolder();
  const project = makeProject();
  const origin = join(folder, "origin.git");
  git(project, "clone", "-q", "--bare", project, origin);
  git(project, "remote", "add", "origin", origin);
  git(project, "checkout", "-q", "-b", branch);
  writeFileSync(join(project, "made.txt"), "made\n");
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "made");
  mkdirSync(join(folder, "swarm-result"));
  writeFileSync(join(folder, "swarm-result", "summary.md"), "The summary.\n");
  git(project, "bundle", "create", "-q", join(folder, "swarm-result", "result.bundle"), `main..${branch}`);
  git(project, "checkout", "-q", "main");
  git(project, "branch", "-q", "-D", branch);
  prepare(origin);
  const gh = `#!/bin/bash
if [ "$1 $2" = "pr create" ]; then ${pr}; else while [ "$1" != "--body-file" ]; do shift; done; cp "$2" ${join(folder, "told.md")}; fi
`;
  writeFileSync(join(folder, "gh"), gh, { mode: 0o755 });
  const { status } = spawnSync("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", script], {
    cwd: project,
    encoding: "utf8",
    env: {
      PATH: `${folder}:${process.env.PATH}`,
      RUNNER_TEMP: folder,
      ISSUE: "7",
      BASE: "main",
      BRANCH: branch,
      CODE: "0",
      RUN_URL: "https://example.test/run",
    },
  });
  return { status, told: readFileSync(join(folder, "told.md"), "utf8"), pushed: git(origin, "branch", "--list", branch) };
}

test.each(["swarm/r_1", "swarm-r_1"])("the branch %s is pushed, and the issue is told of its pull request", (branch) => {
  const { status, told, pushed } = publish(branch);
  expect(status).toBe(0);
  expect(pushed).toContain(branch);
  expect(told).toMatch(/The summary\.[\s\S]*https:\/\/example\.test\/pull\/1[\s\S]*exit code 0/);
});

test("an issue is told when no pull request could be opened, and the job shows it", () => {
  const { status, told, pushed } = publish("swarm/r_1", { pr: "echo 'not permitted' >&2; exit 1" });
  expect(status).toBe(1);
  expect(pushed).toContain("swarm/r_1");
  expect(told).toMatch(/The summary\.[\s\S]*`swarm\/r_1` is pushed, but no pull request could be opened[\s\S]*exit code 0/);
});

test("an issue is told when the branch could not be pushed", () => {
  const { status, told } = publish("swarm/r_1", { prepare: (origin) => void git(origin, "branch", "swarm", "main") });
  expect(status).toBe(1);
  expect(told).toMatch(/The summary\.[\s\S]*could not be pushed[\s\S]*exit code 0/);
});
