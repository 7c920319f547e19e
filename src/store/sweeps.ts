import type { Config } from "../home/config.ts";
import type { Store } from "./open.ts";

export type RetentionLimits = Config["retention"];

/** Deletes expired rows of one kind in short steps; each yields the number deleted. */
export interface Sweep {
  what: string;
  steps(limits: RetentionLimits, now: Date): Generator<number>;
}

/** How many rows a step examines. */
const SLICE = 500;
/** More than the number of recent runs that a start examines for unreported decisions. */
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
    occurrences(store),
    smallFacts(store),
  ];
}

/** The moment before which rows have expired; "" if they are kept for ever. */
export function daysBefore(now: Date, days: number): string {
  return days === 0 ? "" : new Date(now.getTime() - days * 86_400_000).toISOString();
}

interface Aging {
  table: string;
  /** The column that numbers the rows in order. */
  key: string;
  /** SQL for rows that are kept whatever their age. */
  kept: string;
  days: number;
  /** How many of the newest are kept; 0 means all. */
  rows: number;
  /** Parameters of `kept` besides the row. */
  values?: Record<string, string>;
  remove: (key: number) => void;
}

/** Walks from the oldest row to the first that has not expired. */
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
    yield store.soft(() => {
      const rowsToGo = doomed.all({ before, lowest, after, last: last.key, ...values }) as { key: number }[];
      for (const row of rowsToGo) remove(row.key);
      return rowsToGo.length;
    });
    if (last.past === 0) return;
    after = last.key;
  }
}

/** Deletes a message with its calls, its costs and, if it was the last, its conversation's hand-over. */
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
          // A run's end is reported once by its key, which a start looks up again.
          kept: `status IN ('queued','running') OR coalesce(substr(idempotency_key, 1, 4), '') = 'run:'
            OR EXISTS (SELECT 1 FROM outbox WHERE key = 'reply:' || id AND state IN ('owed','held'))`,
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

/** Delivered entries expire with their message; the recipients of a task or run are needed while their message is open. */
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
          kept: `state IN ('owed','held') OR ${asked}`,
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

/** Calls of unfinished work are kept, and those of a run that may be resumed. */
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

/** The cost of a message or task is shown with it; the daily sums are kept for ever. */
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

/** Occurrences expire with the messages of their time. */
function occurrences(store: Store): Sweep {
  const remove = store.db.prepare("DELETE FROM occurrences WHERE seq = ?");
  return {
    what: "occurrences",
    steps: ({ messagesDays: days, messages: rows }, now) =>
      aging(
        store,
        {
          table: "occurrences",
          key: "seq",
          kept: "state IN ('waiting','running')",
          days,
          rows,
          remove: (seq) => remove.run(seq),
        },
        now,
      ),
  };
}

/** Decisions expire with the messages of their time, except open ones and those that an unfinished turn may need. */
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

/** Notes on a message or run that nobody needs any more. */
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
          removed = store.soft(() => Number(statement.run().changes));
          yield removed;
        }
      }
    },
  };
}
