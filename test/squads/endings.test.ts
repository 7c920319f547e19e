import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import type { Task } from "../../src/protocol/squads.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { inDatabase } from "../support/orchestrator.ts";
import { characterOf, daemonOn, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const messagesIn = async (daemon: TestDaemon, conversation: string) =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`)).items;

test("a task asked for again while its cancel is under way is a new task", async () => {
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    const isFirst = model.requests.filter((one) => characterOf(one)).length === 1;
    return isFirst ? { call: [{ tool: "shell", args: { command: "sleep 600", timeout_secs: 900 } }] } : { say: "done now" };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer"]);
  const first = await delegate(daemon, "one", { task: "wait long", conversation: "a" });
  await until("the shell", async () => {
    const { items } = await daemon.json<{ items: { summary: string }[] }>("GET", `/api/tasks/${first.id}/activity`);
    return items.some(({ summary }) => summary.includes("sleep 600"));
  });
  const cancelling = daemon.json<Task>("POST", `/api/tasks/${first.id}/cancel`);
  const [cancelled, second] = await Promise.all([cancelling, delegate(daemon, "one", { task: "wait long", conversation: "z" })]);
  expect(cancelled).toMatchObject({ id: first.id, status: "cancelled" });
  expect(second.id).not.toBe(first.id);
  expect(await ended(daemon, second.id)).toMatchObject({ status: "done", result: "done now" });
  await until("whoever asked to be told", async () => (await messagesIn(daemon, "z")).length === 1);
});

test("when a task that several asked for is cancelled, they are told; who asked alone and cancels is not", async () => {
  const model = await scriptedModel((request) => (characterOf(request) ? { hang: true } : { say: "noted" }));
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer", "Tester"]);
  const shared = await delegate(daemon, "one", { task: "wait", conversation: "a" });
  expect((await delegate(daemon, "one", { task: "wait", conversation: "b" })).id).toBe(shared.id);
  const alone = await delegate(daemon, "one", { task: "wait alone", conversation: "c" });
  for (const { id } of [shared, alone]) await daemon.json("POST", `/api/tasks/${id}/cancel`);
  for (const conversation of ["a", "b"])
    await until(`${conversation} to be told`, async () => {
      const [message] = await messagesIn(daemon, conversation);
      return message?.text.includes("cancelled");
    });
  expect(await messagesIn(daemon, "c")).toEqual([]);
});

test("a turn whose last word is empty is no answer, whatever was said before it", async () => {
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    return stepOf(request) === 0
      ? { say: "I will look first.", call: [{ tool: "shell", args: { command: "true" } }] }
      : { empty: true };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer"]);
  const task = await ended(daemon, (await delegate(daemon, "one", { task: "look" })).id);
  expect(task).toMatchObject({ status: "failed", error: { code: "no_answer" } });
});

test("only a squad's own slug reaches it, and deleting takes the record of its tasks' calls along", async () => {
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    const call = { tool: "shell", args: { command: "echo quite-private" } };
    return stepOf(request) === 0 ? { call: [call] } : { say: lastUserText(request).slice(0, 20) };
  });
  const home = temporaryHome();
  const daemon = await daemonOn(model, home);
  await daemon.json("POST", "/api/squads", { name: "My App", projectPath: project() });
  await daemon.json("POST", "/api/squads/my-app/agents", { roleTitle: "Engineer", charter: "All." });
  await ended(daemon, (await delegate(daemon, "my-app", { task: "say it" })).id);
  for (const slug of ["..%2Fmy%2Fapp", "my%2Fapp", "my.app", "My%20App", "MY-APP"]) {
    expect((await daemon.fetch(`/api/squads/${slug}`)).status, slug).toBe(404);
    expect((await daemon.fetch(`/api/squads/${slug}`, { method: "DELETE" })).status, slug).toBe(404);
  }
  const kept = () =>
    inDatabase(home, (db) => db.prepare("SELECT count(*) AS n FROM tool_calls WHERE args LIKE '%quite-private%'").get());
  expect(kept()).toMatchObject({ n: 1 });
  expect((await daemon.fetch("/api/squads/my-app", { method: "DELETE" })).status).toBe(200);
  expect(kept()).toMatchObject({ n: 0 });
});
