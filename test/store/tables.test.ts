import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { Event } from "../../src/protocol/events.ts";
import { createConversationLog } from "../../src/store/conversation-log.ts";
import { createEventLog } from "../../src/store/events.ts";
import { createHub } from "../../src/store/hub.ts";
import { createMessages } from "../../src/store/messages.ts";
import { openStore } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

function open(path = ":memory:") {
  const store = openStore(path);
  onTestFinished(() => store.close());
  return store;
}
const log = createLog({ redactor: createRedactor() });
const outcome = {
  status: "done" as const,
  reply: "yes",
  partial: false,
  error: null,
  route: { answered: "directly" as const, tools: [], tasks: [], runs: [] },
};

test("messages of a conversation are taken in order, each until it is finished", () => {
  const store = open();
  const messages = createMessages(store, createUsageLog(store));
  const add = (id: string, conversation: string) =>
    messages.add({ id, conversation, source: { channel: "api" }, text: id, idempotencyKey: undefined });
  for (const id of ["a1", "a2", "a3"]) add(id, "a");
  add("b1", "b");
  expect(messages.next("a")?.message.id).toBe("a1");
  messages.start("a1", "s1");
  messages.accepted("a1", "p1");
  expect(messages.next("a")).toMatchObject({ message: { id: "a1" }, begun: { sessionId: "s1", promptId: "p1" } });
  expect(messages.finish("a1", outcome)).toBe(true);
  expect(messages.finish("a1", { ...outcome, reply: "twice" })).toBe(false);
  expect(messages.find("a1")?.reply).toBe("yes");
  expect(messages.next("a")?.message.id).toBe("a2");
  expect(messages.next("a")?.begun).toBeUndefined();
  expect(messages.conversationsWaiting().sort()).toEqual(["a", "b"]);
  expect(messages.list("a", 2).map(({ id }) => id)).toEqual(["a3", "a2"]);
  expect(messages.list("a", 2, "a2").map(({ id }) => id)).toEqual(["a1"]);
});

test("a repeated idempotency key returns the first message", () => {
  const store = open();
  const messages = createMessages(store, createUsageLog(store));
  const give = (id: string) =>
    messages.add({ id, conversation: "main", source: { channel: "api" }, text: id, idempotencyKey: "k" });
  expect(give("first").isNew).toBe(true);
  expect(give("second")).toMatchObject({ isNew: false, message: { id: "first" } });
  expect(messages.counts().queued).toBe(1);
});

test("the last thousand lines of a conversation are kept", () => {
  const store = open();
  const talk = createConversationLog(store);
  store.transaction(() => {
    for (let index = 0; index < 1_050; index += 1) talk.add("main", "user", "api", `line ${index}`);
  });
  expect(store.db.prepare("SELECT COUNT(*) AS count FROM conversation_log").get()).toEqual({ count: 1_000 });
  const kept = talk.last("main", 2_000);
  expect(kept[0]?.content).toBe("line 50");
  expect(kept.at(-1)?.content).toBe("line 1049");
});

test("a busy conversation does not push out a quiet one's lines", () => {
  const store = open();
  const talk = createConversationLog(store);
  store.transaction(() => {
    talk.add("quiet", "user", "api", "remember the roses");
    for (let index = 0; index < 1_050; index += 1) talk.add("loud", "user", "api", `line ${index}`);
  });
  expect(talk.last("quiet", 40).map(({ content }) => content)).toEqual(["remember the roses"]);
  expect(talk.last("loud", 2_000)).toHaveLength(1_000);
});

test("events are published once, in order, and those of a transaction after its commit", () => {
  const store = open(join(temporaryFolder(), "io.db"));
  const hub = createHub({ events: createEventLog(store), log });
  onTestFinished(() => hub.close());
  const heard: Event[] = [];
  hub.subscribe((event) => heard.push(event));
  const tell = (name: string) => hub.emit({ type: "page.written", data: { path: "pages/a.md", title: name } });
  tell("before");
  store.transaction(() => {
    tell("inside 1");
    tell("inside 2");
    expect(heard).toHaveLength(1);
  });
  expect(() =>
    store.transaction(() => {
      tell("taken back");
      throw new Error("no");
    }),
  ).toThrow("no");
  tell("after");
  expect(heard.map((event) => event.type === "page.written" && event.data.title)).toEqual([
    "before",
    "inside 1",
    "inside 2",
    "after",
  ]);
  const ids = heard.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
});

test("events blocked by another program's lock are published as soon as it is released", async () => {
  const path = join(temporaryFolder(), "io.db");
  const hub = createHub({ events: createEventLog(open(path)), log });
  onTestFinished(() => hub.close());
  const heard: Event[] = [];
  hub.subscribe((event) => heard.push(event));
  const other = new DatabaseSync(path);
  onTestFinished(() => other.close());
  other.exec("BEGIN IMMEDIATE");
  hub.emit({ type: "page.written", data: { path: "pages/a.md", title: "A" } });
  expect(heard).toEqual([]);
  other.exec("COMMIT");
  await until("the news", () => heard.length > 0);
  expect(heard).toMatchObject([{ type: "page.written" }]);
});

test("a failing listener does not affect the others, and quick deltas are combined", async () => {
  const hub = createHub({ events: createEventLog(open()), log });
  onTestFinished(() => hub.close());
  const heard: Event[] = [];
  hub.subscribe(() => {
    throw new Error("a bad listener");
  });
  hub.subscribe((event) => heard.push(event));
  // However long it takes on a busy machine.
  const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
  onTestFinished(() => clock.mockRestore());
  for (const text of ["a", "b", "c", "d"]) hub.emit({ type: "message.delta", data: { id: "m", text } });
  hub.emit({ type: "message.started", data: { id: "m", conversation: "main" } });
  expect(heard.map((event) => (event.type === "message.delta" ? event.data.text : "")).join("")).toBe("abcd");
  expect(heard.length).toBeLessThan(5);
  expect(heard.at(-1)?.type).toBe("message.started");
});

test("events of another version are skipped, and later ones are delivered", () => {
  const store = open();
  const events = createEventLog(store);
  const strange = store.db.prepare("INSERT INTO events (type, data, created_at) VALUES (?, ?, '')");
  for (let index = 0; index < 3; index += 1) strange.run("moon.risen", "{}");
  strange.run("page.written", '{"path":7}');
  strange.run("page.written", "{half");
  events.append([{ type: "page.written", data: { path: "pages/a.md", title: "A" } }]);
  expect(events.since(0, 4)).toEqual({ events: [], upTo: 4 });
  expect(events.since(0)).toMatchObject({ events: [{ id: 6, data: { title: "A" } }], upTo: 6 });

  const late = createHub({ events, log });
  onTestFinished(() => late.close());
  const heard: number[] = [];
  late.subscribe(({ id }) => heard.push(id));
  late.emit({ type: "page.deleted", data: { path: "pages/a.md", title: "A" } });
  expect(heard).toEqual([7]);
});
