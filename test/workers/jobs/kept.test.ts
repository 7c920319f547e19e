import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Run } from "../../../src/protocol/runs.ts";
import type { Activity } from "../../../src/protocol/squads.ts";
import { startHosts } from "../../support/dispatch/away.ts";
import { temporaryFolder } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf, systemOf } from "../../support/squads.ts";
import { git, play, roleOf, sh, write } from "../../support/swarm/index.ts";
import { until } from "../../support/until.ts";

test("what a project needs is installed on a worker once for each state of its lock file", async () => {
  const mark = join(temporaryFolder(), "installs");
  const folder = project({
    ".gitignore": "node_modules\n",
    "dep/package.json": JSON.stringify({ name: "dep", version: "1.0.0", main: "index.js" }),
    "dep/index.js": "module.exports = 1;\n",
    "package.json": JSON.stringify({
      ...{ name: "app", version: "1.0.0", dependencies: { dep: "file:./dep" } },
      scripts: { postinstall: `echo installed >> ${mark}` },
    }),
  });
  const npm = { cwd: folder, stdio: "ignore", env: { ...process.env, npm_config_offline: "true" } } as const;
  execFileSync("npm", ["install", "--no-audit", "--no-fund"], npm);
  git(folder, "add", "-A");
  git(folder, "commit", "-q", "-m", "lock");
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    return stepOf(request) === 0 ? sh(`node -e "process.exit(require('dep') === 1 ? 0 : 1)"`) : { say: "Done." };
  });
  const { daemon } = await startHosts(model.url);
  await squadWith(daemon, folder, "web", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const installs = () => readFileSync(mark, "utf8").split("\n").length - 1;
  const before = installs();
  for (const number of [1, 2]) {
    const { id } = await delegate(daemon, "web", { task: `Look ${number}` });
    const task = await ended(daemon, id, 90_000);
    expect(task).toMatchObject({ status: "done", worker: "w1", evidence: { filesChanged: [], commands: [{ exitCode: 0 }] } });
    expect(installs() - before).toBe(1);
  }

  // Nothing is installed on the daemon's host any more, and the lock file is different.
  rmSync(join(folder, "node_modules"), { recursive: true });
  const commit = (name: string, from: string, to: string) => {
    writeFileSync(join(folder, name), readFileSync(join(folder, name), "utf8").replace(from, to));
    git(folder, "commit", "-q", "-a", "-m", "change");
  };
  commit("package-lock.json", "\n}\n", "\n}\n\n");
  const bare = await ended(daemon, (await delegate(daemon, "web", { task: "Look again" })).id, 90_000);
  expect(bare).toMatchObject({ worker: "w1", evidence: { filesChanged: [], commands: [{ exitCode: 0 }] } });
  expect(installs() - before).toBe(2);

  commit("package.json", "file:./dep", "file:./nowhere");
  const asked = model.requests.length;
  const { id } = await delegate(daemon, "web", { task: "Look a last time" });
  expect(await ended(daemon, id, 90_000)).toMatchObject({ worker: "w1", evidence: { commands: [{ exitCode: 1 }] } });
  const missing =
    /"npm ci --no-audit --no-fund" failed .*What needs it cannot run on this host\. Install it in the project: npm ci/;
  expect(lastUserText(model.requests.slice(asked).find(characterOf)!)).toMatch(missing);
  const { items } = await daemon.json<{ items: Activity[] }>("GET", `/api/tasks/${id}/activity?limit=100`);
  const told = items.findIndex(({ summary }) => missing.test(summary));
  expect(told).toBeGreaterThan(0);
  expect(told).toBeLessThan(items.findIndex(({ kind }) => kind === "model" || kind === "tool"));
}, 240_000);

test("a stream's session stays with its worker; after its death another begins with what was said before", async () => {
  const go = join(temporaryFolder(), "go");
  const reached = join(temporaryFolder(), "reached");
  let refused = false;
  const yaml = `
checks: ["true"]
pipeline:
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 2, approvalKeyword: APPROVED}]
    qa: {agent: tester, maxIterations: 2, approvalKeyword: ALL_PASSED}
`;
  const model = await scriptedModel(
    play(({ role, afterTool, before }) => {
      if (role === "engineer") return afterTool ? { say: `Done in turn ${before}.` } : write("a.txt", `turn ${before}\n`);
      if (role !== "tester" || refused) return undefined;
      if (!existsSync(go)) return sh(`touch ${reached}; until [ -e ${go} ]; do sleep 0.1; done`);
      refused = true;
      return { say: "Please change it." };
    }),
  );
  const folder = project({ "swarm.config.yaml": yaml, "README.md": "A project.\n" });
  const { daemon, worker } = await startHosts(model.url, { names: ["w1", "w2"], leaseMs: 2_000 });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: folder, issue: "Do it" });
  const current = () => daemon.json<Run>("GET", `/api/runs/${id}`);
  await until("the tester to be at it", () => existsSync(reached), 90_000);
  const draft = (await current()).steps.find((step) => step.agent === "engineer")!;
  await worker(draft.worker!).kill();
  writeFileSync(go, "");
  const run = await until("the end", async () => ((await current()).status === "running" ? undefined : current()), 120_000);
  const steps = run.steps.filter((step) => step.agent === "engineer");
  expect(run.outcome).toBe("approved");
  expect(steps).toHaveLength(2);
  expect(steps.at(-1)!.worker).not.toBe(draft.worker);
  const later = model.requests.filter((request) => roleOf(request) === "engineer").at(-1)!;
  // On an overloaded machine, the first worker may have lost its lease and started again.
  expect(systemOf(later)).toMatch(/You answered: Done in turn \d\./);
}, 240_000);
