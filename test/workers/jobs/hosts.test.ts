import { execFileSync } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import type { Task } from "../../../src/protocol/squads.ts";
import { startCluster } from "../../support/cluster.ts";
import { providerEnvironment } from "../../support/daemon.ts";
import { createGate } from "../../support/gate.ts";
import { scriptedModel } from "../../support/model.ts";
import { startNetwork } from "../../support/network.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../../support/squads.ts";
import { until } from "../../support/until.ts";

test("three hosts that nobody can come in to join, and do a task each, also where a cable was out for less than a lease", async () => {
  const names = ["alpha", "beta", "gamma"];
  const network = await startNetwork(names);
  const gate = createGate();
  const model = await scriptedModel(async (request) => {
    if (!characterOf(request)) return { say: "noted" };
    await gate.opened;
    const write = { tool: "file_ops", args: { operation: "write", path: "made.txt", content: "made\n" } };
    return stepOf(request) === 0 ? { call: [write] } : { say: "Done." };
  });
  const env = providerEnvironment(await network.urlOf(model.url));
  const cluster = await startCluster(onTestFinished, { env, network, config: { dispatch: "workers" } });
  const { daemon } = cluster;
  const folder = project();
  const agents = await squadWith(daemon, folder, "web", ["Engineer", "Tester", "Writer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const tasks: Task[] = [];
  for (const [at, name] of names.entries()) {
    await cluster.join(name, ["--capacity", "1"]);
    tasks.push(await delegate(daemon, "web", { task: "Go", agent: agents[at]! }));
    await until(`${name} to be at it`, async () => (await cluster.workers())[at]?.state === "busy");
  }
  for (const name of names) expect(network.host(name).listening()).toBe(0);

  await network.host("alpha").cut();
  await until("alpha to be missed", async () => Date.now() - Date.parse((await cluster.workers())[0]!.seenAt!) > 4_000);
  await network.host("alpha").mend();
  gate.open();
  const all = await Promise.all(tasks.map(({ id }) => ended(daemon, id, 60_000)));
  for (const [at, task] of all.entries()) {
    expect(task).toMatchObject({ status: "done", worker: names[at], attempts: 1, evidence: { filesChanged: ["made.txt"] } });
    expect(execFileSync("git", ["show", `io/${task.id}:made.txt`], { cwd: folder, encoding: "utf8" })).toBe("made\n");
  }
  await daemon.kill("SIGTERM");
}, 150_000);
