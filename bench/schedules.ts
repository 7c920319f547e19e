import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import type { Schedule } from "../src/protocol/schedules.ts";
import { type BenchDaemon, build, describe, judge, median, quantile, startBenchDaemon, temporaryFolder } from "./support.ts";

const COUNTS = [10, 10_000];
const ROUNDS = 10;
const LATE_MS = 250;
const IDLE_SECONDS = 30;
/** How many more wake-ups a minute many schedules may cost than few. */
const MORE_WAKEUPS = 60;
const DIGEST_ROWS = 1_000_000;
const SILENCE_MS = 100;

/** Measures the delay from due to the model's request, what waiting costs, and a digest of very many rows. */
export async function run(): Promise<void> {
  build();
  const wakeups: number[] = [];
  for (const count of COUNTS) wakeups.push(await measureDue(count));
  judge(`more wake-ups a minute at ${COUNTS.at(-1)} schedules than at ${COUNTS[0]}`, wakeups.at(-1)! - wakeups[0]!, MORE_WAKEUPS);
  await measureDigest();
}

/** Measures how late a schedule's request is among this many others. Returns the wake-ups a minute while none is due. */
async function measureDue(count: number): Promise<number> {
  const folder = temporaryFolder();
  const arrived = new Map<string, number>();
  const model = await startModelServer((request) => {
    const said = textOf(request.messages.findLast(({ role }) => role === "user"));
    const mark = /bench-\d+/.exec(said.slice(said.lastIndexOf("[via ")))?.[0];
    if (mark !== undefined && !arrived.has(mark)) arrived.set(mark, Date.now());
    return { say: "Noted." };
  });
  const first = await startBenchDaemon(model.url, folder.path);
  await first.stop();
  seedSchedules(join(first.home, "io.db"), count);
  const daemon = await startBenchDaemon(model.url, folder.path);
  try {
    await daemon.ask("hello", "main");
    const late: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const mark = `bench-${round}`;
      const { nextAt } = await post<Schedule>(daemon, "/api/schedules", { when: "in 2s", text: mark, conversation: "main" });
      while (!arrived.has(mark)) await sleep(5);
      late.push(arrived.get(mark)! - Date.parse(nextAt!));
    }
    console.log(`       ${describe(`due to request at ${count}`, late)}`);
    judge(`${count} schedules: from due to the model's request, median`, median(late), LATE_MS, " ms");
    judge(`${count} schedules: from due to the model's request, p95`, quantile(late, 0.95), LATE_MS, " ms");
    const before = switchesOf(daemon.pid);
    await sleep(IDLE_SECONDS * 1_000);
    const aMinute = ((switchesOf(daemon.pid) - before) * 60) / IDLE_SECONDS;
    console.log(`       ${count} schedules: ${aMinute.toFixed(0)} wake-ups a minute of the daemon's main thread`);
    return aMinute;
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}

/** Schedules that are not due while the bench runs. */
function seedSchedules(file: string, count: number): void {
  const db = new DatabaseSync(file);
  const now = new Date();
  const insert = db.prepare(
    `INSERT INTO schedules (id, when_given, text, tz, conversation, catch_up, max_age, state, next_at, anchor_at, created_by, source,
      created_at) VALUES (?, 'every 365d', 'later', 'UTC', 'main', 'once', '24h', 'active', ?, ?, ?, ?, ?)`,
  );
  db.exec("BEGIN");
  for (let at = 0; at < count; at += 1) {
    const next = new Date(now.getTime() + 86_400_000 + at * 1_000).toISOString();
    const by = JSON.stringify({ by: "person", channel: "api" });
    insert.run(`s_bench${at}`, next, now.toISOString(), by, JSON.stringify({ channel: "api" }), now.toISOString());
  }
  db.exec("COMMIT");
  db.close();
}

/** How often a process's main thread went to sleep, which is how often it was woken. */
function switchesOf(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/task/${pid}/status`, "utf8"))?.[1]);
}

/** Checks that other requests are answered while a digest counts its rows. */
async function measureDigest(): Promise<void> {
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const first = await startBenchDaemon(model.url, folder.path);
  await first.ask("hello", "main");
  await first.stop();
  seedMessages(join(first.home, "io.db"), DIGEST_ROWS);
  const daemon = await startBenchDaemon(model.url, folder.path);
  try {
    await daemon.get("/api/digest?since=1m");
    const waits: number[] = [];
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        waits.push((await daemon.get("/api/health")).ms);
        await sleep(5);
      }
    })();
    const { ms, body } = await daemon.get("/api/digest?since=24h");
    isOver = true;
    await others;
    const { done } = body as { done: { messages: number } };
    if (done.messages < DIGEST_ROWS) throw new Error(`the digest counted ${done.messages} messages`);
    console.log(`       a digest of ${DIGEST_ROWS.toLocaleString("en")} messages took ${ms.toFixed(0)} ms`);
    judge("the longest that another request waited meanwhile", Math.max(...waits), SILENCE_MS, " ms");
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}

/** Copies the only message this many times, as if all were answered within the last hours. */
function seedMessages(file: string, count: number): void {
  const db = new DatabaseSync(file);
  const triggers = db
    .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages'")
    .all() as unknown as { name: string; sql: string }[];
  const columns = (db.prepare("PRAGMA table_info(messages)").all() as unknown as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== "seq");
  const finished = new Date(Date.now() - 3_600_000).toISOString();
  const values = columns.map((name) => {
    if (name === "id") return "'m_bench' || n";
    if (name === "idempotency_key") return "'bench' || n";
    return name === "finished_at" ? `'${finished}'` : `m.${name}`;
  });
  // The triggers would take minutes, and a digest does not read what they update.
  for (const { name } of triggers) db.exec(`DROP TRIGGER "${name}"`);
  db.exec(`WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ${count})
    INSERT INTO messages (${columns.join(", ")}) SELECT ${values.join(", ")} FROM counted, (SELECT * FROM messages LIMIT 1) AS m`);
  for (const { sql } of triggers) db.exec(sql);
  db.close();
}

async function post<T>(daemon: BenchDaemon, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
  const answer = await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}
