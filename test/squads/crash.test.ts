import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { type ChatRequest, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Task } from "../../src/protocol/squads.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, daemonOn, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const told = async (daemon: TestDaemon, conversation: string) => {
  const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`);
  return items.filter(({ source }) => source.channel === "background");
};
const taskOf = (request: ChatRequest) => /Task (t_\w+):/.exec(lastUserText(request))?.[1];

/** Three tasks: each adds a line to a file, then the model hangs until it is asked again. */
async function threeAtWork() {
  const folder = project();
  const asked = new Map<string, number>();
  const model = await scriptedModel((request) => {
    const name = characterOf(request);
    if (!name) return { say: "noted" };
    if (stepOf(request) === 0)
      return { call: [{ tool: "shell", args: { command: `echo ${name.replaceAll(" ", "-")} >> done.txt` } }] };
    const id = taskOf(request)!;
    const times = (asked.get(id) ?? 0) + 1;
    asked.set(id, times);
    return times === 1 ? { hang: true } : { say: `${name} is ready` };
  });
  const home = temporaryHome();
  const daemon = await daemonOn(model, home);
  const names = await squadWith(daemon, folder, "three", ["Engineer", "Tester", "Writer"]);
  const tasks = await Promise.all(
    names.map((agent) => delegate(daemon, "three", { task: `leave a line, ${agent}`, agent, conversation: "c" })),
  );
  await until("all three to be in the middle of it", () => asked.size === 3, 30_000);
  return { folder, model, home, daemon, names, tasks };
}

async function allEndedOnce(daemon: TestDaemon, { folder, names, tasks }: { folder: string; names: string[]; tasks: Task[] }) {
  const finished = await Promise.all(tasks.map(({ id }) => ended(daemon, id, 45_000)));
  expect(finished.map(({ status, result }) => [status, result])).toEqual(names.map((name) => ["done", `${name} is ready`]));
  const lines = readFileSync(join(folder, "done.txt"), "utf8").trim().split("\n").sort();
  expect(lines).toEqual(names.map((name) => name.replaceAll(" ", "-")).sort());
  const messages = await until("all three to be told", async () => {
    const all = await told(daemon, "c");
    return all.length >= 3 && all.every(({ status }) => status === "done") ? all : undefined;
  });
  expect(messages).toHaveLength(3);
  for (const { id } of tasks)
    expect(messages.filter(({ source }) => isDeepStrictEqual(source, { channel: "background", about: id }))).toHaveLength(1);
  return finished;
}

test("three tasks that were running when the daemon was killed are finished after the restart, and told once", async () => {
  const { daemon, home, model, ...rest } = await threeAtWork();
  await daemon.kill("SIGKILL");
  const second = await daemonOn(model, home);
  const finished = await allEndedOnce(second, rest);
  expect(finished.map(({ attempts }) => attempts)).toEqual([2, 2, 2]);
  for (const { id } of finished) {
    const last = model.requests.findLast((request) => characterOf(request) && taskOf(request) === id)!;
    expect(last.messages.filter((message) => message.role === "user" && textOf(message).includes(`Task ${id}:`))).toHaveLength(1);
  }
  expect(finished.every(({ evidence }) => evidence?.filesChanged.includes("done.txt"))).toBe(true);
  await second.kill("SIGTERM");
  const third = await daemonOn(model, home);
  expect(await told(third, "c")).toHaveLength(3);
});

test("three tasks that were running when the runtime was killed are finished, and told once", async () => {
  const { daemon, ...rest } = await threeAtWork();
  process.kill(daemon.runtimePid(), "SIGKILL");
  await allEndedOnce(daemon, rest);
});

test("a task whose project vanished while nobody was looking is reported, not dropped", async () => {
  const { daemon, home, model, folder, tasks } = await threeAtWork();
  await daemon.kill("SIGKILL");
  rmSync(folder, { recursive: true });
  const second = await daemonOn(model, home);
  const finished = await Promise.all(tasks.map(({ id }) => ended(second, id)));
  for (const task of finished) expect(task).toMatchObject({ status: "failed", error: { code: "project_missing" } });
  const messages = await until("all three to be told", async () => {
    const all = await told(second, "c");
    return all.length === 3 ? all : undefined;
  });
  expect(messages[0]!.text).toContain(folder);
  expect(existsSync(folder)).toBe(false);
});
