import { expect, onTestFinished, test } from "vitest";
import { createConversationLog } from "../../src/store/conversation-log.ts";
import { createConversationRows } from "../../src/store/conversations.ts";
import { createEventLog } from "../../src/store/events.ts";
import { createMessages } from "../../src/store/messages.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { createSessionRows } from "../../src/store/sessions.ts";
import { createSquadStore } from "../../src/store/squads.ts";
import { createState } from "../../src/store/state.ts";
import { createTaskActivity } from "../../src/store/task-activity.ts";
import { createToolCalls } from "../../src/store/tool-calls.ts";
import { createUsageLog } from "../../src/store/usage.ts";

const MANY = 50_000;
const NUMBERS = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY})`;

function open(): Store {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  return store;
}

function full(): Store {
  const store = open();
  store.db.exec(`
    ${NUMBERS} INSERT INTO messages (id, conversation, source, text, status, reply, created_at, finished_at)
      SELECT 'm' || i, CASE WHEN i % 10 = 0 THEN 'c' || i ELSE 'main' END, '{"channel":"api"}', printf('%0500d', i), 'done',
        printf('%0500d', i), '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z' FROM n;
    ${NUMBERS} INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at)
      SELECT 'm' || i, 'orchestrator', 'm', 10, 1, 0, 5, '2026-01-01T00:00:00.000Z' FROM n;
    ${NUMBERS} INSERT INTO tool_calls (call_id, session_id, owner, life, actor, tool, kind, args, args_hash, state, created_at)
      SELECT 'c' || i, 's', 'm' || i, 1, 'orchestrator', 'shell', 'read', '{}', '', 'done', '2026-01-01T00:00:00.000Z' FROM n;`);
  return store;
}

/** The quickest of some tries, in milliseconds: what the work costs by itself on a busy machine. */
function quickest(work: () => unknown): number {
  const times = Array.from({ length: 15 }, () => {
    const started = performance.now();
    work();
    return performance.now() - started;
  });
  return Math.min(...times);
}

test("with 50,000 messages the queue, a page, the counts, the conversations and a tool call take no longer than with none", () => {
  const store = full();
  const usage = createUsageLog(store);
  const messages = createMessages(store, usage);
  const conversations = createConversationRows(store);
  const calls = createToolCalls(store);
  messages.add({ id: "new", conversation: "main", source: { channel: "api" }, text: "next" });
  expect(messages.next("main")?.message.id).toBe("new");
  expect(messages.counts()).toMatchObject({ queued: 1, done: MANY });
  expect(conversations.list({ limit: 1 })).toEqual([
    expect.objectContaining({ name: "main", messages: MANY * 0.9 + 1, waiting: 1 }),
  ]);
  expect(conversations.list({ limit: 200 })).toHaveLength(200);
  const all = { calls: MANY, inputTokens: MANY * 10, outputTokens: MANY, cacheReadTokens: 0 };
  expect(usage.by("model")).toEqual([{ name: "m", squad: "", model: "m", rehearsal: false, ...all }]);
  const costs = {
    next: quickest(() => messages.next("main")),
    waiting: quickest(() => messages.conversationsWaiting()),
    open: quickest(() => messages.open()),
    page: quickest(() => messages.list("main", 20)),
    counts: quickest(() => messages.counts()),
    conversations: quickest(() => conversations.list({ limit: 50 })),
    usage: quickest(() => usage.by("day")),
    spentByConversation: quickest(() => usage.spent({ of: "conversation", name: "main" })),
    spentToday: quickest(() => usage.spent({ of: "day", day: "2026-01-01" })),
    spentOnMessage: quickest(() => usage.spent({ of: "owner", owner: "m25000" })),
    latest: quickest(() => calls.latest("s", "c1")),
    callsOf: quickest(() => calls.callsOf("m25000")),
  };
  expect(Object.entries(costs).filter(([, ms]) => ms > 2)).toEqual([]);
});

test("the counts follow what is added, what moves on and what is taken away, a deleted squad's tasks too", () => {
  const store = open();
  const messages = createMessages(store, createUsageLog(store));
  const squads = createSquadStore(store);
  for (const id of ["a", "b", "c"])
    messages.add({ id, conversation: id === "c" ? "aside" : "main", source: { channel: "api" }, text: id });
  messages.start("a", "s");
  expect(messages.counts()).toMatchObject({ queued: 2, running: 1, done: 0 });
  const route = { answered: "directly" as const, tools: [], tasks: [], runs: [] };
  for (const id of ["a", "c"]) messages.finish(id, { status: "done", reply: "yes", partial: false, error: null, route });
  expect(messages.counts()).toMatchObject({ queued: 1, running: 0, done: 2 });
  const named = (name: string) =>
    createConversationRows(store)
      .list({ limit: 9 })
      .find((row) => row.name === name);
  expect(named("main")).toMatchObject({ messages: 2, waiting: 1 });
  store.db.exec("DELETE FROM messages WHERE id IN ('a', 'c')");
  expect(messages.counts()).toMatchObject({ queued: 1, done: 0 });
  expect(named("main")).toMatchObject({ messages: 1, waiting: 1 });
  expect(named("aside")).toBeUndefined();

  squads.create({ slug: "s", name: "S", projectPath: "/s", universe: "aliens" });
  for (const id of ["t1", "t2"]) squads.insertTask({ id, squad: "s", agent: "Ripley", description: id });
  squads.updateTask("t1", { status: "running" });
  expect(squads.taskCounts()).toEqual({ queued: 1, running: 1, all: 2 });
  squads.delete("s");
  expect(squads.taskCounts()).toEqual({ queued: 0, running: 0, all: 0 });
});

test("conversations come a page at a time, the latest first, none twice", () => {
  const store = open();
  let minute = 0;
  const messages = createMessages(
    store,
    createUsageLog(store),
    () => new Date(Date.UTC(2026, 0, 1, 0, Math.floor(minute++ / 2))),
  );
  for (let index = 0; index < 7; index += 1)
    messages.add({ id: `m${index}`, conversation: `c${index}`, source: { channel: "api" }, text: "hello" });
  const { list } = createConversationRows(store);
  const seen: string[] = [];
  for (let page = list({ limit: 3 }); page.length > 0; page = list({ limit: 3, before: seen.at(-1) }))
    seen.push(...page.map(({ name }) => name));
  expect(seen).toEqual(["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
});

test("ten thousand conversations are listed at once, and looked through in the time of a key press", () => {
  const store = open();
  store.db.exec(`${NUMBERS} INSERT INTO conversations (name, messages, waiting, last_at, created_at, title, folder)
    SELECT 'c' || i, 0, 0, printf('%08d', i), '', 'What was said about boats ' || i, '/home/me/project' || (i % 100)
    FROM n LIMIT 10000`);
  const { list } = createConversationRows(store);
  expect(list({ limit: 50, words: "BOATS 7700" }).map(({ name }) => name)).toEqual(["c7700"]);
  expect(list({ limit: 50, words: "boats 4242" }).map(({ name }) => name)).toEqual(["c4242"]);
  expect(list({ limit: 50, folder: "/home/me/project42" })).toHaveLength(50);
  expect(quickest(() => list({ limit: 50 }))).toBeLessThan(3);
  expect(quickest(() => list({ limit: 50, words: "nothing of the kind" }))).toBeLessThan(40);
});

/** Tables whose rows add up over the years. */
const GROWING = /\b(messages|events|tool_calls|usage|conversation_log|agent_tasks|task_activity|runs|run_steps)\b/;
/** Walks that an index makes short: of what is not finished, or of the newest until a page is full. */
const SHORT = /INDEX (messages_waiting|agent_tasks_open|agent_tasks_owed|runs_unfinished)\b/;

test("no query of the store walks through a table that grows", () => {
  const store = open();
  const prepared: string[] = [];
  const watched: Store = {
    ...store,
    db: new Proxy(store.db, {
      get(db, name) {
        if (name === "prepare")
          return (sql: string) => {
            prepared.push(sql);
            return db.prepare(sql);
          };
        const value = Reflect.get(db, name, db);
        return typeof value === "function" ? value.bind(db) : value;
      },
    }),
  };
  createMessages(watched, createUsageLog(watched));
  createConversationLog(watched);
  createEventLog(watched);
  createToolCalls(watched);
  createSessionRows(watched);
  createState(watched);
  createTaskActivity(watched);
  openRuns(watched);
  const squads = createSquadStore(watched);
  squads.listTasks({ squad: "s", before: "t" });
  squads.listTasks({ status: "failed" });
  squads.listTasks({ squad: "s", agent: "a", status: "done" });

  const walks = prepared.flatMap((sql) =>
    (store.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[])
      .map(({ detail }) => detail)
      .filter(
        (detail) =>
          (/^SCAN/.test(detail) && GROWING.test(detail) && !SHORT.test(detail)) || /TEMP B-TREE FOR GROUP BY/.test(detail),
      )
      .map((detail) => `${detail}: ${sql}`),
  );
  expect(walks.filter((walk) => !/usage_sums/.test(walk))).toEqual([]);
});
