import type { Config } from "../lib/config.ts";
import type { Store } from "./open.ts";

export type RetentionLimits = Config["retention"];

/** Takes away one kind of rows that are kept no longer, in steps that are short whatever there is; each yields how many went. */
export interface Sweep {
  what: string;
  steps(limits: RetentionLimits, now: Date): Generator<number>;
}

/** How many rows a step looks at. */
const SLICE = 500;
/** How many of the latest runs a start looks at for decisions that were not noted, and more. */
const LATEST_RUNS = 1_000;
const OPEN_MESSAGE = "EXISTS (SELECT 1 FROM messages WHERE id = owner AND status IN ('queued','running'))";
const OPEN_TASK = "EXISTS (SELECT 1 FROM agent_tasks WHERE id = owner AND status IN ('queued','running'))";

export function createSweeps(store: Store): Sweep[] {
  return [
    messages(store),
    outbox(store),
    events(store),
    toolCalls(store),
    usage(store),
    activity(store),
    approvals(store),
    smallFacts(store),
  ];
}

/** The moment before which things are too old; "" when they are kept for ever. */
export function daysBefore(now: Date, days: number): string {
  return days === 0 ? "" : new Date(now.getTime() - days * 86_400_000).toISOString();
}

interface Aging {
  table: string;
  /** Numbers the rows in the order they came. */
  key: string;
  /** SQL for what stays whatever its age. */
  kept: string;
  days: number;
  /** How many of the newest stay; 0 is all. */
  rows: number;
  /** What `kept` speaks of besides the row. */
  values?: Record<string, string>;
  remove: (key: number) => void;
}

/** Walks from the oldest row to the first that is young enough. */
function* aging(store: Store, { table, key, kept, days, rows, values = {}, remove }: Aging, now: Date): Generator<number> {
  const newest = store.db.prepare(`SELECT coalesce(max(${key}), 0) AS key FROM ${table}`).get() as { key: number };
  const before = daysBefore(now, days);
  const lowest = rows === 0 ? 0 : newest.key - rows;
  if (before === "" && lowest <= 0) return;
  const slice = store.db.prepare(
    `SELECT ${key} AS key, created_at < :before OR ${key} <= :lowest AS past FROM ${table} WHERE ${key} > :after ORDER BY ${key} LIMIT ${SLICE}`,
  );
  const doomed = store.db.prepare(
    `SELECT ${key} AS key FROM ${table} WHERE ${key} > :after AND ${key} <= :last AND (created_at < :before OR ${key} <= :lowest) AND NOT (${kept})`,
  );
  for (let after = 0; ; ) {
    const last = (slice.all({ before, lowest, after }) as { key: number; past: number }[]).at(-1);
    if (!last) return;
    yield write(store, () => {
      const rowsToGo = doomed.all({ before, lowest, after, last: last.key, ...values }) as { key: number }[];
      for (const row of rowsToGo) remove(row.key);
      return rowsToGo.length;
    });
    if (last.past === 0) return;
    after = last.key;
  }
}

const write = (store: Store, work: () => number): number => store.atOnce(() => store.soft(() => store.transaction(work)));

/** A message goes with its calls, its costs and, where it was the last, the hand-over of its conversation. */
function messages(store: Store): Sweep {
  const { db } = store;
  const find = db.prepare("SELECT id, conversation FROM messages WHERE seq = ?");
  const own = [
    db.prepare("DELETE FROM tool_calls WHERE owner = ?"),
    db.prepare("DELETE FROM usage WHERE owner = ?"),
    db.prepare("DELETE FROM messages WHERE id = ?"),
  ];
  const talk = db.prepare(
    "DELETE FROM conversation_log WHERE conversation = ?1 AND NOT EXISTS (SELECT 1 FROM conversations WHERE name = ?1)",
  );
  return {
    what: "messages",
    steps: ({ messagesDays, messages: rows }, now) =>
      aging(
        store,
        {
          table: "messages",
          key: "seq",
          // The end of a run is told once by its key, which a start asks for again.
          kept: `status IN ('queued','running') OR coalesce(substr(idempotency_key, 1, 4), '') = 'run:'
            OR EXISTS (SELECT 1 FROM outbox WHERE key = 'reply:' || id AND state = 'owed')`,
          days: messagesDays,
          rows,
          remove(seq) {
            const { id, conversation } = find.get(seq) as { id: string; conversation: string };
            for (const statement of own) statement.run(id);
            talk.run(conversation);
          },
        },
        now,
      ),
  };
}

/** What was delivered goes when its message would; whom a task or run was told for is asked while its message is open. */
function outbox(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM outbox WHERE seq = ?");
  const asked = "EXISTS (SELECT 1 FROM messages m WHERE m.idempotency_key = outbox.key AND m.status IN ('queued','running'))";
  return {
    what: "outbox",
    steps: ({ messagesDays: days, messages: rows }, now) =>
      aging(
        store,
        {
          table: "outbox",
          key: "seq",
          kept: `state = 'owed' OR ${asked}`,
          days,
          rows: rows * 2,
          remove: (seq) => remove.run(seq),
        },
        now,
      ),
  };
}

function events(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM events WHERE id = ?");
  return {
    what: "events",
    steps: ({ eventsDays: days, events: rows }, now) =>
      aging(store, { table: "events", key: "id", kept: "0", days, rows, remove: (id) => remove.run(id) }, now),
  };
}

/** Calls of what is not finished stay, and those of a run that may yet be resumed where it stopped. */
function toolCalls(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM tool_calls WHERE seq = ?");
  const run = `EXISTS (SELECT 1 FROM runs r WHERE r.id = substr(owner, 1, instr(owner, '/') - 1)
    AND (r.status = 'running' OR (r.status <> 'done' AND r.finished_at >= :resumable)))`;
  return {
    what: "toolCalls",
    steps: ({ toolCallsDays: days, toolCalls: rows, sessionsDays }, now) =>
      aging(
        store,
        {
          table: "tool_calls",
          key: "seq",
          kept: `${OPEN_MESSAGE} OR ${OPEN_TASK} OR ${run}`,
          days,
          rows,
          values: { resumable: daysBefore(now, sessionsDays) },
          remove: (seq) => remove.run(seq),
        },
        now,
      ),
  };
}

/** What a message or task cost is shown with it; the sums of each day stay for ever. */
function usage(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM usage WHERE id = ?");
  const kept = "EXISTS (SELECT 1 FROM messages WHERE id = owner) OR EXISTS (SELECT 1 FROM agent_tasks WHERE id = owner)";
  return {
    what: "usage",
    steps: ({ usageDays: days }, now) =>
      aging(store, { table: "usage", key: "id", kept, days, rows: 0, remove: (id) => remove.run(id) }, now),
  };
}

function activity(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM task_activity WHERE id = ?");
  const kept = "EXISTS (SELECT 1 FROM agent_tasks t WHERE t.id = task_id AND t.status IN ('queued','running'))";
  return {
    what: "activity",
    steps: ({ activityDays: days }, now) =>
      aging(store, { table: "task_activity", key: "id", kept, days, rows: 0, remove: (id) => remove.run(id) }, now),
  };
}

/** Decisions go when the messages of their time do; what waits stays, and so does what an unfinished turn may ask for again. */
function approvals(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM approvals WHERE seq = ?");
  const open = [OPEN_MESSAGE, OPEN_TASK].map((sql) => sql.replaceAll("= owner ", "= owner_id "));
  return {
    what: "approvals",
    steps: ({ messagesDays: days, messages: rows }, now) =>
      aging(
        store,
        {
          table: "approvals",
          key: "seq",
          kept: ["state = 'waiting'", ...open].join(" OR "),
          days,
          rows,
          remove: (seq) => remove.run(seq),
        },
        now,
      ),
  };
}

/** Notes on a message or a run that nobody asks for any more. */
function smallFacts(store: Store): Sweep {
  const started = store.db.prepare(`DELETE FROM io_state WHERE key IN (SELECT key FROM io_state s
    WHERE key >= 'runs:' AND key < 'runs;'
    AND NOT EXISTS (SELECT 1 FROM messages WHERE id = substr(s.key, 6) AND status IN ('queued','running')) LIMIT ${SLICE})`);
  const decided = store.db.prepare(`DELETE FROM io_state WHERE key IN (SELECT key FROM io_state s
    WHERE key >= 'decided:' AND key < 'decided;' AND NOT EXISTS (SELECT 1 FROM runs WHERE id = substr(s.key, 9)
      AND (status <> 'done' OR seq > (SELECT max(seq) FROM runs) - ${LATEST_RUNS})) LIMIT ${SLICE})`);
  const askers = store.db.prepare(`DELETE FROM io_state WHERE key IN (SELECT key FROM io_state s
    WHERE key >= 'run-asker:' AND key < 'run-asker;' AND NOT EXISTS (SELECT 1 FROM runs WHERE id = substr(s.key, 11)
      AND (status <> 'done' OR seq > (SELECT max(seq) FROM runs) - ${LATEST_RUNS})) LIMIT ${SLICE})`);
  return {
    what: "notes",
    *steps() {
      for (const statement of [started, decided, askers]) {
        for (let removed = SLICE; removed === SLICE; ) {
          removed = write(store, () => Number(statement.run().changes));
          yield removed;
        }
      }
    },
  };
}
