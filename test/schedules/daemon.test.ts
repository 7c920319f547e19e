import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { ApiError } from "../../src/protocol/api.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { NewSchedule, Occurrence, Schedule, ScheduleWithCost } from "../../src/protocol/schedules.ts";
import type { UsageSummary } from "../../src/protocol/usage.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, modelCalls, obedient } from "../support/orchestrator.ts";
import { characterOf, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let model: ModelServer;
let daemon: TestDaemon;
beforeAll(async () => {
  model = await scriptedModel(
    (...asked) => (characterOf(asked[0]) ? { say: "Looked." } : obedient(...asked)),
    undefined,
    atTheEnd,
  );
  daemon = await startDaemonProcess(temporaryHome({}, atTheEnd), providerEnvironment(model.url), atTheEnd);
}, 60_000);
afterAll(end);

const add = (given: NewSchedule) => daemon.json<Schedule>("POST", "/api/schedules", given);
const past = async (id: string) =>
  (await daemon.json<{ items: Occurrence[] }>("GET", `/api/schedules/${id}/occurrences`)).items.reverse();
const firstOf = (id: string, state: Occurrence["state"]) =>
  until(`an occurrence that is ${state}`, async () => (await past(id)).find((each) => each.state === state), 60_000);

test("a scheduled message is sent at its time, answered, and the schedule is done", async () => {
  const made = await add({ when: "in 1s", text: "look at the build", conversation: "builds" });
  expect(made).toMatchObject({ state: "active", catchUp: "once", maxAge: "24h", createdBy: { by: "person", channel: "api" } });
  const { message } = await firstOf(made.id, "done");
  const sent = await daemon.json<Message>("GET", `/api/messages/${message}`);
  expect(sent).toMatchObject({ conversation: "builds", status: "done", reply: "nothing to do" });
  expect(sent.source).toEqual({ channel: "schedule", name: made.id });
  expect(model.requests.map(lastUserText).some((text) => text.includes("[via schedule] look at the build"))).toBe(true);
  expect(await daemon.json<Schedule>("GET", `/api/schedules/${made.id}`)).toMatchObject({ state: "done", nextAt: null });
});

test("a squad gets its task; a missing squad or one without agents is refused", async () => {
  await squadWith(daemon, project(undefined, atTheEnd), "web", ["Backend Engineer"]);
  const { id } = await add({ when: "in 1s", text: "look at the tests", squad: "web" });
  const { task } = await firstOf(id, "done");
  expect(task).toMatch(/^t_/);
  await daemon.json("POST", "/api/squads", { name: "empty", slug: "empty", projectPath: project(undefined, atTheEnd) });
  for (const wrong of [{ squad: "empty" }, { squad: "gone" }, { swarm: "gone" }, { swarm: "/no/such/folder" }]) {
    const refused = await daemon.json<ApiError>("POST", "/api/schedules", { when: "in 1h", text: "x", ...wrong });
    expect({ wrong, message: refused.error.message }).toEqual({
      wrong,
      message: expect.stringMatching(/no agents|no squad|no such folder/),
    });
  }
});

test("a schedule's cost includes its messages, its tasks, and the tasks that its messages delegated", async () => {
  const costOf = async (id: string) => (await daemon.json<ScheduleWithCost>("GET", `/api/schedules/${id}`)).cost;
  const alone = await add({ when: "in 1s", text: "look about", conversation: "costs" });
  const { message } = await firstOf(alone.id, "done");
  const { usage } = await daemon.json<Message>("GET", `/api/messages/${message}`);
  expect(usage.calls).toBe(1);
  expect(await costOf(alone.id)).toMatchObject({ ...usage, partial: true, unpriced: ["scripted"] });

  const task = await add({ when: "in 1s", text: "look at the lint", squad: "web" });
  // No passing test was observed.
  expect(await firstOf(task.id, "done")).toMatchObject({ reason: "unproven" });
  expect((await runIo(["schedule", "show", task.id], daemon.home)).stdout).toMatch(/ done +t_\w+ +unproven/);
  await until("the task's calls", async () => (await costOf(task.id)).calls >= 1);
  const text = callText("squad_delegate", { slug: "web", task: "look at the types" });
  const giver = await add({ when: "in 1s", text, conversation: "costs" });
  await firstOf(giver.id, "done");
  await until("the calls of the message and of the task it gave", async () => (await costOf(giver.id)).calls >= 3, 60_000);

  const { items, total } = await daemon.json<UsageSummary>("GET", "/api/usage?by=schedule");
  const byDay = await daemon.json<UsageSummary>("GET", "/api/usage?by=day");
  expect(items.map(({ name }) => name)).toEqual(expect.arrayContaining([alone.id, task.id, giver.id]));
  expect(total.calls).toBe(items.reduce((sum, { calls }) => sum + calls, 0));
  expect(byDay.total.calls).toBeGreaterThanOrEqual(total.calls);
  const shown = await runIo(["schedule", "show", alone.id], daemon.home);
  expect(shown.stdout).toContain(`used: 1 calls, ${usage.inputTokens.toLocaleString("en")} tokens in`);
  expect((await runIo(["usage", "--by", "schedule"], daemon.home)).stdout).toContain(alone.id);
}, 120_000);

test("the model creates, lists and removes schedules for its conversation", async () => {
  const added = await modelCalls(daemon, model, "schedule_add", { when: "daily 09:00", text: "say hello", tz: "UTC" });
  const id = /s_[0-9a-z]+/.exec(added.read)![0];
  expect(await daemon.json<Schedule>("GET", `/api/schedules/${id}`)).toMatchObject({
    conversation: added.message.conversation,
    createdBy: { by: "model", channel: "api" },
    nextAt: expect.stringContaining("T09:00:00"),
  });
  expect((await modelCalls(daemon, model, "schedule_list", {})).read).toContain(id);
  expect((await modelCalls(daemon, model, "schedule_add", { when: "often", text: "x" })).read).toContain("weekdays 08:30");
  expect((await modelCalls(daemon, model, "schedule_remove", { id })).read).toContain("Removed");
  expect((await daemon.fetch(`/api/schedules/${id}`)).status).toBe(404);
});

test("commands add, list, show, pause, resume, run and remove schedules; an invalid time exits with 2 and an example", async () => {
  const io = (...args: string[]) => runIo(["schedule", ...args], daemon.home);
  const bad = await io("add", "now and then", "x");
  expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('"every 2h"') });
  expect((await io("add", "every 1s", "x")).code).toBe(2);
  expect((await io("show", "s_none")).code).toBe(1);
  const made = JSON.parse((await io("add", "every 1h", "look around", "--tz", "Europe/Berlin", "--json")).stdout) as Schedule;
  expect(made).toMatchObject({ when: "every 1h", tz: "Europe/Berlin", createdBy: { by: "person", channel: "tui" } });
  expect((await io("list")).stdout).toContain(made.id);
  expect((await io("pause", made.id)).stdout).toContain("Paused");
  expect((await io("pause", made.id)).code).toBe(1);
  expect((await io("resume", made.id)).stdout).toContain("next");
  const before = await daemon.json<Schedule>("GET", `/api/schedules/${made.id}`);
  const begun = JSON.parse((await io("run", made.id, "--json")).stdout) as Occurrence;
  expect(begun).toMatchObject({ state: "running", message: expect.stringMatching(/^m_/) });
  await firstOf(made.id, "done");
  expect((await daemon.json<Schedule>("GET", `/api/schedules/${made.id}`)).nextAt).toBe(before.nextAt);
  expect((await io("show", made.id)).stdout).toContain("asked for by hand");
  expect((await io("remove", made.id)).stdout).toContain("Removed");
}, 120_000);

test("after a kill nothing runs twice: started work is finished, and times missed meanwhile are reported", async () => {
  const { id } = await add({ when: "every 5s", text: "look again", conversation: "kills" });
  await until("the first", async () => (await past(id))[0], 60_000);
  await daemon.kill("SIGKILL");
  daemon = await startDaemonProcess(daemon.home, providerEnvironment(model.url), atTheEnd);
  await until("more of them", async () => (await past(id)).filter(({ state }) => state === "done").length >= 2, 60_000);
  await daemon.json("POST", `/api/schedules/${id}/pause`);
  const all = await past(id);
  const dues = all.map(({ dueAt }) => Date.parse(dueAt));
  expect(dues.slice(1).map((due, at) => due - dues[at]!)).toEqual(dues.slice(1).map(() => 5_000));
  const said = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=kills&limit=200");
  expect(said.items.map(({ id: message }) => message).sort()).toEqual(all.flatMap(({ message }) => message ?? []).sort());
  await until("none to be open", async () => (await past(id)).every(({ state }) => state !== "running"), 60_000);
}, 180_000);

test("a schedule set to ask about missed times asks", async () => {
  const { id } = await add({ when: "every 5s", text: "look late", catchUp: "ask", conversation: "late" });
  await firstOf(id, "done");
  await daemon.kill("SIGTERM");
  // Shift the rows back to simulate a minute without IO.
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const db = new DatabaseSync(`${daemon.home}/io.db`);
  const early = (ms: number) => new Date(Date.now() - ms).toISOString();
  db.prepare("UPDATE schedules SET next_at = ?, anchor_at = ?, when_given = 'every 1h' WHERE id = ?").run(
    early(100_000),
    early(100_000),
    id,
  );
  db.close();
  daemon = await startDaemonProcess(daemon.home, providerEnvironment(model.url), atTheEnd);
  const { reason } = await firstOf(id, "waiting");
  expect(reason).toBe("IO was not running");
  const asked = async () =>
    (await daemon.json<{ items: Approval[] }>("GET", "/api/approvals?state=waiting")).items.filter(
      ({ owner }) => owner.id === id,
    );
  const [question] = await until("the question", async () => ((await asked()).length > 0 ? asked() : undefined));
  expect(question).toMatchObject({ owner: { kind: "schedule", id }, conversation: "late" });
  await daemon.json("POST", `/api/approvals/${question!.id}`, { decision: "allow" });
  const done = await until("it to be done late", async () =>
    (await past(id)).find(({ reason: why, state }) => state === "done" && why === "IO was not running"),
  );
  expect(done.message).toMatch(/^m_/);
}, 120_000);
