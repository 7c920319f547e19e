import { DatabaseSync } from "@photostructure/sqlite";
import { offThread } from "../lib/off-thread.ts";
import type { Store } from "./open.ts";
import type { Database } from "./transactions.ts";
import type { UsagePart } from "./usage.ts";

/** A half-open period. */
export interface Period {
  since: string;
  until: string;
}

type Counted = Record<keyof typeof ENDED, number>;

/** Work that ended in a period, and usage by model. */
export interface PeriodCounts {
  done: Counted;
  failed: Counted;
  /** Of the finished work: tasks without a passing test, and runs that were not approved. */
  unproven: Pick<Counted, "tasks" | "runs">;
  used: UsagePart[];
}

/** A job for the counting thread. */
export interface CountJob extends Period {
  file: string;
}

const ENDED = { messages: "messages", tasks: "agent_tasks", runs: "runs" } as const;
/** More rows, about ten milliseconds' worth, are counted in a worker thread. */
const MOST_HERE = 20_000;
/** Fewer tasks, because their evidence must be parsed. */
const MOST_TASKS_HERE = 1_000;
const DEADLINE_MS = 60_000;

export interface DigestRowsDeps {
  db: Pick<Store, "db">["db"];
  /** The database file, for counting in a worker thread; without it everything is counted on the main thread. */
  file?: string;
}

/** Counts rows for a digest. Large counts run in a worker thread with its own connection. */
export function createDigestRows({ db, file }: DigestRowsDeps) {
  const waiting = db.prepare("SELECT COUNT(*) AS count FROM approvals WHERE state = 'waiting'");
  const isMuch = [
    ...Object.values(ENDED).flatMap((table) =>
      ["done", "failed"].map(
        (status) =>
          `SELECT 1 FROM ${table} WHERE status = '${status}' AND finished_at >= :since AND finished_at < :until
           LIMIT 1 OFFSET ${table === ENDED.tasks ? MOST_TASKS_HERE : MOST_HERE}`,
      ),
    ),
    `SELECT 1 FROM usage WHERE created_at >= :since AND created_at < :until LIMIT 1 OFFSET ${MOST_HERE}`,
  ].map((rows) => db.prepare(rows));

  return {
    approvalsWaiting: (): number => (waiting.get() as { count: number }).count,
    async count(period: Period): Promise<PeriodCounts> {
      const isHere = file === undefined || !isMuch.some((much) => much.get({ ...period }) !== undefined);
      if (isHere) return countPeriod(db, period);
      const job: CountJob = { file, ...period };
      const counted = await offThread<PeriodCounts>("store/digest-worker.js", job, { deadlineMs: DEADLINE_MS });
      if (!counted) throw new Error("the records took too long to count");
      return counted;
    },
  };
}
export type DigestRows = ReturnType<typeof createDigestRows>;

/** The same with a separate read-only connection. */
export function countInFile({ file, ...period }: CountJob): PeriodCounts {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    // One transaction, so that all counts see the same state.
    db.exec("BEGIN");
    return countPeriod(db, period);
  } finally {
    db.close();
  }
}

/** The start of a period is inclusive, its end exclusive. */
function countPeriod(db: Pick<Database, "prepare">, period: Period): PeriodCounts {
  const count = (table: string, status: "done" | "failed", also = "") =>
    (
      db
        .prepare(
          `SELECT COUNT(*) AS count FROM ${table}
           WHERE status = :status AND finished_at >= :since AND finished_at < :until ${also}`,
        )
        .get({ status, ...period }) as { count: number }
    ).count;
  const ended = (status: "done" | "failed"): Counted => ({
    messages: count(ENDED.messages, status),
    tasks: count(ENDED.tasks, status),
    runs: count(ENDED.runs, status),
  });
  const unproven = {
    tasks: count(ENDED.tasks, "done", `AND NOT (${IS_PROVEN})`),
    runs: count(ENDED.runs, "done", "AND outcome IS NOT 'approved'"),
  };
  return { done: ended("done"), failed: ended("failed"), unproven, used: usedIn(db, period) };
}

/** Like `isProven` for a task; unreadable evidence proves nothing. */
const IS_PROVEN = `coalesce(CASE WHEN json_valid(evidence) THEN
  coalesce(json_extract(evidence, '$.proven'), json_extract(evidence, '$.verdict') GLOB 'done;*') END, 0)`;

/** Model usage: whole days come from the daily sums, only the rest is added up. */
function usedIn(db: Pick<Database, "prepare">, { since, until }: Period): UsagePart[] {
  const wholeDays = db.prepare(`SELECT model, rehearsal, SUM(calls) AS calls, SUM(input_tokens) AS inputTokens,
    SUM(output_tokens) AS outputTokens, SUM(cache_read_tokens) AS cacheReadTokens FROM usage_sums
    WHERE kind = 'total' AND day >= ? AND day < ? GROUP BY model, rehearsal`);
  const used = db.prepare(`SELECT model, rehearsal, COUNT(*) AS calls, SUM(input_tokens) AS inputTokens,
    SUM(output_tokens) AS outputTokens, SUM(cache_read_tokens) AS cacheReadTokens FROM usage
    WHERE created_at >= ? AND created_at < ? GROUP BY model, rehearsal`);
  const [first, last] = [dayAfter(since), until.slice(0, 10)];
  const midnight = "T00:00:00.000Z";
  const rows =
    first < last
      ? [...used.all(since, first + midnight), ...wholeDays.all(first, last), ...used.all(last + midnight, until)]
      : used.all(since, until);
  return rows.map(partOf);
}

function partOf(row: unknown): UsagePart {
  const { rehearsal, ...part } = row as Omit<UsagePart, "rehearsal"> & { rehearsal: number };
  return { ...part, name: "", squad: "", rehearsal: rehearsal === 1 };
}

/** The first full day after a time, in UTC. */
function dayAfter(time: string): string {
  const day = new Date(`${time.slice(0, 10)}T00:00:00.000Z`);
  if (time > day.toISOString()) day.setUTCDate(day.getUTCDate() + 1);
  return day.toISOString().slice(0, 10);
}
