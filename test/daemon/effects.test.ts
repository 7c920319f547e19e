import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { asked } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, obedient } from "../support/orchestrator.ts";
import { breakLine, sessionLogs } from "../support/session-logs.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const finished = (daemon: TestDaemon, id: string) =>
  until(`message ${id} to be finished`, async () => {
    const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
    return message.finishedAt === null ? undefined : message;
  });
const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);
const resultsSince = (request: Parameters<Model>[0]) => {
  const asked = request.messages.findLastIndex(({ role }) => role === "user");
  return request.messages.slice(asked + 1).filter(({ role }) => role === "tool");
};

/** Makes the same call the given number of times, then falls silent once. When asked again, it starts over and completes. */
function repeating(command: string, times = 1): { model: Model; isSilent: () => boolean } {
  let silent = false;
  return {
    isSilent: () => silent,
    model: (request) => {
      const results = resultsSince(request);
      if (results.length < times) return { call: [{ tool: "shell", args: { command } }] };
      if (silent) return { say: `done: ${results.map(textOf).join(" | ")}` };
      silent = true;
      return { stall: "half a sen" };
    },
  };
}

/** Kills a daemon, damages the log of each of its sessions, and starts it again. */
async function restartDamaged(daemon: TestDaemon, url: string): Promise<TestDaemon> {
  await daemon.kill("SIGKILL");
  for (const log of sessionLogs(daemon.home)) breakLine(log, 1);
  return startDaemonProcess(daemon.home, providerEnvironment(url));
}

test.each([1, 2])(
  "a command that had ended %i times is not run again when the daemon is killed and the session's log is broken",
  { timeout: 60_000 },
  async (times) => {
    const marker = join(temporaryFolder(), "marker");
    const { model: script, isSilent } = repeating(`echo ran >> ${marker}; echo said`, times);
    const model = await scriptedModel(script);
    const first = await startDaemonProcess(temporaryHome({ mode: "full" }), providerEnvironment(model.url));
    const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "do it" });
    await until("the model to have seen the results", isSilent);
    // In a healthy session, a command that is called twice runs twice.
    expect(linesOf(marker)).toHaveLength(times);
    const asked = model.requests.length;
    const second = await restartDamaged(first, model.url);
    const message = await finished(second, id);
    expect(message).toMatchObject({ status: "done", attempts: 2 });
    expect(message.reply!.match(/said/g)).toHaveLength(times);
    expect(linesOf(marker)).toHaveLength(times);
    const told = lastUserText(model.requests[asked]!);
    expect(told).toContain("do it");
    expect(told).toMatch(/cut off[\s\S]*shell[\s\S]*echo ran[\s\S]*said/);
    const { items } = await second.json<{ items: { state: string; tool: string }[] }>("GET", `/api/messages/${id}/calls`);
    expect(items.map(({ state }) => state)).toEqual(Array.from({ length: times }, () => "done"));
    // A call beyond those that were already made is carried out.
    const again = await second.ask({ text: "do it" });
    expect(again.status).toBe("done");
    expect(linesOf(marker)).toHaveLength(times * 2);
  },
);

test("a task's command is not run again when its agent's session is begun anew", { timeout: 60_000 }, async () => {
  const folder = project();
  const marker = join(temporaryFolder(), "marker");
  const { model: script, isSilent } = repeating(`echo ran >> ${marker}`);
  const model = await scriptedModel((request, index) => (characterOf(request) ? script(request, index) : { say: "noted" }));
  const first = await startDaemonProcess(temporaryHome({ mode: "full" }), providerEnvironment(model.url));
  const [agent] = await squadWith(first, folder, "one", ["Engineer"]);
  const { id } = await delegate(first, "one", { task: "leave a line", agent: agent! });
  await until("the agent to have seen the result", isSilent);
  const second = await restartDamaged(first, model.url);
  expect(await ended(second, id)).toMatchObject({ status: "done" });
  expect(linesOf(marker)).toEqual(["ran"]);
});

test("a person who did not answer in time is not asked again for the same call when the session is begun anew", {
  timeout: 60_000,
}, async () => {
  const marker = join(temporaryFolder(), "marker");
  const { model: script, isSilent } = repeating(`echo ran >> ${marker}`);
  const model = await scriptedModel(script);
  const home = temporaryHome({ mode: "full", approvals: "effects", approvalExpiresMs: 500 });
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "do it" });
  await until("the model to have been told", isSilent);
  const second = await restartDamaged(first, model.url);
  expect(await finished(second, id)).toMatchObject({ status: "done", reply: expect.stringContaining("nobody answered in time") });
  const { items } = await second.json<{ items: Approval[] }>("GET", "/api/approvals");
  expect(items.map(({ state }) => state)).toEqual(["expired"]);
  expect(linesOf(marker)).toEqual([]);
  // Another message leads to another question.
  const again = await second.ask({ text: "do it" });
  expect(again.reply).toContain("nobody answered in time");
  expect((await second.json<{ items: Approval[] }>("GET", "/api/approvals")).items).toHaveLength(2);
});

test("a question about a call expires before the runtime gives the call up without a word about it, whatever the config says", async () => {
  const model = await scriptedModel(obedient);
  const home = temporaryHome({ mode: "full", approvals: "effects", approvalExpiresMs: 86_400_000 });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const text = callText("shell", { command: "echo ran" });
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text });
  const [question] = await asked(daemon);
  const waitsMs = Date.parse(question!.expiresAt) - Date.parse(question!.createdAt);
  // The runtime waits 1,800 s for a call.
  expect(waitsMs).toBeLessThan(1_790_000);
  expect(waitsMs).toBeGreaterThan(1_700_000);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await finished(daemon, id);
});

test("a person is not asked again for a call that was allowed, nor for one that still waits, when the session is begun anew", {
  timeout: 90_000,
}, async () => {
  const marker = join(temporaryFolder(), "marker");
  const { model: script, isSilent } = repeating(`echo ran >> ${marker}`);
  const model = await scriptedModel(script);
  const home = temporaryHome({ mode: "full", approvals: "effects" });
  const approvals = async (daemon: TestDaemon) =>
    (await daemon.json<{ items: Approval[] }>("GET", "/api/approvals")).items.map(({ id, state }) => ({ id, state }));
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "do it" });
  const [asked] = await until("the question", async () => {
    const all = await approvals(first);
    return all.length > 0 ? all : undefined;
  });
  const second = await restartDamaged(first, model.url);
  await until("the model to ask again", () => model.requests.length > 1);
  await second.json("POST", `/api/approvals/${asked!.id}`, { decision: "allow" });
  await until("the model to have seen the result", isSilent);
  const third = await restartDamaged(second, model.url);
  expect(await finished(third, id)).toMatchObject({ status: "done" });
  expect(await approvals(third)).toEqual([{ id: asked!.id, state: "allowed" }]);
  expect(linesOf(marker)).toEqual(["ran"]);
});
