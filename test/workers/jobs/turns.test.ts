import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Act, ChatRequest } from "../../../src/engine/rehearsal/wire.ts";
import type { ClusterStatus, Worker } from "../../../src/protocol/workers.ts";
import { startCluster } from "../../support/cluster.ts";
import { providerEnvironment, startDaemonProcess } from "../../support/daemon.ts";
import { jobsOf } from "../../support/dispatch/away.ts";
import { createGate } from "../../support/gate.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { processesOn, sleeping } from "../../support/processes.ts";
import { soon } from "../../support/soon.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../../support/squads.ts";
import { until } from "../../support/until.ts";

/** Two seconds are promised; a busy machine gets more. */
const PROMPT_MS = 8_000;
const git = (cwd: string, ...args: string[]) => execFileSync("git", args, { cwd, encoding: "utf8" }).trim();

test("a task waits for a worker, is done there while it is drained, and its branch and evidence are as if it were done here", async () => {
  const folder = project({ "a.txt": "a\n" });
  writeFileSync(join(folder, "dirty.txt"), "not committed\n");
  const gate = createGate();
  const { cluster } = await start(
    async (request) => {
      const step = stepOf(request);
      if (step === 0) return { call: [{ tool: "file_ops", args: { operation: "write", path: "b.txt", content: "b\n" } }] };
      if (step === 1) return { call: [{ tool: "shell", args: { command: "cat a.txt b.txt; pwd" } }] };
      await gate.opened;
      return { say: "Done, and looked at." };
    },
    { pools: { [folder]: "gpu" } },
  );
  const { daemon } = cluster;
  await squadWith(daemon, folder, "web", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const { id } = await delegate(daemon, "web", { task: "Write b" });

  const waits = await until("the task to wait for a worker", async () => {
    const status = await cluster.status();
    return status.waiting.length > 0 ? status.waiting : undefined;
  });
  expect(waits).toEqual([{ id: `${id}-1`, pool: "gpu", served: false }]);
  expect((await cluster.io("cluster", "status")).stdout).toContain("1 job waits for the pool gpu, which no worker serves");
  const asJson = JSON.parse((await cluster.io("cluster", "status", "--json")).stdout) as ClusterStatus;
  expect(asJson.waiting).toEqual(waits);

  const alpha = await cluster.join("alpha", ["--capacity", "2", "--labels", "gpu"]);
  await until("it to be shown as busy", async () => {
    const { items } = JSON.parse((await cluster.io("worker", "list", "--json")).stdout) as { items: Worker[] };
    return items.some(({ name, state, running, capacity }) => name === "alpha" && state === "busy" && running < capacity);
  });
  expect((await cluster.status()).waiting).toEqual([]);
  await cluster.io("worker", "drain", "alpha");
  await until("it to know", () => alpha.output().includes("takes no more jobs"));
  expect((await cluster.workers())[0]).toMatchObject({ name: "alpha", state: "draining", running: 1 });
  expect(alpha.child.exitCode).toBeNull();
  gate.open();
  const task = await ended(daemon, id, 60_000);
  expect(task).toMatchObject({ status: "done", result: "Done, and looked at.", worker: "alpha", attempts: 1, error: null });
  expect((await cluster.io("task", "show", id)).stdout).toContain("done by the worker alpha, begun once");
  expect(await alpha.ended).toBe(0);
  expect(processesOn(alpha.home)).toEqual([]);

  expect(task.evidence).toMatchObject({ filesChanged: ["b.txt"], branch: `io/${id}`, commands: [{ exitCode: 0 }] });
  expect(task.usage.calls).toBeGreaterThan(0);
  expect(git(folder, "show", `io/${id}:b.txt`)).toBe("b");
  expect(git(folder, "rev-parse", `io/${id}^{tree}`)).toBe(task.evidence?.treeAfter);
  expect(git(folder, "rev-parse", `io/${id}^`)).toBe(git(folder, "rev-parse", "HEAD"));
  expect(git(folder, "status", "--porcelain")).toBe("?? dirty.txt");
  expect(git(folder, "for-each-ref", "--format=%(refname)", "refs/io")).toBe("");
  const calls = await daemon.json<{ items: { tool: string; state: string }[] }>("GET", `/api/tasks/${id}/calls`);
  expect(calls.items.map(({ tool, state }) => `${tool} ${state}`)).toEqual(["file_ops done", "shell done"]);
  // The project's files have been removed from the worker.
  expect(jobsOf(alpha.home)).toEqual([]);
}, 150_000);

test("cancelling a task, revoking its worker and ending that with a signal each end every process that it started there, and it goes to another at once", async () => {
  const folder = project();
  const mark = `40${Math.floor(Math.random() * 1e6)}`;
  const { cluster } = await start((request) => {
    const [, nth = "0"] = /Wait (\d)/.exec(lastUserText(request)) ?? [];
    return { call: [{ tool: "shell", args: { command: `sleep ${mark}${nth} & sleep ${mark}${nth}` } }] };
  });
  const { daemon } = cluster;
  await squadWith(daemon, folder, "web", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const atIt = (nth: number) => until("the worker to be at it", async () => (await sleeping(`${mark}${nth}`)) >= 2, 30_000);
  const begin = async (nth: number) => {
    const { id } = await delegate(daemon, "web", { task: `Wait ${nth}` });
    await atIt(nth);
    return id;
  };
  const goneWithin = async (nth: number, asked: number) => {
    await until("its processes to be gone", async () => (await sleeping(`${mark}${nth}`)) === 0, PROMPT_MS);
    expect(performance.now() - asked).toBeLessThan(soon(PROMPT_MS));
  };

  const beta = await cluster.join("beta");
  const first = await begin(1);
  let asked = performance.now();
  await daemon.json("POST", `/api/tasks/${first}/cancel`);
  await goneWithin(1, asked);
  expect(await ended(daemon, first)).toMatchObject({ status: "cancelled", worker: "beta" });
  expect(beta.child.exitCode).toBeNull();

  const second = await begin(2);
  asked = performance.now();
  await cluster.io("worker", "revoke", "beta");
  await goneWithin(2, asked);
  expect(await beta.ended).toBe(1);
  expect(beta.output()).toContain("its key was revoked");
  await until("its runtime to be gone too", () => processesOn(beta.home).length === 0);
  expect(jobsOf(beta.home)).toEqual([]);

  // Its task goes to the next worker at once, not when its lease expires.
  const gamma = await cluster.join("gamma");
  await atIt(2);
  asked = performance.now();
  gamma.child.kill("SIGTERM");
  await goneWithin(2, asked);
  expect(await gamma.ended).toBe(0);
  expect(processesOn(gamma.home)).toEqual([]);
  await cluster.join("delta");
  await atIt(2);
  await daemon.json("POST", `/api/tasks/${second}/cancel`);
  await goneWithin(2, performance.now());
  expect(await ended(daemon, second)).toMatchObject({ status: "cancelled", worker: "delta", attempts: 3 });
}, 150_000);

test("a daemon that was killed, and comes back without its server, waits for what a worker has, and takes it once the server is there", async () => {
  const gate = createGate();
  const { cluster, model } = await start(async () => {
    await gate.opened;
    return { say: "Thought about." };
  });
  const { home, daemon: first } = cluster;
  await squadWith(first, project(), "web", ["Engineer"]);
  await first.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const alpha = await cluster.join("alpha");
  const { id } = await delegate(first, "web", { task: "Think" });
  const asked = () => model.requests.filter((request) => characterOf(request)).length;
  await until("the worker to be at it", () => asked() === 1);
  const { pid } = await cluster.status();
  await first.kill("SIGKILL");
  process.kill(pid!, "SIGKILL");
  const file = join(home, "config.json");
  const config = JSON.parse(readFileSync(file, "utf8")) as { cluster: object };
  writeFileSync(file, JSON.stringify({ ...config, cluster: { ...config.cluster, server: "/nowhere/nats-server" } }));

  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  const status = () => second.json<ClusterStatus>("GET", "/api/cluster");
  await until("the daemon to have tried", async () => (await status()).state === "failed");
  expect((await second.ask({ text: "hello" })).status).toBe("done");
  expect(await second.json("GET", `/api/tasks/${id}`)).toMatchObject({ status: "running" });
  await second.json("PATCH", "/api/config", { cluster: config.cluster });
  await until("the server", async () => (await status()).state === "running");
  gate.open();
  expect(await ended(second, id, 60_000)).toMatchObject({ status: "done", worker: "alpha", attempts: 1 });
  expect(asked()).toBe(1);
  expect(alpha.child.exitCode).toBeNull();
  await second.kill("SIGTERM");
}, 150_000);

/** A daemon whose tasks are done by workers only, on a model that acts for agents and only says "noted" to others. */
async function start(agent: (request: ChatRequest) => Act | Promise<Act>, cluster: Record<string, unknown> = {}) {
  const model = await scriptedModel((request) => (characterOf(request) ? agent(request) : { say: "noted" }));
  const env = providerEnvironment(model.url);
  const started = await startCluster(onTestFinished, { env, cluster, config: { dispatch: "workers" } });
  return { cluster: started, model };
}
