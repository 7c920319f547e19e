import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { TestDaemon } from "../daemon.ts";
import { delegate, ended } from "../squads.ts";

const TALKS: [name: string, text: string][] = [
  ["invoices", "Why does the total on an invoice differ by a cent?"],
  ["ci", "The nightly build is red since Tuesday, look at its log"],
  ["onboarding", "Write a guide for somebody who is new to the shop's code"],
  ["search", "Search finds nothing for names with an apostrophe"],
  ["upgrade", "Which packages are behind, and what would break?"],
];
const TASKS = [
  "Say goodbye in the language of the guest",
  "Cover the greeter with tests for empty names",
  "Describe the greeter in the README",
  "Look for names that break the greeting",
];
const PAGES: [path: string, content: string][] = [
  ["general/releases", "# Releases\n\nOn Fridays, after the checks; see [style](style.md).\n"],
  ["projects/shop", "# Shop\n\nSells what the [greeter](greeter.md) announces.\n"],
  ["people/ada", "# Ada\n\nOwns the invoices.\n"],
];

/** What stands in a list as if it was made some days ago. */
export type Earlier = readonly [text: string, daysAgo: number, status?: "failed" | "cancelled"];
const EARLIER_TASKS: readonly Earlier[] = [
  ["Round totals after the tax, not before", 1],
  ["Say which names are refused, and why", 1],
  ["Make the nightly build say what it waits for", 1, "failed"],
  ["Sort guests without regard to case", 2],
  ["Describe the release in the changelog", 2],
  ["Drop the old greeting from the API", 2, "cancelled"],
  ["Try names with apostrophes in the search", 4],
  ["Cover the invoice with tests for three items", 4],
  ["Bring the README's examples up to date", 5],
  ["Find out why the first start takes four seconds", 5],
  ["Ask for a name only once", 8],
  ["Move the greeting's words into one file", 8],
  ["Test the farewell on Windows", 9, "failed"],
  ["Compare the two date libraries", 9],
  ["Let guests choose a language", 11],
  ["Say hello to empty rooms differently", 12],
  ["Mend the link to the guide", 15],
  ["Write down how a release is made", 16],
];
const EARLIER_RUNS: readonly Earlier[] = [
  ["Greet several guests at once", 1],
  ["Keep the greeting in the language of the guest", 2],
  ["Names that end in s get no second s", 4, "failed"],
  ["A farewell that knows how long one stayed", 5],
  ["Search finds names without their accents", 8],
  ["Export guests as a table", 9, "cancelled"],
  ["The greeter starts in less than a second", 12],
];

/** Adds what accumulates in a month of use, so that pictures show lists as they usually are, not as on the first day. */
export async function afterAMonth(daemon: TestDaemon): Promise<void> {
  for (const [conversation, text] of TALKS) await daemon.ask({ text, conversation, source: "web" });
  for (const [path, content] of PAGES) await daemon.json("PUT", `/api/wiki/pages/${path}`, { content });
  for (const task of TASKS) await ended(daemon, (await delegate(daemon, "greeter", { task })).id);
  const db = new DatabaseSync(join(daemon.home, "io.db"));
  db.exec("PRAGMA busy_timeout = 5000");
  const columns = (db.prepare("PRAGMA table_info(usage)").all() as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== "id");
  const names = columns.join(", ");
  const days = Array.from({ length: 29 }, (_, ago) => ago + 1).filter((ago) => ago % 7 !== 3 && ago % 7 !== 4);
  for (const ago of days)
    for (let times = 0; times < 1 + ((ago * 7) % 4); times += 1) {
      const day = new Date(Date.now() - ago * 86_400_000).toISOString();
      const other: Record<string, string> = { created_at: `'${day}'`, owner: "'m_earlier'", task: "NULL", run: "NULL" };
      const picked = columns.map((name) => other[name] ?? name).join(", ");
      db.exec(
        `INSERT INTO usage (${names}) SELECT ${picked} FROM usage WHERE date(created_at) = date('now') ORDER BY random() LIMIT 12`,
      );
    }
  earlier(db, "agent_tasks", "description", EARLIER_TASKS);
  earlier(db, "runs", "issue", EARLIER_RUNS);
  db.close();
}

/** Inserts copies of today's finished tasks or runs at earlier dates, each with its own text. */
export function earlier(
  db: InstanceType<typeof DatabaseSync>,
  table: "agent_tasks" | "runs",
  words: "description" | "issue",
  all: readonly Earlier[],
): void {
  const columns = (db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(({ name }) => name);
  for (const [index, [text, ago, status = "done"]] of all.entries()) {
    const begun = Date.now() - ago * 86_400_000 - index * 1_900_000;
    const own: Record<string, string | number> = {
      ...{ seq: -1 - index, id: `${table === "runs" ? "r" : "t"}_earlier${index}`, [words]: text, status },
      ...{ created_at: new Date(begun).toISOString(), started_at: new Date(begun + 2_000).toISOString() },
      finished_at: new Date(begun + 60_000 * (3 + ((index * 7) % 20))).toISOString(),
      ...(table === "runs" && status !== "done" && { outcome: status, reason: "npm test still fails after three rounds" }),
      ...(table === "agent_tasks" && status !== "done" && { error: '{"code":"failed","message":"The tests still fail."}' }),
    };
    const taken = columns.map((name) => (name in own ? "?" : name));
    const values = columns.filter((name) => name in own).map((name) => own[name]!);
    db.prepare(
      `INSERT INTO ${table} (${columns.join(", ")}) SELECT ${taken.join(", ")} FROM ${table} WHERE status = 'done' ORDER BY random() LIMIT 1`,
    ).run(...values);
  }
}
