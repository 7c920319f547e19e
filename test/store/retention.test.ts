import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/engine/port.ts";
import { sessionLog, sessionNames } from "../../src/engine/sessions/recover.ts";
import { Config } from "../../src/home/config.ts";
import { createMessages } from "../../src/store/messages.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { createRetention, type StoredSessions } from "../../src/store/retention.ts";
import { createSessionRows } from "../../src/store/sessions.ts";
import { createSweeps } from "../../src/store/sweeps.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { holdDatabase } from "../support/database-holder.ts";
import { quietLog, startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { startSwarm } from "../support/swarm/index.ts";

const NOW = new Date("2026-06-01T00:00:00.000Z");
const OLD = "2020-01-01T00:00:00.000Z";
const YOUNG = "2026-05-31T00:00:00.000Z";
const NO_SESSIONS: StoredSessions = { isReady: () => true, names: async () => [], delete: async () => {} };

const SPEC = `
pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}]}
`;

const open = (path = ":memory:") => {
  const store = openStore(path);
  onTestFinished(() => store.close());
  return store;
};
const retentionOn = (store: Store, given: Record<string, number> = {}, sessions = NO_SESSIONS, now = NOW) =>
  createRetention({
    store,
    limits: () => Config.parse({ retention: given }).retention,
    sessions,
    log: quietLog,
    now: () => now,
    pauseMs: 0,
  });
const idsIn = (store: Store, sql: string) => (store.db.prepare(sql).all() as { id: string }[]).map(({ id }) => id);

/** Creates an old and a recent row of each kind, and old rows that are unfinished or still needed. */
function fillStore(store: Store): void {
  const message = (id: string, status: string, at: string, more = "NULL", conversation = "main") =>
    `INSERT INTO messages (id, conversation, source, text, status, idempotency_key, created_at, finished_at)
     VALUES ('${id}', '${conversation}', '{"channel":"api"}', '${id}', '${status}', ${more}, '${at}', '${at}');`;
  const call = (id: string, owner: string, at = OLD) =>
    `INSERT INTO tool_calls (call_id, session_id, owner, life, actor, tool, kind, args, args_hash, state, created_at)
     VALUES ('${id}', 's', '${owner}', 1, 'a', 'shell', 'effect', '{}', '', 'done', '${at}');`;
  const spent = (owner: string, at = OLD) =>
    `INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at)
     VALUES ('${owner}', 'orchestrator', 'm', 100, 10, 1, 5, '${at}');`;
  const run = (id: string, status: string, at: string) =>
    `INSERT INTO runs (id, status, project_path, issue, inputs, created_at, finished_at)
     VALUES ('${id}', '${status}', '/p', 'i', '{}', '${OLD}', ${status === "running" ? "NULL" : `'${at}'`});`;
  const task = (id: string, status: string) =>
    `INSERT INTO agent_tasks (id, squad_slug, agent, description, status, created_at) VALUES ('${id}', 's', 'a', 'd', '${status}', '${OLD}');
     INSERT INTO task_activity (task_id, kind, summary, created_at) VALUES ('${id}', 'tool', '${id}', '${OLD}');`;
  store.db.exec(`
    INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at) VALUES ('s', 's', '/s', 'aliens', '', '');
    ${message("old", "done", OLD)} ${message("waiting", "queued", OLD)} ${message("told", "done", OLD, "'run:r_1:x'")}
    ${message("aside", "failed", OLD, "NULL", "aside")} ${message("young", "done", YOUNG)}
    ${run("r_done", "done", OLD)} ${run("r_failed", "failed", YOUNG)} ${run("r_lost", "failed", OLD)} ${run("r_cut", "running", OLD)}
    ${task("t_open", "running")} ${task("t_done", "done")}
    ${call("1", "old")} ${call("2", "waiting")} ${call("3", "r_done/k#1")} ${call("4", "r_failed/k#1")} ${call("5", "r_lost/k#1")}
    ${call("6", "r_cut/k#1")} ${call("7", "t_open")} ${call("8", "t_done")} ${call("9", "young", YOUNG)}
    ${spent("old")} ${spent("told")} ${spent("gone")} ${spent("t_done")} ${spent("young", YOUNG)}
    INSERT INTO events (type, data, created_at) VALUES ('squad.updated', '{}', '${OLD}'), ('squad.updated', '{}', '${YOUNG}');
    INSERT INTO conversation_log (conversation, role, source, content, created_at)
      VALUES ('aside', 'user', 'api', 'x', '${OLD}'), ('main', 'user', 'api', 'y', '${OLD}');
    INSERT INTO io_state VALUES ('runs:old', '[]'), ('runs:waiting', '[]'), ('decided:r_gone', 'yes'), ('decided:r_done', 'yes'),
      ('model:x', '{}');`);
}

test("old records are deleted; unfinished ones, keys of reported news, what a resume needs, and sums are kept", async () => {
  const store = open();
  fillStore(store);
  const usage = createUsageLog(store);
  const before = [usage.by("model"), usage.by("actor"), usage.by("day")];
  const retention = retentionOn(store);
  await retention.pass();

  expect(idsIn(store, "SELECT id FROM messages ORDER BY seq")).toEqual(["waiting", "told", "young"]);
  expect(idsIn(store, "SELECT call_id AS id FROM tool_calls ORDER BY seq")).toEqual(["2", "4", "6", "7", "9"]);
  expect(idsIn(store, "SELECT owner AS id FROM usage ORDER BY usage.id")).toEqual(["told", "t_done", "young"]);
  expect([usage.by("model"), usage.by("actor"), usage.by("day")]).toEqual(before);
  expect(idsIn(store, "SELECT created_at AS id FROM events")).toEqual([YOUNG]);
  expect(idsIn(store, "SELECT task_id AS id FROM task_activity")).toEqual(["t_open"]);
  expect(idsIn(store, "SELECT conversation AS id FROM conversation_log")).toEqual(["main"]);
  expect(idsIn(store, "SELECT key AS id FROM io_state ORDER BY key")).toEqual(["decided:r_done", "model:x", "runs:waiting"]);
  expect(createMessages(store, usage).counts()).toMatchObject({ queued: 1, done: 2, failed: 0 });
  expect(retention.status()).toMatchObject({
    limits: { messagesDays: 365 },
    lastAt: NOW.toISOString(),
    removed: { messages: 2, events: 1, toolCalls: 3, usage: 1, activity: 1, notes: 2 },
  });
});

test("beyond the maximum count only the newest are kept, and 0 keeps everything", async () => {
  const store = open();
  store.db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO events (type, data, created_at) SELECT 'squad.updated', '{}', '${OLD}' FROM n`);
  await retentionOn(store, { eventsDays: 0, events: 0 }).pass();
  expect(idsIn(store, "SELECT count(*) AS id FROM events")).toEqual([3_000]);
  await retentionOn(store, { eventsDays: 0, events: 1_000 }).pass();
  expect(idsIn(store, "SELECT min(id) || '-' || max(id) AS id FROM events")).toEqual(["2001-3000"]);
});

test("a pass runs in short steps with other work in between", async () => {
  const store = open();
  const fill = () =>
    store.db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
      INSERT INTO tool_calls (call_id, session_id, owner, life, actor, tool, kind, args, args_hash, state, created_at)
      SELECT 'c' || i || random(), 's', 'm' || i, 1, 'a', 'shell', 'read', '{}', '', 'done', '${OLD}' FROM n`);
  fill();
  const limits = Config.parse({}).retention;
  const steps = createSweeps(store).flatMap((sweep) => [...sweep.steps(limits, NOW)]);
  expect(steps.reduce((sum, rows) => sum + rows, 0)).toBe(4_000);
  expect(Math.max(...steps)).toBeLessThanOrEqual(500);

  fill();
  let between = 0;
  const count = setInterval(() => {
    between += 1;
  }, 0);
  await retentionOn(store).pass();
  clearInterval(count);
  expect(between).toBeGreaterThanOrEqual(8);
});

test("while another program locks the database, a pass neither waits nor fails, and the next one catches up", async () => {
  const home = temporaryFolder();
  const store = open(join(home, "io.db"));
  fillStore(store);
  const retention = retentionOn(store);
  const holder = await holdDatabase(home);
  const started = performance.now();
  await retention.pass();
  expect(performance.now() - started).toBeLessThan(soon(2_000));
  expect(retention.status().removed).toEqual({});
  await holder.release();
  await retention.pass();
  expect(retention.status().removed).toMatchObject({ messages: 2, events: 1 });
});

test("a replaced session is deleted from disk unless an unfinished message started in it", async () => {
  const folder = temporaryFolder();
  const store = open();
  const model = await scriptedModel(() => ({ say: "fine" }));
  const engine = await startEngine(folder, model.url);
  const rows = createSessionRows(store, () => new Date(OLD));
  const spec = (id: string) => ({ id, systemMessage: () => "You are a test.", tools: [], workingDirectory: folder });
  for (const [id, conversation] of [
    ["io-replaced", "main"],
    ["io-now", "main"],
    ["io-needed", "busy"],
    ["io-newer", "busy"],
    ["io-forgotten", "nobody"],
  ] as const) {
    rows.begin(id, `conversation:${conversation}`, "f");
    await engine.session(spec(id)).run(turn("hello"));
  }
  store.db.exec(`INSERT INTO messages (id, conversation, source, text, status, session_id, created_at) VALUES
    ('a', 'main', '{}', '', 'done', 'io-replaced', '${YOUNG}'), ('b', 'busy', '{}', '', 'running', 'io-needed', '${OLD}')`);
  await retentionOn(store, {}, storedIn(folder, engine)).pass();
  expect((await sessionNames(folder)).sort()).toEqual(["io-needed", "io-newer", "io-now"]);
  expect(idsIn(store, "SELECT id FROM sessions ORDER BY id")).toEqual(["io-needed", "io-newer", "io-now"]);
});

test("a failed run's sessions are deleted long after its end, and it can still be resumed", async () => {
  let engine: Engine | undefined;
  let patient = false;
  const { swarm, project, settings, home, store } = await startSwarm({
    script: ({ role }) => (role === "pm-reviewer" && !patient ? { say: "No." } : undefined),
    files: {
      "swarm.config.yaml": SPEC,
    },
    engine: (real) => {
      engine = real;
      return real;
    },
  });
  const folder = join(home, "sessions");
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  expect(run.status).toBe("failed");
  const left = (await sessionNames(folder)).filter((name) => name.startsWith(`swarm-${run.id}-`));
  expect(left.length).toBeGreaterThan(0);
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
  await retentionOn(store, {}, storedIn(folder, engine!), inDays(29)).pass();
  expect(left.every((name) => existsSync(sessionLog(folder, name)))).toBe(true);
  await retentionOn(store, {}, storedIn(folder, engine!), inDays(31)).pass();
  expect((await sessionNames(folder)).filter((name) => name.startsWith(`swarm-${run.id}-`))).toEqual([]);
  patient = true;
  expect((await (await swarm.resume(run.id)).finished).status).toBe("done");
});

function storedIn(folder: string, engine: Engine): StoredSessions {
  return { isReady: () => true, names: () => sessionNames(folder), delete: (id) => engine.deleteSession(id) };
}

test("undelivered entries are kept with their message, and delivered ones are deleted", async () => {
  const store = open();
  fillStore(store);
  const owed = (about: string, state: string, at = OLD, key = `reply:${about}`) =>
    `INSERT INTO outbox (key, lane, kind, about, conversation, source, state, created_at)
     VALUES ('${key}', 'l', 'reply', '${about}', 'main', '{"channel":"api"}', '${state}', '${at}');`;
  store.db.exec(`${owed("old", "owed")} ${owed("aside", "delivered")} ${owed("gone", "undeliverable")}
    ${owed("young", "delivered", YOUNG)} ${owed("t_open", "delivered", OLD, "task:t_open")}
    UPDATE messages SET idempotency_key = 'task:t_open' WHERE id = 'waiting';`);
  await retentionOn(store, { messagesDays: 30 }).pass();
  expect(idsIn(store, "SELECT about AS id FROM outbox ORDER BY about")).toEqual(["old", "t_open", "young"]);
  expect(idsIn(store, "SELECT id FROM messages ORDER BY id")).toEqual(["old", "told", "waiting", "young"]);
});
