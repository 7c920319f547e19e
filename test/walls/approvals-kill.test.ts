import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Activity } from "../../src/protocol/squads.ts";
import { openStore } from "../../src/store/open.ts";
import { createApprovals } from "../../src/tools/approvals/approvals.ts";
import { approvalsOf, asked, decide, finishedMessage, finishedTask } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { quietLog } from "../support/engine.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient } from "../support/orchestrator.ts";
import { characterOf, delegate, lastResult, project, squadWith, stepOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const linesIn = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);

const begin = async () => {
  const file = join(temporaryFolder(), "out");
  const model = await scriptedModel((request, index) => {
    if (characterOf(request) === undefined) return obedient(request, index);
    if (stepOf(request) === 0) return { call: [{ tool: "shell", args: { command: `echo ran >> ${file}` } }], say: "It is time." };
    return { say: `I read: ${lastResult(request)}` };
  });
  const home = temporaryHome({ approvals: "effects" });
  const start = () => startDaemonProcess(home, providerEnvironment(model.url));
  return { file, model, home, start, daemon: await start() };
};
/** Waits until a task's call has reached the gate in this many daemon processes. */
const callMade = (daemon: TestDaemon, id: string, times: number) =>
  until(`${times} calls of ${id}`, async () => {
    const { items } = await daemon.json<{ items: Activity[] }>("GET", `/api/tasks/${id}/activity`);
    return items.filter(({ kind }) => kind === "tool").length >= times;
  });
const sayIn = (daemon: TestDaemon, text: string, conversation = "main") =>
  daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation }).then(({ id }) => id);

test("asked in a task, the daemon killed while it waits, allowed after the restart: the call runs once, with those arguments", async () => {
  const { file, home, start, daemon } = await begin();
  await squadWith(daemon, project(), "crew", ["Engineer"]);
  const { id } = await delegate(daemon, "crew", { task: "write the line" });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ owner: { kind: "task", id }, squad: "crew", reason: "It is time." });
  await daemon.kill("SIGKILL");

  const second = await start();
  await callMade(second, id, 2);
  expect((await asked(second)).map((each) => each.id)).toEqual([question!.id]);
  await second.kill("SIGKILL");

  const third = await start();
  await callMade(third, id, 3);
  expect((await asked(third)).map((each) => each.id)).toEqual([question!.id]);
  expect((await decide(third, question!.id, { decision: "allow" })).status).toBe(200);
  const task = await finishedTask(third, id);
  expect(task.status).toBe("done");
  expect(task.result).toContain("exit code: 0");
  expect(linesIn(file)).toEqual(["ran"]);
  expect(journalOf(home, id)).toEqual([{ tool: "shell", state: "done" }]);
  expect(await approvalsOf(third)).toHaveLength(1);
}, 90_000);

test("a daemon that is stopped in order leaves the question for the next", async () => {
  const { file, start, daemon } = await begin();
  const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
  const [question] = await asked(daemon);
  await daemon.kill("SIGTERM");
  const next = await start();
  const [same] = await asked(next);
  expect(same!.id).toBe(question!.id);
  await decide(next, same!.id, { decision: "allow" });
  expect((await finishedMessage(next, id)).status).toBe("done");
  expect(linesIn(file)).toEqual(["ran"]);
  expect(await approvalsOf(next)).toHaveLength(1);
}, 60_000);

test.each([
  ["allow" as const, ["ran"], "exit code: 0"],
  ["deny" as const, [], "denied it"],
])(
  "decided while no daemon runs (%s), it is honoured by the next without another question",
  async (decision, lines, words) => {
    const { file, home, start, daemon } = await begin();
    const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
    const [question] = await asked(daemon);
    await daemon.kill("SIGKILL");
    const store = openStore(join(home, "io.db"));
    const deps = { store, emit: () => {}, log: quietLog, clean: (text: string) => text, expiresMs: () => 60_000 };
    createApprovals(deps).decide(question!.id, { decision, scope: "once" }, "somebody else");
    store.close();

    const next = await start();
    expect((await finishedMessage(next, id)).reply).toContain(words);
    expect(linesIn(file)).toEqual(lines);
    expect((await approvalsOf(next)).map((each) => [each.id, each.decidedBy])).toEqual([[question!.id, "somebody else"]]);
  },
  60_000,
);

test("expired while no daemon ran, the model is told so", async () => {
  const { file, home, start, daemon } = await begin();
  const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
  const [question] = await asked(daemon);
  await daemon.kill("SIGKILL");
  const store = openStore(join(home, "io.db"));
  store.db.prepare("UPDATE approvals SET expires_at = ? WHERE id = ?").run(new Date().toISOString(), question!.id);
  store.close();
  const next = await start();
  expect((await finishedMessage(next, id)).reply).toContain("nobody answered in time");
  expect(linesIn(file)).toEqual([]);
}, 60_000);

test("a message that is cancelled before the next life has taken it up leaves no question behind", async () => {
  const { file, start, daemon } = await begin();
  const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
  const [question] = await asked(daemon);
  await daemon.kill("SIGKILL");
  const next = await start();
  await next.json("POST", `/api/messages/${id}/cancel`);
  await until("the end of the question", async () =>
    (await approvalsOf(next, "withdrawn")).some((each) => each.id === question!.id),
  );
  expect(linesIn(file)).toEqual([]);
}, 60_000);

test("the runtime is killed while a call waits: the question stays the same one, and the call runs once", async () => {
  const { file, daemon, model } = await begin();
  const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
  const [question] = await asked(daemon);
  const follower = await daemon.follow();
  process.kill(daemon.runtimePid(), "SIGKILL");
  await until("the runtime to be back", () => follower.of("engine.changed").some(({ body }) => body.state === "ready"));
  await decide(daemon, question!.id, { decision: "allow" });
  expect((await finishedMessage(daemon, id)).reply).toContain("exit code: 0");
  expect(linesIn(file)).toEqual(["ran"]);
  expect(await approvalsOf(daemon)).toHaveLength(1);
  expect(model.requests.at(-1)!.messages.filter((each) => textOf(each).includes("exit code: 0"))).toHaveLength(1);
}, 60_000);

test("killed at any moment after the decision, the call runs once or is told as unknown, and never twice", async () => {
  const outcomes: string[] = [];
  for (const delay of [0, 1, 3, 6, 10, 20]) {
    const { file, home, start, daemon } = await begin();
    const id = await sayIn(daemon, callText("shell", { command: `echo ran >> ${file}` }));
    const [question] = await asked(daemon);
    const deciding = decide(daemon, question!.id, { decision: "allow" }).catch(() => undefined);
    await sleep(delay);
    await daemon.kill("SIGKILL");
    await deciding;
    const next = await start();
    const waiting = await approvalsOf(next, "waiting");
    if (waiting.length > 0) await decide(next, question!.id, { decision: "allow" });
    const { reply } = await finishedMessage(next, id);
    const ran = linesIn(file).length;
    const isUnknown = reply!.includes("whether it took effect is unknown");
    outcomes.push(`${ran}${isUnknown ? "?" : ""}`);
    expect(ran === 1 || (ran === 0 && isUnknown), `${delay} ms: ran ${ran} times, ${reply}`).toBe(true);
    expect(journalOf(home, id)).toHaveLength(1);
    expect(await approvalsOf(next)).toHaveLength(1);
    await next.kill("SIGKILL");
  }
  expect(outcomes).toHaveLength(6);
}, 240_000);
