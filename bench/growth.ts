import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { type ModelServer, startModelServer } from "../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { RetentionConfig } from "../src/home/retention-config.ts";
import { openStore } from "../src/store/open.ts";
import { openWiki } from "../src/wiki/wiki.ts";
import { type BenchDaemon, build, judge, median, memoryMb, quantile, startBenchDaemon, temporaryFolder } from "./support.ts";
import { readMaterial, seeded, sliceOf, writePages } from "./wiki.ts";

const ROWS = [100, 10_000, 1_000_000];
const PAGES = [100, 10_000, 100_000];
const STARTS = 7;
const TURNS = 30;
const READS = 60;
const SEARCHES = 200;
const LIMIT = 1.5;
const TURNS_IN_A_LIFE = 5_000;
const PER_CONVERSATION = 20;
const USE_A_TOOL = "use a tool";

/** One home, and the times measured in it by name. */
interface Home {
  folder: string;
  label: string;
  queries: string[];
  times: Map<string, number[]>;
}

/**
 * Measures whether what a user waits for takes the same time however much is stored: `growth [rows] [wiki] [memory]`, all parts
 * unless some are named. A number limits the rows and the turns, for a machine with little space.
 */
export async function run(args: string[]): Promise<void> {
  const named = args.filter((arg) => !/^\d+$/.test(arg));
  const unknown = named.filter((arg) => !["rows", "wiki", "memory"].includes(arg));
  if (unknown.length > 0) throw new Error(`no such part: ${unknown.join(", ")}; there are rows, wiki and memory`);
  const has = (part: string) => named.length === 0 || named.includes(part);
  const most = Number(args.find((arg) => /^\d+$/.test(arg)) ?? ROWS.at(-1));
  build();
  if (has("rows") || has("wiki")) await measureHomes({ rows: has("rows"), wiki: has("wiki"), most });
  if (has("memory")) await measureMemory(Math.min(most, TURNS_IN_A_LIFE));
}

async function measureHomes({ rows, wiki, most }: { rows: boolean; wiki: boolean; most: number }): Promise<void> {
  const folder = temporaryFolder();
  const model = await startModelServer(answer);
  const daemons: BenchDaemon[] = [];
  try {
    const material = wiki ? readMaterial() : "";
    const homes: Home[] = [];
    for (const [index, count] of ROWS.entries()) {
      const place = join(folder.path, `home-${index}`);
      const filled = rows ? Math.min(count, most) : 0;
      mkdirSync(join(place, "io"), { recursive: true });
      writeFileSync(join(place, "io", "config.json"), JSON.stringify({ retention: keepingEverything() }));
      fillRows(join(place, "io", "io.db"), filled);
      const queries = wiki ? await fillWiki(join(place, "io", "wiki"), PAGES[index]!, material) : [];
      const label = [rows && `${filled.toLocaleString("en")} rows`, wiki && `${PAGES[index]!.toLocaleString("en")} pages`];
      homes.push({ folder: place, label: label.filter(Boolean).join(", "), queries, times: new Map() });
      console.log(`filled: ${homes.at(-1)!.label}`);
    }
    // Measure every size in turn, round after round, so that other load on the machine affects all of them alike.
    for (let round = 0; round < STARTS; round += 1) {
      for (const home of homes) {
        const daemon = await startBenchDaemon(model.url, home.folder);
        if (round > 0) note(home, "start", daemon.readyMs);
        await daemon.stop();
      }
    }
    for (const home of homes) daemons.push(await startBenchDaemon(model.url, home.folder));
    if (rows) await measureRows(homes, daemons, model);
    if (wiki) await measureSearch(homes, daemons);
    report(homes);
  } finally {
    for (const daemon of daemons) await daemon.stop();
    await model.close();
    folder.remove();
  }
}

async function measureRows(homes: Home[], daemons: BenchDaemon[], model: ModelServer): Promise<void> {
  const lists = {
    "a list page": "/api/messages?conversation=main&limit=50",
    "an older page": "/api/messages?conversation=main&limit=50&before=m20",
    conversations: "/api/conversations",
    status: "/api/status",
    usage: "/api/usage?by=model",
  };
  for (let round = 0; round < TURNS + 3; round += 1) {
    for (const [index, home] of homes.entries()) {
      for (const [name, text] of [
        ["a message", "good morning"],
        ["a tool call", USE_A_TOOL],
      ] as const) {
        const started = performance.now();
        await daemons[index]!.ask(text, "main");
        if (round >= 3) note(home, name, performance.now() - started);
      }
      model.requests.length = 0;
      model.bodies.length = 0;
    }
  }
  for (let round = 0; round < READS + 3; round += 1) {
    for (const [index, home] of homes.entries()) {
      for (const [name, path] of Object.entries(lists)) {
        const { ms } = await daemons[index]!.get(path);
        if (round >= 3) note(home, name, ms);
      }
    }
  }
}

async function measureSearch(homes: Home[], daemons: BenchDaemon[]): Promise<void> {
  for (let round = 0; round < SEARCHES + 3; round += 1) {
    for (const [index, home] of homes.entries()) {
      const { ms } = await daemons[index]!.get(`/api/wiki/search?q=${encodeURIComponent(home.queries[round]!)}`);
      if (round >= 3) note(home, "a search", ms);
    }
  }
}

function note({ times }: Home, name: string, ms: number): void {
  times.set(name, [...(times.get(name) ?? []), ms]);
}

function report(homes: Home[]): void {
  const [smallest, largest] = [homes[0]!, homes.at(-1)!];
  console.log(`\nmedian and p95 in ms: ${homes.map(({ label }) => label).join(" | ")}`);
  for (const name of smallest.times.keys()) {
    const cells = homes.map(({ times }) => {
      const values = times.get(name)!;
      return `${median(values).toFixed(1)} (${quantile(values, 0.95).toFixed(1)})`.padStart(16);
    });
    console.log(`${name.padEnd(16)}${cells.join("")}`);
  }
  console.log("");
  for (const name of smallest.times.keys()) {
    const ratio = median(largest.times.get(name)!) / median(smallest.times.get(name)!);
    judge(`${name}, largest / smallest`, ratio, name === "a search" ? 3 : LIMIT);
    if (name === "a search") judge("a search, median at the largest", median(largest.times.get(name)!), 10, " ms");
  }
}

/** Answers at once. When asked to use a tool, it first lists a folder. */
function answer(request: ChatRequest) {
  const wanted = textOf(request.messages.findLast(({ role }) => role === "user")).includes(USE_A_TOOL);
  if (!wanted || request.messages.at(-1)?.role === "tool") return { say: "Noted." };
  return { call: [{ tool: "file_ops", args: { operation: "list", path: "." } }] };
}

const keepingEverything = () => Object.fromEntries(Object.keys(RetentionConfig.shape).map((key) => [key, 0]));

/**
 * Inserts this many messages, events, tool calls and model calls; half of the messages in one conversation, the others in fifty
 * or more.
 */
function fillRows(path: string, rows: number): void {
  openStore(path).close();
  if (rows === 0) return;
  const db = new DatabaseSync(path);
  const at = "strftime('%Y-%m-%dT%H:%M:%fZ', 1735689600 + i * 30, 'unixepoch')";
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})`;
  db.exec(`
    PRAGMA synchronous = OFF;
    ${numbers} INSERT INTO messages (id, conversation, source, text, status, reply, route, attempts, created_at, started_at, finished_at)
      SELECT 'm' || i, CASE WHEN i % 2 = 0 THEN 'main' ELSE 'c' || (i / 2 % ${Math.max(50, Math.floor(rows / 200))}) END, '{"channel":"api"}', printf('message %.*c', 100, 'x'),
        'done', printf('reply %.*c', 150, 'y'), '{"answered":"directly","tools":[],"tasks":[],"runs":[]}', 1, ${at}, ${at}, ${at} FROM n;
    ${numbers} INSERT INTO events (type, conversation, data, created_at)
      SELECT 'message.delta', 'main', '{"id":"m' || i || '","text":"some words"}', ${at} FROM n;
    ${numbers} INSERT INTO tool_calls (call_id, session_id, owner, life, actor, tool, kind, args, args_hash, state, result, created_at)
      SELECT 'call-' || i, 's' || (i / 500), 'm' || i, 1, 'orchestrator', 'shell', 'effect', '{"command":"true"}', i, 'done', 'fine', ${at} FROM n;
    ${numbers} INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at)
      SELECT 'm' || i, 'orchestrator', 'scripted', 1000, 50, 0, 40, ${at} FROM n;
    PRAGMA wal_checkpoint(TRUNCATE);`);
  db.close();
}

/** Writes pages of real text, builds their index, and returns texts to search for in them. */
async function fillWiki(root: string, pages: number, material: string): Promise<string[]> {
  const random = seeded(pages);
  const quiet = () => {};
  const files = writePages(root, pages, material, random);
  const wiki = openWiki({ root, emit: quiet, log: { debug: quiet, info: quiet, warn: console.warn, error: console.error } });
  await wiki.rebuild();
  await wiki.close();
  return Array.from({ length: SEARCHES + 3 }, () => sliceOf(readFileSync(files[Math.floor(random() * pages)]!, "utf8"), random));
}

/** Measures the daemon's own memory: what a turn leaves behind must not add up. */
async function measureMemory(many: number): Promise<void> {
  const few = Math.floor(many / 10);
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted. ".repeat(100) }));
  const daemon = await startBenchDaemon(model.url, folder.path);
  try {
    let early = Number.NaN;
    for (let turn = 1; turn <= many; turn += 1) {
      await daemon.ask(`message ${turn}: ${"words ".repeat(200)}`, `c${Math.floor(turn / PER_CONVERSATION)}`);
      model.requests.length = 0;
      model.bodies.length = 0;
      if (turn === few) early = await restingMb(daemon.pid);
      if (turn % 500 === 0) console.log(`after ${turn} turns: ${memoryMb(daemon.pid).toFixed(0)} MB`);
    }
    const late = await restingMb(daemon.pid);
    console.log(`at rest after ${few} turns ${early.toFixed(0)} MB, after ${many} ${late.toFixed(0)} MB`);
    judge(`memory after ${many} turns / after ${few}`, late / early, 1.1);
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}

/** The smallest memory use over some seconds without work. */
async function restingMb(pid: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < 5; second += 1) {
    await sleep(1_000);
    least = Math.min(least, memoryMb(pid));
  }
  return least;
}
