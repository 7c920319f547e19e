import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Browser, Page } from "playwright-core";
import type { Task } from "../../src/protocol/squads.ts";
import { type BenchDaemon, judge } from "../support.ts";

const MESSAGES = 5_000;
const STEPS = 2_000;
const ACTIVITIES = 20_000;
const LINES = 10_000;

/** Opens long lists, scrolls through them, and reports for how long the page stalled at most. */
export async function longLists(browser: Browser, daemon: BenchDaemon, folder: string): Promise<void> {
  const task = await oneTask(daemon, join(folder, "project"));
  fillConversation(join(daemon.home, "io.db"), "long", MESSAGES);
  fillLong(join(daemon.home, "io.db"), task);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await context.request.post(`${daemon.url}/api/login`, { data: { token: daemon.token } });
  const places = [
    [`a conversation of ${MESSAGES} messages`, "/chat/long", '[role="log"]'],
    [`a run of ${STEPS} steps`, "/runs/r_long", '[role="list"][aria-label="Steps"]'],
    [`a task of ${ACTIVITIES} activities`, `/tasks/${task}`, '[role="list"][aria-label="What was seen"]'],
    [`a difference of ${LINES} lines`, `/tasks/${task}`, '[role="list"][aria-label="Lines of src/long.ts"]'],
  ] as const;
  for (const [what, path, list] of places) {
    const page = await context.newPage();
    await page.route(`**/api/tasks/${task}/diff`, (route) => route.fulfill({ json: longDifference() }));
    const started = performance.now();
    await page.goto(daemon.url + path);
    await page.locator(list).waitFor();
    console.log(`${what}: shown after ${(performance.now() - started).toFixed(0)} ms`);
    judge(`${what}: longest stall while scrolling`, await scroll(page, list), 50, " ms");
    await page.close();
  }
  await context.close();
}

/** A task's changes, in the form in which the daemon reports them. */
function longDifference(): object {
  const lines = Array.from({ length: LINES }, (_, at) => `+export const value${at} = "${at}"; // a line`);
  const text = ["diff --git a/src/long.ts b/src/long.ts", `@@ -0,0 +1,${LINES} @@`, ...lines].join("\n");
  return { text, files: [], notes: [], undone: false };
}

/** The longest task of the page's main thread while scrolling from one end to the other; 0 if none took 50 ms. */
async function scroll(page: Page, list: string): Promise<number> {
  await page.waitForTimeout(1_500);
  await page.evaluate(
    "window.stalls = []; new PerformanceObserver((seen) => window.stalls.push(...seen.getEntries().map((each) => each.duration))).observe({ type: 'longtask' })",
  );
  await page.locator(list).hover();
  for (let at = 0; at < 60; at += 1) {
    await page.mouse.wheel(0, at < 30 ? 900 : -900);
    await page.waitForTimeout(30);
  }
  return (await page.evaluate("Math.max(0, ...window.stalls)")) as number;
}

/** Creates a task of a squad, to which activities can be added. */
export async function oneTask(daemon: Pick<BenchDaemon, "url" | "token">, projectPath: string): Promise<string> {
  mkdirSync(projectPath, { recursive: true });
  const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
  const post = async (path: string, body: object) =>
    (await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
  await post("/api/squads", { name: "bench", slug: "bench", projectPath });
  await post("/api/squads/bench/agents", { roleTitle: "engineer", charter: "Everything." });
  return ((await post("/api/squads/bench/tasks", { task: "Do something" })) as Task).id;
}

const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();

/** Inserts answered questions into a conversation. */
export function fillConversation(database: string, conversation: string, messages: number): void {
  const db = new DatabaseSync(database);
  db.exec("PRAGMA busy_timeout = 10000; BEGIN");
  const message = db.prepare(
    "INSERT INTO messages (id, conversation, source, text, status, reply, created_at, started_at, finished_at) VALUES (?, ?, ?, ?, 'done', ?, ?, ?, ?)",
  );
  for (let each = 0; each < messages; each += 1) {
    const reply = `Answer ${each} with some **words** and \`code\`.\n\n\`\`\`js\nconst x = ${each};\n\`\`\`\n`;
    const times = [at(each), at(each), at(each + 1)];
    message.run(
      `m_${conversation}${each}`,
      conversation,
      JSON.stringify({ channel: "web" }),
      `Question ${each}`,
      reply,
      ...times,
    );
  }
  db.exec("COMMIT");
  db.close();
}

/** Inserts a run of many steps, and many activities of a task. */
export function fillLong(database: string, task: string): void {
  const db = new DatabaseSync(database);
  db.exec("PRAGMA busy_timeout = 10000; BEGIN");
  db.prepare(
    "INSERT INTO runs (id, status, outcome, project_path, issue, inputs, created_at, finished_at) VALUES ('r_long', 'done', 'approved', '/', 'A long one', '{}', ?, ?)",
  ).run(at(0), at(STEPS));
  const step = db.prepare(
    "INSERT INTO run_steps (run_id, key, kind, phase, agent, inputs_hash, state, attempts, result, started_at, finished_at) VALUES ('r_long', ?, 'call', 'spec', 'pm', '', 'done', 1, ?, ?, ?)",
  );
  for (let each = 0; each < STEPS; each += 1)
    step.run(`spec/${each}`, JSON.stringify({ ok: true, text: "yes" }), at(each), at(each + 1));
  const activity = db.prepare("INSERT INTO task_activity (task_id, kind, summary, created_at) VALUES (?, 'tool', ?, ?)");
  for (let each = 0; each < ACTIVITIES; each += 1) activity.run(task, `shell: command number ${each}`, at(each));
  db.exec("COMMIT");
  db.close();
}
