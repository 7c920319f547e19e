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

/** What adds up in a month of use, so that a picture shows lists as they are and not as on the first day. */
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
  db.close();
}
