import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Session } from "../../src/engine/port.ts";
import { createAnswers } from "../../src/orchestrator/answer.ts";
import { createInbox } from "../../src/orchestrator/inbox.ts";
import { createOutbox, replyKey } from "../../src/orchestrator/outbox.ts";
import { createSteering } from "../../src/orchestrator/steering.ts";
import type { Event } from "../../src/protocol/events.ts";
import type { Source } from "../../src/protocol/messages.ts";
import { noUsage, type Spender } from "../../src/protocol/usage.ts";
import { createTaskEndings } from "../../src/squads/task-ending.ts";
import { createAttachments } from "../../src/store/attachments.ts";
import { createContexts } from "../../src/store/contexts.ts";
import { createConversationLog } from "../../src/store/conversation-log.ts";
import { createConversationRows } from "../../src/store/conversations.ts";
import { createEventLog } from "../../src/store/events.ts";
import { isTemporary, storeTrouble } from "../../src/store/faults.ts";
import { createHub } from "../../src/store/hub.ts";
import { createMessages } from "../../src/store/messages.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/open.ts";
import { createOutboxRows } from "../../src/store/outbox.ts";
import { openRuns } from "../../src/store/runs.ts";
import { createSessionRows } from "../../src/store/sessions.ts";
import { createSkillSwitches } from "../../src/store/skills.ts";
import { createSquadStore } from "../../src/store/squads.ts";
import { createSteerRows } from "../../src/store/steers.ts";
import { createTaskActivity } from "../../src/store/task-activity.ts";
import { createTelegramSends } from "../../src/store/telegram-sends.ts";
import { createTelegramUpdates } from "../../src/store/telegram-updates.ts";
import { createToolCalls, type NewToolCall } from "../../src/store/tool-calls.ts";
import type { Database } from "../../src/store/transactions.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { createRunRecords } from "../../src/swarm/run/records.ts";
import { createLedger } from "../../src/tools/approvals/ledger.ts";
import { openIndexFile } from "../../src/wiki/index-file.ts";
import { createPageIndex } from "../../src/wiki/page-index.ts";
import { createJobs } from "../../src/workers/jobs/jobs.ts";
import type { Job } from "../../src/workers/jobs/port.ts";
import { quietLog } from "../support/engine.ts";
import { FAULTS, type Fault, failingConnection } from "../support/failing-connection.ts";
import { temporaryFolder } from "../support/home.ts";
import { isWhole } from "../support/sweep.ts";
import { until } from "../support/until.ts";

/** Injecting every error at every statement takes minutes, so each error is injected at one statement in four. */
const faultsAt = (statement: number): readonly Fault[] =>
  isWhole ? FAULTS : [FAULTS[(statement * 2) % FAULTS.length]!, FAULTS[(statement * 2 + 3) % FAULTS.length]!];
const API: Source = { channel: "api" };
const SPENDER: Spender = { owner: "m_1", actor: "orchestrator", agent: "orchestrator", conversation: "main", source: "api" };
const CALL = { model: "scripted", inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, durationMs: 3 };

/** All modules that write, on a database whose statements can be made to fail. */
function openRooms() {
  const connection = failingConnection();
  const store = openStore(join(temporaryFolder(), "io.db"), { connect: connection.connect });
  const hub = createHub({ events: createEventLog(store), log: quietLog });
  const { emit } = hub;
  const told: Event[] = [];
  hub.subscribe((event) => told.push(event));
  const usage = createUsageLog(store);
  const messages = createMessages(store, usage);
  const sessions = createSessionRows(store);
  const steering = createSteering({ store, messages, rows: createSteerRows(store), sessions, emit });
  const delivered: string[] = [];
  const outbox = createOutbox({
    rows: createOutboxRows(store),
    deliver: ({ about }) => {
      delivered.push(about);
      return "delivered";
    },
    log: quietLog,
    retryMs: 1,
  });
  /** A session whose model answers immediately. */
  const session: Session = {
    id: "s_1",
    prepare: async () => undefined,
    async run({ owner, onAccepted, onEvent }) {
      try {
        onAccepted?.("p_1");
      } catch (error) {
        // Like the engine: a turn that could not be stored is resumed.
        if (!isTemporary(error)) throw error;
        onAccepted?.("p_1");
      }
      onEvent?.({ kind: "delta", text: "an answer" });
      onEvent?.({ kind: "usage", call: CALL });
      return { outcome: "done", text: `the answer to ${owner}`, usage: noUsage(), tools: [], served: ["scripted"] };
    },
  };
  const inbox = createInbox({
    ...{ store, messages, steering, outbox, emit, log: quietLog, retryMs: 1 },
    talk: createConversationLog(store),
    conversations: createConversationRows(store),
    answer: createAnswers({
      modelFor: async () => undefined,
      folderTrouble: () => undefined,
      attachments: createAttachments({ store, folder: "/nowhere" }),
      ...{ store, messages, sessions, steering, emit, announce: emit, contexts: createContexts(store) },
      spending: { record: usage.record, permit: async () => undefined },
      conversations: { current: () => session, byId: () => session } as unknown as Parameters<
        typeof createAnswers
      >[0]["conversations"],
      config: () => ({ turnSilenceMs: 1_000, turnCapMs: 1_000 }) as ReturnType<Parameters<typeof createAnswers>[0]["config"]>,
    }),
    addressOf: () => API,
    startedBy: () => ({ tools: [], tasks: [], runs: [] }),
  });
  onTestFinished(async () => {
    connection.heal();
    await Promise.all([inbox.close(), outbox.close()]);
    hub.close();
    store.close();
  });
  return { connection, store, hub, emit, told, usage, messages, sessions, steering, outbox, inbox, delivered };
}
type Rooms = ReturnType<typeof openRooms>;

interface Operation {
  name: string;
  /** The number of database states; one more means that an atomic change was split. */
  states: number;
  /** A failed write is retried later, and nothing is thrown. */
  isMadeUpFor?: boolean;
  /** Prepares the state, and returns the operation to test. */
  ready: (rooms: Rooms, round: string) => () => void;
}

const OPERATIONS: Operation[] = [
  {
    name: "a message is stored",
    states: 2,
    ready:
      ({ inbox }, round) =>
      () =>
        void inbox.submit(sayIn(round)),
  },
  {
    name: "a message is edited and then cancelled",
    states: 3,
    ready({ inbox }, round) {
      const { id } = inbox.submit(sayIn(round));
      return () => {
        inbox.rewrite(id, "other words");
        inbox.cancel(id);
      };
    },
  },
  {
    name: "text is added to a running turn",
    states: 2,
    ready({ inbox, messages, steering }, round) {
      const { id } = inbox.submit(sayIn(round));
      messages.start(id, "s_1");
      return () => void steering.say(id, "and more");
    },
  },
  {
    name: "a question is asked and decided",
    states: 3,
    ready({ store, emit }) {
      const ledger = createLedger({
        ...{ store, emit, expiresMs: () => 60_000, now: () => new Date(), onEnd: () => undefined },
        clean: (text: string) => text,
      } as Parameters<typeof createLedger>[0]);
      return () => {
        const { signal } = new AbortController();
        const asked = {
          kind: "call" as const,
          owner: "m_1",
          actor: "orchestrator",
          tool: "shell",
          args: {},
          summary: "run it",
          signal,
        };
        const { id } = ledger.insert(asked, "hash");
        ledger.end(id, { state: "allowed", scope: "once", decidedBy: "me" });
      };
    },
  },
  {
    name: "a call is journaled and superseded",
    states: 4,
    ready({ store }, round) {
      const calls = createToolCalls(store);
      const call = (id: string): NewToolCall => ({
        ...{ callId: `${id}-${round}`, sessionId: "s", owner: "m_1", attempt: 1, actor: "a", tool: "shell", kind: "effect" },
        ...{ args: "{}", argsHash: "h", state: "begun", createdAt: "2030-01-01T00:00:00.000Z" },
      });
      const end = { state: "done" as const, result: "", resultHash: "", durationMs: 1 };
      return () => {
        const seq = calls.begin(call("one"));
        calls.end(seq, "effect", end);
        calls.supersede(seq, call("two"), end);
      };
    },
  },
  {
    name: "a task is created and ends with its report",
    states: 3,
    ready({ store, emit, outbox }, round) {
      const squads = createSquadStore(store);
      const activity = createTaskActivity(store);
      if (!squads.find("web")) {
        squads.create({ slug: "web", name: "Web", projectPath: "/nowhere/web", universe: "aliens" });
      }
      const endings = createTaskEndings({
        ...{ database: store, store: squads, activity, emit, owe: outbox.owe, note: () => undefined, onSquad: () => undefined },
        gate: { callsOf: () => [], effectsOf: () => [], bind: () => [] },
        snapshots: {} as never,
        places: {} as never,
      } as unknown as Parameters<typeof createTaskEndings>[0]);
      const origin = { conversation: "main", source: API };
      return () => {
        const task = store.transaction(() => {
          const made = squads.insertTask({ id: `t_${round}`, squad: "web", agent: "Ripley", description: "build", origin });
          activity.ask(made.id, origin);
          return made;
        });
        endings.finish(task, { status: "done", result: "built", error: null }, null);
      };
    },
  },
  {
    name: "a run records its steps and is cancelled",
    states: 9,
    ready({ store, emit }, round) {
      const runs = openRuns(store);
      const records = createRunRecords({ store, emit, log: quietLog });
      const id = `r_${round}`;
      const now = "2030-01-01T00:00:00.000Z";
      return () => {
        runs.create({ id, projectPath: "/nowhere", issue: "Do it", inputs: "{}", now });
        for (const key of ["spec", "plan"]) {
          runs.begin(id, { key, kind: "call", phase: key }, "hash", now);
          runs.track(id, key, { attempts: 1, sessionId: "s", promptId: "p" });
          runs.answer(id, key, { state: "done", result: "1" }, now);
        }
        runs.forget(id, ["spec", "plan"]);
        records.cancel(id);
      };
    },
  },
  {
    name: "a job is started, reported, moved to a later epoch and ended",
    states: 5,
    ready({ store }, round) {
      const jobs = createJobs(store);
      const limits = { silenceMs: 1_000, capMs: 1_000 };
      const job = { id: `j-${round}`, epoch: 1, pool: "any", kind: "turn", spec: {}, limits, protocol: 1 } as unknown as Job;
      return () => {
        jobs.add(job);
        jobs.note(job.id, { epoch: 1, attempt: 1, lease: "l", worker: "w" });
        jobs.raise(job.id);
        jobs.end(job.id, 2, { state: "failed", error: { code: "x", message: "y" } } as Parameters<typeof jobs.end>[2]);
      };
    },
  },
  {
    name: "Telegram updates are stored, answered and handled",
    states: 6,
    ready({ store, inbox }, round) {
      const updates = createTelegramUpdates(store);
      const sends = createTelegramSends(store);
      const at = { bot: 1, id: Number(round), lane: "l", body: "{}" };
      return () => {
        updates.add([at, { ...at, id: at.id * 10 }]);
        updates.doneWith([at], () => inbox.submit(sayIn(round)) !== undefined);
        sends.begin(round, "1", { channel: "telegram", chatId: 1 }, false);
        sends.sent(round, "1", 7, "shown");
        updates.done([{ ...at, id: at.id * 10 }]);
      };
    },
  },
  {
    name: "skills are imported and one is disabled",
    states: 3,
    ready({ store }, round) {
      const switches = createSkillSwitches(store);
      const skill = (slug: string) => ({ slug, hash: "h", enabledAt: "2030-01-01", by: "a person" });
      return () => {
        switches.takeOver(() => [skill(`s-${round}`), skill(`t-${round}`)] as ReturnType<typeof switches.all>);
        switches.switchOff(`s-${round}`);
      };
    },
  },
  {
    name: "a model call is counted",
    states: 2,
    isMadeUpFor: true,
    ready:
      ({ usage }) =>
      () =>
        usage.record(SPENDER, CALL),
  },
];

const sayIn = (round: string) => ({ text: `hello ${round}`, conversation: "main", source: API, idempotencyKey: `key-${round}` });

/** Dumps the database without what differs between rounds: times, row numbers and generated names. */
function createDump(db: Database): (round: string) => string {
  const names = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .all() as { name: string }[];
  const tables = names.filter(({ name }) => name !== "migrations" && !/_(?:data|idx|content|docsize|config)$/.test(name));
  const selects = tables.map(({ name }) => ({ name, all: db.prepare(`SELECT * FROM "${name}"`) }));
  return (round) => {
    const plain = (row: object) =>
      JSON.stringify(row)
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
        .replace(/\b[a-z]_[0-9a-z]{10,}/g, "ID")
        .replaceAll(round, "ROUND")
        .replace(/(id\W+)[0-9a-z]{5}(?=\\?")/g, "$1ID")
        .replace(/\b(data|end) [0-9a-f]{12}\b/g, "$1")
        .replace(/"(seq|id|created_at|day|last_at)":("TIME"|"[\d-]+"|\d+)/g, "$1");
    return selects.map(({ name, all }) => `${name}: ${(all.all() as object[]).map(plain).sort().join("\n")}`).join("\n");
  };
}

function emptyAll(store: Rooms["store"]): void {
  const names = store.db
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'migrations' AND sql NOT LIKE '%VIRTUAL%'",
    )
    .all() as { name: string }[];
  store.db.exec("PRAGMA foreign_keys = OFF");
  store.soft(() => {
    for (const { name } of names) if (!/_(?:data|idx|content|docsize|config)$/.test(name)) store.db.exec(`DELETE FROM "${name}"`);
  });
  store.db.exec("PRAGMA foreign_keys = ON");
}

test.each(OPERATIONS)(
  "$name: whichever statement fails, the database is in a state between two transactions",
  ({ ready, states: passed, isMadeUpFor = false }) => {
    const rooms = openRooms();
    const { connection, store, told } = rooms;
    const dump = createDump(store.db);
    const events = store.db.prepare("SELECT count(*) AS count FROM events");
    const count = () => (events.get() as { count: number }).count;
    let round = 7_000_001;

    emptyAll(store);
    const states = new Set<string>();
    const work = ready(rooms, String(round));
    states.add(dump(String(round)));
    let looking = false;
    connection.onRest = () => {
      if (looking) return;
      looking = true;
      states.add(dump(String(round)));
      looking = false;
    };
    work();
    connection.onRest = undefined;
    const last = dump(String(round));
    expect(states.size).toBe(passed);

    let statement = 0;
    for (let reached = true; reached; ) {
      statement += 1;
      for (const [fault, span] of faultsAt(statement).flatMap(
        (each) =>
          [
            [each, 1],
            [each, 2],
          ] as const,
      )) {
        round += 1;
        emptyAll(store);
        const again = ready(rooms, String(round));
        told.length = 0;
        const before = count();
        connection.failAt(statement, fault, span);
        let failure: unknown;
        try {
          again();
        } catch (error) {
          failure = error;
        }
        reached = connection.hasFailed();
        connection.heal();
        // Model calls that could not be counted are counted at the next query.
        rooms.usage.of("anybody");
        const where = `${fault.name} at statement ${statement}`;
        if (failure !== undefined) expect(storeTrouble(failure), `${where}: ${failure}`).toBeDefined();
        const found = dump(String(round));
        expect(states.has(found), `${where} left a state in between:\n${found}\n`).toBe(true);
        if (!reached || isMadeUpFor) expect(found, where).toBe(last);
        expect(told.length, where).toBe(count() - before);
        if (!reached) break;
      }
    }
    expect(statement).toBeGreaterThan(2);
  },
);

test("whichever statement fails, a message is either refused completely or answered, reported and delivered consistently", {
  timeout: 120_000,
}, async () => {
  const { connection, store, inbox, outbox, messages, told, delivered } = openRooms();
  inbox.start();
  outbox.start();
  const events = store.db.prepare(
    "SELECT type FROM events WHERE json_extract(data, '$.id') = ? AND type <> 'message.delta' ORDER BY id",
  );
  const talk = store.db.prepare("SELECT role, content AS text FROM conversation_log WHERE conversation = ? ORDER BY id");
  const owed = store.db.prepare("SELECT state FROM outbox WHERE key = ?");
  let statement = 0;
  for (let reached = true; reached; ) {
    statement += 1;
    for (const fault of faultsAt(statement)) {
      const conversation = `c-${statement}-${FAULTS.indexOf(fault)}`;
      const submission = { text: "hello", conversation, source: API, idempotencyKey: conversation };
      connection.failAt(statement, fault, 1 + (statement % 3));
      let submitted: string | undefined;
      for (let tries = 0; submitted === undefined && tries < 5; tries += 1) {
        try {
          submitted = inbox.submit(submission).id;
        } catch (error) {
          expect(storeTrouble(error)).toBeDefined();
        }
      }
      const id = submitted!;
      const isOver = () => messages.find(id)?.finishedAt && owed.get(replyKey(id))?.state === "delivered";
      const where = `${fault.name} at statement ${statement}`;
      await until(`the end of a message, ${where}`, () => {
        try {
          return Boolean(isOver());
        } catch (error) {
          // The failing statement is the query itself.
          if (!isTemporary(error)) throw error;
          return false;
        }
      });
      reached = connection.hasFailed();
      connection.heal();
      await until("what was held back to be told", () =>
        told.some(({ type, data }) => type === "message.finished" && data.id === id),
      );
      const reply = `the answer to ${id}`;
      expect(messages.find(id), where).toMatchObject({ status: "done", reply });
      const types = (events.all(id) as { type: string }[]).map(({ type }) => type);
      expect(
        types.filter((type) => type !== "message.started"),
        where,
      ).toEqual(["message.queued", "message.finished"]);
      expect(talk.all(conversation), where).toEqual([
        { role: "user", text: "hello" },
        { role: "assistant", text: reply },
      ]);
      expect(delivered.filter((about) => about === id).length, where).toBeGreaterThan(0);
      expect(told.filter(({ type, data }) => type === "message.finished" && "id" in data && data.id === id)).toHaveLength(1);
      if (!reached) break;
    }
  }
  expect(statement).toBeGreaterThan(20);
});

test("whichever statement fails, the wiki's index contains a page completely or not at all", () => {
  const path = join(temporaryFolder(), "index.db");
  openIndexFile(path).db.close();
  const connection = failingConnection();
  const db = connection.connect(path);
  const index = createPageIndex(db);
  onTestFinished(() => index.close());
  const page = (title: string) => ({ path: "pages/a.md", title, tags: [], excerpt: "", bytes: 10, mtime: 1, stamp: title });
  const put = (title: string) =>
    index.transaction(() => {
      index.put(page(title) as unknown as Parameters<typeof index.put>[0], `the text of ${title}`);
      index.unmark("pages/a.md");
    });
  put("page number 0");
  let kept = "page number 0";
  let statement = 0;
  for (let reached = true; reached; ) {
    statement += 1;
    for (const fault of FAULTS) {
      const title = `page number ${statement}-${FAULTS.indexOf(fault)}`;
      index.mark("pages/a.md");
      connection.failAt(statement, fault);
      try {
        put(title);
        kept = title;
      } catch (error) {
        expect(isTemporary(error)).toBe(true);
      }
      reached = connection.hasFailed();
      connection.heal();
      expect(index.marked(), fault.name).toEqual(kept === title ? [] : ["pages/a.md"]);
      expect(db.prepare("SELECT title FROM page").all()).toEqual([{ title: kept }]);
      expect(db.prepare("SELECT count(*) AS count FROM tri").get()).toEqual({ count: 1 });
      if (!reached) break;
    }
  }
  expect(statement).toBeGreaterThan(5);
});

test("if creating a new database fails at any statement, the next start completes it", { timeout: 60_000 }, () => {
  const short = MIGRATIONS.slice(0, 4);
  let statement = 0;
  for (let reached = true; reached; ) {
    statement += 1;
    const path = join(temporaryFolder(), "io.db");
    const connection = failingConnection();
    connection.failAt(statement, FAULTS[statement % FAULTS.length]!);
    try {
      openStore(path, { migrations: short, connect: connection.connect }).close();
    } catch (error) {
      expect(String(error)).toContain(path);
    }
    reached = connection.hasFailed();
    const store = openStore(path, { migrations: short });
    expect(store.db.prepare("SELECT count(*) AS count FROM migrations").get()).toEqual({ count: short.length });
    store.close();
  }
  expect(statement).toBeGreaterThan(short.length * 2);
});
