import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { inDatabase, systemOf } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const finished = (daemon: TestDaemon, id: string) =>
  until(`message ${id} to be finished`, async () => {
    const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
    return message.finishedAt === null ? undefined : message;
  });
const journal = (home: string, owner: string) =>
  inDatabase(home, (db) =>
    db
      .prepare("SELECT tool, kind, state, replayed FROM tool_calls WHERE owner = ? ORDER BY seq")
      .all(owner)
      .map((row) => ({ ...(row as { state: string; replayed: number }) })),
  );
/** The file's inode and modification time: a second write would change both. */
const stampOf = (file: string) => {
  const { ino, mtimeNs } = statSync(file, { bigint: true });
  return `${ino}:${mtimeNs}`;
};
/** Writes one file, then falls silent the first time it is shown the result. */
function writesOnce(file: string): Model {
  let silent = false;
  return (request) => {
    if (!isAfterTool(request)) return { call: [{ tool: "file_ops", args: { operation: "write", path: file, content: "once" } }] };
    if (silent) return { say: `done: ${textOf(request.messages.at(-1))}` };
    silent = true;
    return { stall: "half a sen" };
  };
}

test("a message that had written a file when the daemon was killed is finished after the restart without writing again", async () => {
  const home = temporaryHome({ mode: "full" });
  const file = join(temporaryFolder(), "note.txt");
  const model = await scriptedModel(writesOnce(file));
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "note it" });
  await until("the model to see the result", () => model.requests.length === 2);
  const stamp = stampOf(file);
  await first.kill("SIGKILL");
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  const message = await finished(second, id);
  expect(message).toMatchObject({ status: "done", attempts: 2, route: { tools: ["file_ops"] } });
  expect(message.reply).toMatch(/^done: Wrote .*note\.txt \(4 bytes\)\.$/);
  expect(stampOf(file)).toBe(stamp);
  expect(journal(home, id)).toEqual([{ tool: "file_ops", kind: "effect", state: "done", replayed: 0 }]);
});

test("a message that had written a file when the runtime was killed is finished without writing again", async () => {
  const home = temporaryHome({ mode: "full" });
  const file = join(temporaryFolder(), "note.txt");
  const model = await scriptedModel(writesOnce(file));
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "note it" });
  await until("the model to see the result", () => model.requests.length === 2);
  const stamp = stampOf(file);
  process.kill(daemon.runtimePid(), "SIGKILL");
  expect(await finished(daemon, id)).toMatchObject({ status: "done", reply: expect.stringMatching(/^done: Wrote /) });
  expect(stampOf(file)).toBe(stamp);
  expect(journal(home, id)).toEqual([{ tool: "file_ops", kind: "effect", state: "done", replayed: 0 }]);
});

test("killed in the very moment of writing, the file is written once and the model knows where it stands", async () => {
  for (const victim of ["daemon", "runtime"] as const) {
    const home = temporaryHome({ mode: "full" });
    const file = join(temporaryFolder(), "note.txt");
    const model = await scriptedModel((request) =>
      isAfterTool(request)
        ? { say: `done: ${textOf(request.messages.at(-1))}`, delayMs: 150 }
        : { call: [{ tool: "file_ops", args: { operation: "write", path: file, content: "once" } }] },
    );
    const first = await startDaemonProcess(home, providerEnvironment(model.url));
    const runtime = first.runtimePid();
    const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "note it" });
    while (!existsSync(file)) await new Promise((next) => setImmediate(next));
    if (victim === "daemon") await first.kill("SIGKILL");
    else process.kill(runtime, "SIGKILL");
    const stamp = stampOf(file);
    const daemon = victim === "daemon" ? await startDaemonProcess(home, providerEnvironment(model.url)) : first;
    const message = await finished(daemon, id);
    expect(message.status).toBe("done");
    expect(message.reply).toMatch(/^done: (Wrote |This call of file_ops was begun before an interruption)/);
    expect(stampOf(file)).toBe(stamp);
    expect(readFileSync(file, "utf8")).toBe("once");
    expect(journal(home, id).filter(({ replayed }) => replayed === 0)).toHaveLength(1);
  }
}, 120_000);

test("a session made with other tools is replaced, and the model still knows what was said before", async () => {
  const home = temporaryHome({ mode: "full" });
  const model = await scriptedModel((request) => ({
    say: lastUserText(request).includes("name") ? "Your boat is called Ada." : `a long answer ${"word ".repeat(900)}`,
  }));
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  for (let index = 0; index < 6; index += 1) await first.ask({ text: `small talk ${index}` });
  await first.ask({ text: "my boat's name is Ada" });
  const before = inDatabase(home, (db) => db.prepare("SELECT value FROM io_state WHERE key = 'orchestrator_session_id'").get());
  await first.kill("SIGTERM");

  inDatabase(home, (db) => db.prepare("UPDATE sessions SET fingerprint = 'made with other tools'").run());
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  await second.ask({ text: "what is its name?" });
  const request = model.requests.at(-1)!;
  expect(request.messages.filter(({ role }) => role === "user")).toHaveLength(1);
  const handover = /## Said earlier in this conversation[^\n]*\n(.*)$/s.exec(systemOf(request))?.[1] ?? "";
  // Everything that fits is included, because a fact may be anywhere.
  expect(handover).toContain("User: [via api] my boat's name is Ada");
  expect(handover).toContain("Assistant: Your boat is called Ada.");
  for (let index = 0; index < 6; index += 1) expect(handover).toContain(`User: [via api] small talk ${index}`);
  const after = inDatabase(home, (db) => db.prepare("SELECT value FROM io_state WHERE key = 'orchestrator_session_id'").get());
  expect(after).not.toEqual(before);

  await second.ask({ text: "and again, its name?" });
  expect(model.requests.at(-1)!.messages.filter(({ role }) => role === "user")).toHaveLength(2);
  expect(systemOf(model.requests.at(-1)!)).toContain("User: [via api] my boat's name is Ada");
});

test("a new page reaches the next request of the same session, also one written with an editor", async () => {
  const home = temporaryHome({ mode: "full" });
  const model = await scriptedModel(() => ({ say: "fine" }));
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  await daemon.ask({ text: "first" });
  expect(systemOf(model.requests.at(-1)!)).not.toContain("rigging");
  await daemon.json("PUT", "/api/wiki/pages/projects/rigging", { content: "# The rigging plan\n\nTwo masts.\n" });
  await daemon.ask({ text: "second" });
  expect(systemOf(model.requests.at(-1)!)).toContain("projects/rigging: The rigging plan");
  expect(model.requests.at(-1)!.messages.filter(({ role }) => role === "user")).toHaveLength(2);

  mkdirSync(join(home, "wiki", "pages", "people"), { recursive: true });
  writeFileSync(join(home, "wiki", "pages", "people", "ada.md"), "# Ada Lovelace\n\nWrites notes.\n");
  await until("the page in a system message", async () => {
    await daemon.ask({ text: "and now?" });
    return systemOf(model.requests.at(-1)!).includes("people/ada: Ada Lovelace");
  });
  const sessions = inDatabase(home, (db) => db.prepare("SELECT count(*) AS count FROM sessions").get());
  expect(sessions).toEqual({ count: 1 });
  const users = model.requests.at(-1)!.messages.filter(({ role }) => role === "user");
  expect(users.length).toBeGreaterThanOrEqual(3);
});

test("what was asked and not answered is still part of the conversation", async () => {
  const model = await scriptedModel(() => ({ status: 400, message: "no" }));
  const home = temporaryHome({ mode: "full" });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  expect((await daemon.ask({ text: "Remember the milk" })).status).toBe("failed");
  const said = inDatabase(home, (db) =>
    db
      .prepare("SELECT role, content FROM conversation_log")
      .all()
      .map((row) => ({ ...row })),
  );
  expect(said).toEqual([{ role: "user", content: "Remember the milk" }]);
});

test("another default model serves from the next message on, in the same conversation", async () => {
  const model = await scriptedModel((request) => ({ say: `${request.messages.length}` }), { models: ["one", "two"] });
  const provider = { baseUrl: model.url, apiKey: "scripted-key-0123456789" };
  const daemon = await startDaemonProcess(temporaryHome({ provider, defaultModel: "one" }));
  await daemon.ask({ text: "hello" });
  await daemon.json("PATCH", "/api/config", { defaultModel: "two" });
  expect((await daemon.ask({ text: "hello again" })).status).toBe("done");
  expect(model.requests.map(({ model: name }) => name)).toEqual(["one", "two"]);
  expect(JSON.stringify(model.requests[1]!.messages)).toContain("hello");
  expect(await daemon.json("GET", "/api/status")).toMatchObject({ engine: { model: "two" } });
});
