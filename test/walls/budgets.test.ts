import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import type { Status } from "../../src/protocol/api.ts";
import type { BudgetReport } from "../../src/protocol/budgets.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { approvalsOf, asked, decide, finishedMessage, finishedTask } from "../support/approvals.ts";
import { cleanEnvironment, providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { sessionLogs } from "../support/session-logs.ts";
import { counted, usageBy } from "../support/spending.ts";
import { characterOf, delegate, project, squadWith, stepOf } from "../support/squads.ts";
import { swarm } from "../support/swarm/command.ts";
import { makeProject, roleOf, task as runTask, taskIn, usual } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

/** A model that reads the wiki this many times before its final answer. */
const looper =
  (steps: number): Model =>
  (request) =>
    stepOf(request) < steps ? { call: [{ tool: "wiki_list", args: {} }] } : { say: "All is looked at." };

async function begin(config: Record<string, unknown>, script: Model = looper(4)) {
  const { model, served } = counted(script);
  const server = await scriptedModel(model);
  const home = temporaryHome(config);
  const lives: TestDaemon[] = [];
  const start = async () => {
    const daemon = await startDaemonProcess(home, providerEnvironment(server.url));
    lives.push(daemon);
    return daemon;
  };
  onTestFinished(async () => {
    const last = lives.at(-1);
    if (last && last.child.exitCode === null && last.child.signalCode === null) await last.kill("SIGTERM");
  });
  return { home, served, url: server.url, requests: server.requests, start, daemon: await start() };
}

const say = (daemon: TestDaemon, text = "look at everything", conversation = "main") =>
  daemon.json<Message>("POST", "/api/messages", { text, conversation }).then(({ id }) => id);

/** Expects that the model is not asked while a question waits, and gives the daemon other work in the meantime. */
async function staysAt(daemon: TestDaemon, requests: readonly unknown[], count: number): Promise<void> {
  for (let round = 0; round < 20; round += 1) await daemon.json<Status>("GET", "/api/status");
  expect(requests).toHaveLength(count);
}

const today = () => new Date().toISOString().slice(0, 10);

test.each(["turn", "conversation", "day"] as const)(
  "a %s's budget that is used up in a tool loop stops the work before the next call; it goes on each time it is raised",
  async (kind) => {
    const { daemon, requests, served } = await begin({ budgets: { [kind]: { calls: 2 } } });
    const events = await daemon.follow();
    const id = await say(daemon);
    const [first] = await asked(daemon);
    expect(first).toMatchObject({
      ...{ kind: "budget", tool: "budget", owner: { kind: "message", id }, conversation: "main" },
      summary: expect.stringMatching(/2 of 2 calls.*Allow raises the limit by 2 calls/),
      rule: `budgets.${kind} in config.json`,
    });
    await staysAt(daemon, requests, 2);
    const name = { turn: id, conversation: "main", day: today() }[kind];
    const report = await daemon.json<BudgetReport>("GET", "/api/budgets");
    expect(report.items.find((item) => item.kind === kind)).toMatchObject({
      ...{ name, state: "used up", limit: { calls: 2 }, left: { calls: 0 }, approval: first!.id },
      used: { calls: 2, tokens: served.inputTokens + served.outputTokens },
    });
    const status = await runIo(["status"], daemon.home);
    expect(status.stdout).toContain("Work stands still because a budget is used up (io budget show)");

    expect((await decide(daemon, first!.id, { decision: "allow" })).status).toBe(200);
    const second = await until("another question", async () =>
      (await approvalsOf(daemon, "waiting")).find((each) => each.id !== first!.id),
    );
    await staysAt(daemon, requests, 4);
    await decide(daemon, second.id, { decision: "allow", note: "by 10 calls" });
    const message = await finishedMessage(daemon, id);
    expect(message).toMatchObject({ status: "done", reply: "All is looked at.", attempts: 1 });
    expect(requests).toHaveLength(5);
    const { calls, inputTokens, outputTokens } = message.usage;
    expect({ calls, inputTokens, outputTokens }).toEqual(served);
    expect((await usageBy(daemon, kind === "turn" ? "model" : kind)).total).toMatchObject(served);
    expect(await approvalsOf(daemon, "waiting")).toEqual([]);
    await until("the news", () => events.of("budget.reached").length > 0);
    expect(events.of("budget.reached").map(({ body }) => body)).toEqual([
      { kind, limit: { calls: 2 }, used: { calls: 2 }, owner: id },
    ]);
  },
);

test("a limit that is set to what it was is that again, whatever it was raised by: in the config, by itself, and a squad's own", async () => {
  const { daemon } = await begin({ budgets: { turn: { calls: 1 } } }, looper(20));
  const id = await say(daemon);
  const limitOf = async (name: string) =>
    (await daemon.json<BudgetReport>("GET", "/api/budgets")).items.find((item) => item.name === name)?.limit;
  const raisedOnce = async (name: string) => {
    const [question] = await asked(daemon);
    await decide(daemon, question!.id, { decision: "allow" });
    await until("the raise to count", async () => ((await limitOf(name))?.calls ?? 0) > 1);
    await until("the next question", async () => (await approvalsOf(daemon, "waiting")).some((each) => each.id !== question!.id));
  };
  for (const [method, path, body] of [
    ["PATCH", "/api/config", { budgets: { turn: { calls: 1 } } }],
    ["PUT", "/api/budgets?kind=turn", { turn: { calls: 1 } }],
  ] as const) {
    await raisedOnce(id);
    const [open] = await approvalsOf(daemon, "waiting");
    await daemon.json(method, path, body);
    expect(await limitOf(id)).toEqual({ calls: 1 });
    expect((await approvalsOf(daemon, "withdrawn")).map((each) => each.id)).toContain(open!.id);
  }
  // Changing another key leaves the limit unchanged.
  await raisedOnce(id);
  await daemon.json("PATCH", "/api/config", { logLevel: "info" });
  expect((await limitOf(id))?.calls).toBeGreaterThan(1);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await finishedMessage(daemon, id);

  await daemon.json("PATCH", "/api/config", { budgets: null });
  await squadWith(daemon, project(), "crew", ["Engineer"]);
  const safety = { safety: { budgets: { task: { calls: 1 } } } };
  await daemon.json("PATCH", "/api/squads/crew", safety);
  const task = await delegate(daemon, "crew", { task: "look", conversation: "main" });
  await raisedOnce(task.id);
  await daemon.json("PATCH", "/api/squads/crew", safety);
  expect(await limitOf(task.id)).toEqual({ calls: 1 });
}, 90_000);

test("refused, expired or cancelled, it ends: with a failure that says why, and no call more", async () => {
  const { daemon, requests } = await begin({ budgets: { turn: { calls: 1 } }, approvalExpiresMs: 60_000 });
  const refused = await say(daemon, "look", "a");
  const [question] = await asked(daemon);
  await decide(daemon, question!.id, { decision: "deny", note: "too dear" });
  expect(await finishedMessage(daemon, refused)).toMatchObject({
    status: "failed",
    error: { code: "budget", message: expect.stringMatching(/1 of 1 call, and it was not raised: too dear.*io budget set/s) },
    usage: { calls: 1 },
  });

  const cancelled = await say(daemon, "look", "b");
  const [other] = await asked(daemon);
  await daemon.json("POST", `/api/messages/${cancelled}/cancel`);
  expect((await finishedMessage(daemon, cancelled)).status).toBe("cancelled");
  await until("the question to be taken back", async () => (await approvalsOf(daemon, "withdrawn")).length === 1);
  expect(other!.owner.id).toBe(cancelled);

  await daemon.json("PATCH", "/api/config", { approvalExpiresMs: 1 });
  const expired = await say(daemon, "look", "c");
  expect(await finishedMessage(daemon, expired)).toMatchObject({
    status: "failed",
    error: { code: "budget", message: expect.stringContaining("nobody decided in time") },
  });
  expect(requests).toHaveLength(3);
});

test("over kill -9 the same question waits and what was used counts; io budget set lets the work go on", async () => {
  const { home, daemon, requests, served, start } = await begin({ budgets: { turn: { calls: 2 } } });
  const id = await say(daemon);
  const [question] = await asked(daemon);
  await daemon.kill("SIGKILL");
  // Everything that was paid for is on disk before anybody is asked.
  const kept = sessionLogs(home).map((log) => readFileSync(log, "utf8").match(/"tool\.execution_complete"/g)?.length);
  expect(kept).toEqual([2]);

  const second = await start();
  await until(
    "the message to be taken up",
    async () => (await second.json<Message>("GET", `/api/messages/${id}`)).attempts === 2,
  );
  expect((await asked(second)).map((each) => each.id)).toEqual([question!.id]);
  await staysAt(second, requests, 2);
  await second.kill("SIGKILL");

  const third = await start();
  await until("the message to be taken up", async () => (await third.json<Message>("GET", `/api/messages/${id}`)).attempts === 3);
  await staysAt(third, requests, 2);
  const raised = await runIo(["budget", "set", "turn", "--calls", "50", "--json"], home);
  expect(JSON.parse(raised.stdout)).toMatchObject({ limits: { turn: { calls: 50 } } });
  expect(await finishedMessage(third, id)).toMatchObject({ status: "done", usage: { calls: 5 } });
  expect(await approvalsOf(third)).toEqual([expect.objectContaining({ id: question!.id, state: "withdrawn" })]);
  expect((await usageBy(third, "conversation")).total).toMatchObject(served);
}, 90_000);

test("a task that reaches its budget waits as a task, over kill -9 too, and its conversation's other talk goes on", async () => {
  const script: Model = (request, index) =>
    characterOf(request) === undefined ? { say: "I am here." } : looper(4)(request, index);
  const { daemon, served, requests, start } = await begin({ budgets: { task: { tokens: 1 } } }, script);
  await squadWith(daemon, project(), "crew", ["Engineer"]);
  const { id, agent } = await delegate(daemon, "crew", { task: "look", conversation: "main" });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ kind: "budget", owner: { kind: "task", id }, squad: "crew", conversation: "main" });
  expect(requests).toHaveLength(1);
  expect((await daemon.ask({ text: "are you there?" })).reply).toBe("I am here.");
  await daemon.kill("SIGKILL");

  const second = await start();
  await until(
    "the task to be taken up",
    async () => (await second.json<{ attempts: number }>("GET", `/api/tasks/${id}`)).attempts === 2,
  );
  await staysAt(second, requests, 2);
  expect((await decide(second, question!.id, { decision: "allow", note: "1M tokens" })).status).toBe(200);
  const ended = await finishedTask(second, id);
  expect(ended).toMatchObject({ status: "done", usage: { calls: 5 } });
  expect(await approvalsOf(second)).toHaveLength(1);
  // The result was sent to the conversation, where the model answered it.
  await until("the result to be told", () => requests.length === 7);
  await until("the count", async () => (await usageBy(second, "task")).total.calls === served.calls);
  const byTask = await usageBy(second, "task");
  expect(byTask.total).toMatchObject(served);
  expect(byTask.items.find(({ name }) => name === id)).toMatchObject({ calls: 5 });
  expect((await usageBy(second, "agent")).items).toContainEqual(
    expect.objectContaining({ name: agent, squad: "crew", calls: 5 }),
  );
  expect((await usageBy(second, "squad")).items).toContainEqual(expect.objectContaining({ name: "crew", calls: 5 }));
}, 90_000);

test("a task that is refused more fails with the budget as its reason", async () => {
  const { daemon, requests } = await begin({ budgets: { task: { calls: 1 } } }, (request, index) =>
    characterOf(request) === undefined ? { say: "noted" } : looper(2)(request, index),
  );
  await squadWith(daemon, project(), "crew", ["Engineer"]);
  const { id } = await delegate(daemon, "crew", { task: "look", conversation: "main" });
  const [question] = await asked(daemon);
  expect(requests).toHaveLength(1);
  await decide(daemon, question!.id, { decision: "deny" });
  expect(await finishedTask(daemon, id)).toMatchObject({ status: "failed", error: { code: "budget" }, usage: { calls: 1 } });
});

const THREE_STREAMS = `
pipeline:
  - {phase: decompose, agent: pm}
  - phase: implement
    parallel: true
    agent: engineer
`;

/** Three engineers that start together, so that each has a call in flight when the budget is used up. */
function threeStreams(): Model {
  let arrived = 0;
  let openGate: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    openGate = resolve;
  });
  return async (request) => {
    const role = roleOf(request);
    if (role === "pm") return { say: JSON.stringify([runTask("T1", "One"), runTask("T2", "Two"), runTask("T3", "Three")]) };
    const prompt = request.messages.findLast((message) => message.role === "user")?.content;
    const told = { role, prompt: String(prompt), afterTool: stepOf(request) > 0, before: 0, request };
    if (role === "engineer" && !told.afterTool && taskIn(told.prompt)) {
      arrived += 1;
      if (arrived >= 3) openGate();
      await gate;
    }
    return usual(told);
  };
}

const runOf = (daemon: TestDaemon, id: string) => daemon.json<Run>("GET", `/api/runs/${id}`);
const finishedRun = (daemon: TestDaemon, id: string) =>
  until(
    `the end of run ${id}`,
    async () => {
      const run = await runOf(daemon, id);
      return run.finishedAt === null ? undefined : run;
    },
    60_000,
  );

test("in a run with three streams one question holds all of them up, over kill -9 and a resume, and one answer lets all go on", async () => {
  const { daemon, requests, served, start } = await begin({ budgets: { run: { calls: 2 } } }, threeStreams());
  const projectPath = makeProject({ "swarm.config.yaml": THREE_STREAMS });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath, issue: "Do three things" });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({
    kind: "budget",
    owner: { kind: "run", id },
    summary: expect.stringContaining(`the run ${id}`),
  });
  // The pm's call, and one in flight in each of the three streams when the second call used up the budget.
  await until("all three to be held up", async () => (await usageBy(daemon, "run")).total.calls === 4);
  await staysAt(daemon, requests, 4);
  expect(await approvalsOf(daemon)).toHaveLength(1);
  await daemon.kill("SIGKILL");

  const second = await start();
  await until("the run to be taken up", async () => (await runOf(second, id)).status === "running");
  expect((await asked(second)).map((each) => each.id)).toEqual([question!.id]);
  await staysAt(second, requests, 4);
  expect((await decide(second, question!.id, { decision: "allow", note: "100 calls" })).status).toBe(200);
  const run = await finishedRun(second, id);
  expect(run.status).toBe("done");
  expect(await approvalsOf(second)).toHaveLength(1);
  const byRun = await usageBy(second, "run");
  expect(byRun.items.find(({ name }) => name === id)).toMatchObject(served);
}, 120_000);

test("a run that is refused more fails with the budget as its reason, after one question, and a resume asks anew", async () => {
  const { daemon, requests } = await begin({ budgets: { run: { calls: 2 } } }, threeStreams());
  const projectPath = makeProject({ "swarm.config.yaml": THREE_STREAMS });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath, issue: "Do three things" });
  const [question] = await asked(daemon);
  await until("all three to be held up", async () => (await usageBy(daemon, "run")).total.calls === 4);
  await decide(daemon, question!.id, { decision: "deny" });
  const run = await finishedRun(daemon, id);
  expect(run).toMatchObject({ status: "failed", reason: expect.stringMatching(/budget is used up/) });
  expect(await approvalsOf(daemon)).toHaveLength(1);
  expect(requests).toHaveLength(4);

  await daemon.json("POST", `/api/runs/${id}/resume`);
  const [again] = await asked(daemon);
  expect(again!.id).not.toBe(question!.id);
  expect(requests).toHaveLength(4);
  await decide(daemon, again!.id, { decision: "allow", note: "100 calls" });
  await until("the run to be done", async () => (await runOf(daemon, id)).status === "done", 60_000);
}, 120_000);

test("a run in a process of its own waits for the same budgets, and io budget set lets it go on", async () => {
  const { home, daemon, requests, served, url } = await begin({ budgets: { run: { tokens: 1 } } }, threeStreams());
  const projectPath = makeProject({ "swarm.config.yaml": THREE_STREAMS });
  let child: ChildProcess | undefined;
  onTestFinished(() => void child?.kill("SIGKILL"));
  const ended = swarm(["Do three things", "--json"], projectPath, cleanEnvironment(home, providerEnvironment(url)), {
    onStart: (started) => {
      child = started;
    },
  });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ kind: "budget", owner: { kind: "run" } });
  await staysAt(daemon, requests, 1);
  await runIo(["budget", "set", "run", "--tokens", "1000000"], home);
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  const { id } = JSON.parse(stdout) as Run;
  expect((await usageBy(daemon, "run")).items).toContainEqual(expect.objectContaining({ name: id, ...served }));
  expect((await usageBy(daemon, "source")).items).toEqual([expect.objectContaining({ name: "cli", calls: served.calls })]);
}, 120_000);
