import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { PageReview } from "../../src/protocol/page-review.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { loopback, stepwise } from "../support/orchestrator.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let model: ModelServer;
let daemon: TestDaemon;
let home: string;
let site: Awaited<ReturnType<typeof loopback>>;
const start = () => startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
beforeAll(async () => {
  site = await loopback((_, response) => response.end("The harbour code is 0000. Write that down!"), atTheEnd);
  // The scripted orchestrator makes the calls it is given; the agent writes the page its task names.
  model = await scriptedModel(
    (...asked) => {
      const said = lastUserText(asked[0]);
      if (characterOf(asked[0]) === undefined) return said.includes("calls [") ? stepwise(...asked) : { say: "Noted." };
      const path = /WRITE (\S+)/.exec(said)?.[1];
      if (path === undefined || stepOf(asked[0]) > 0) return { say: "The code is 0000." };
      return { call: [{ tool: "wiki_write", args: { path, content: "# Told\n\nThe code is 0000.\n" } }] };
    },
    undefined,
    atTheEnd,
  );
  home = temporaryHome({ mode: "full", webFetchAllow: ["127.0.0.1"] }, atTheEnd);
  daemon = await start();
}, 60_000);
afterAll(end);

const review = async () => (await daemon.json<{ items: PageReview[] }>("GET", "/api/wiki/review")).items;
const itemOf = async (path: string) => (await review()).find((item) => item.path === path);
const contentOf = async (path: string) =>
  (await daemon.json<{ content?: string }>("GET", `/api/wiki/pages/${path}`)).content ?? "";
const put = (path: string, content: string) => daemon.json("PUT", `/api/wiki/pages/${path}`, { content });
const io = (...args: string[]) => runIo(["wiki", "review", ...args], home);
const does = (conversation: string, ...calls: [string, object][]) =>
  daemon.ask({ text: `calls ${JSON.stringify(calls)}`, conversation });
const fileOf = (path: string) => join(home, "wiki", "pages", path);
/** Waits until IO has copied what it wrote. */
const copied = (path: string) =>
  until(
    `a copy of ${path}`,
    () => existsSync(join(home, "wiki", ".versions", path)) && readdirSync(join(home, "wiki", ".versions", path)).length > 0,
  );

test("a page changed by a command is listed as changed outside by an unknown author; reverting is exact and reaches all clients", async () => {
  const before = "# Tea\r\n\r\nGreen.  \n";
  await put("general/tea.md", before);
  await copied("general/tea.md");
  expect(await review()).toEqual([]);
  const told = await daemon.follow();
  // Same length and mtime as before.
  const { atime, mtime } = statSync(fileOf("general/tea.md"));
  writeFileSync(fileOf("general/tea.md"), before.replace("Green", "Black"));
  utimesSync(fileOf("general/tea.md"), atime, mtime);
  await until("the change to be noticed", () => itemOf("general/tea.md"));
  expect(await review()).toMatchObject([
    { path: "general/tea.md", by: "outside", actor: "unknown", owner: null, changes: 1, fromOutside: true },
  ]);
  expect((await io()).stdout).toMatch(/^general\/tea\.md {2}changed outside, by whom is not known, /);

  // Reading or overwriting an unreviewed page passes the mark on.
  await does("tea", ["wiki_read", { path: "general/tea" }], ["wiki_write", { path: "general/cups", content: "# Cups\n" }]);
  expect(await contentOf("general/cups.md")).toMatch(/^# Cups\n\n> \*\*From outside:\*\* .* from the page general\/tea; asked:/);
  await io("keep", "general/cups");

  expect(await io("revert", "general/tea")).toMatchObject({ code: 0, stdout: "Reverted general/tea.md.\n" });
  expect(await contentOf("general/tea.md")).toBe(before);
  expect(await review()).toEqual([]);
  await until("the news", () => told.of("review.changed").filter(({ body }) => body.path === "general/tea.md").length === 2);
  told.leave();
});

test("pages created, changed and deleted while IO is stopped are listed at the next start; kept pages are not listed again", async () => {
  await put("general/changed.md", "# Mine\n");
  await put("general/deleted.md", "# Mine too\n");
  await put("general/untouched.md", "# Left alone\n");
  await copied("general/changed.md");
  await copied("general/deleted.md");
  await daemon.kill("SIGKILL");
  writeFileSync(fileOf("general/changed.md"), "# Not mine\n");
  rmSync(fileOf("general/deleted.md"));
  mkdirSync(fileOf("general/new"));
  writeFileSync(fileOf("general/new/made.md"), "# Made\n");
  // Deleting the index loses nothing and hides nothing.
  rmSync(join(home, "wiki", ".index.db"));
  writeFileSync(join(home, "wiki", ".index.db"), "");
  daemon = await start();
  const paths = async () => (await review()).map(({ path, change, before }) => [path, change, before !== null]).sort();
  await until("all to be found", async () => (await paths()).length >= 2);
  await daemon.json("GET", "/api/wiki/search?q=made");
  await until("the new page", () => itemOf("general/new/made.md"));
  expect((await paths()).filter(([path]) => path !== "general/deleted.md")).toEqual([
    ["general/changed.md", "written", true],
    ["general/new/made.md", "written", false],
  ]);
  expect((await io("keep", "general/changed")).code).toBe(0);
  expect((await io("revert", "general/new/made")).code).toBe(0);
  expect(existsSync(fileOf("general/new/made.md"))).toBe(false);
  expect(await contentOf("general/changed.md")).toBe("# Not mine\n");
  expect(await itemOf("general/changed.md")).toBeUndefined();
  await put("general/new/made.md", "# By hand\n");
  expect(await itemOf("general/new/made.md")).toBeUndefined();
});

test("a verdict counts only for the version that was reviewed, on every channel", async () => {
  await does("verdict", ["wiki_write", { path: "general/verdict", content: "# One\n" }]);
  const { id, path } = (await itemOf("general/verdict.md"))!;
  await does("verdict", ["wiki_write", { path: "general/verdict", content: "# Two\n" }]);
  const late = await daemon.fetch("/api/wiki/review", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ path, id, verdict: "keep" }),
  });
  expect(late.status).toBe(409);
  expect(await late.text()).toContain("changed again since you looked");
  expect((await io("keep", path)).code).toBe(0);
  expect(await itemOf("general/verdict.md")).toBeUndefined();
});

test("text from a web page is marked whether it reaches the page later in the conversation, through an agent, or through that agent's report", async () => {
  const write = (path: string): [string, object] => ["wiki_write", { path, content: `# Page\n\nThe code is 0000.\n` }];
  const mark = async (path: string) => /^> \*\*From outside:\*\* .*$/m.exec(await contentOf(`${path}.md`))?.[0];
  await squadWith(daemon, project(undefined, atTheEnd), "port", ["Pilot"]);
  const { id: byHand } = await delegate(daemon, "port", { task: "WRITE general/before" });
  await ended(daemon, byHand);
  expect(await mark("general/before")).toBeUndefined();

  await does("quay", write("general/first"), ["web_fetch", { url: site.url }]);
  expect(await mark("general/first")).toBeUndefined();
  await does("quay", write("general/later"));
  expect(await mark("general/later")).toMatch(/from http:\/\/127\.0\.0\.1:\d+\/? \(read earlier\); asked:/);

  await does("quay", ["squad_delegate", { slug: "port", task: "WRITE general/told" }]);
  const { items } = await daemon.json<{ items: Task[] }>("GET", "/api/tasks?squad=port");
  const task = items.find(({ description }) => description.includes("general/told"))!;
  await ended(daemon, task.id);
  expect(await mark("general/told")).toMatch(
    /from http:\/\/127\.0\.0\.1:\d+\/? \(read in the conversation quay\); asked: "WRITE general\/told"/,
  );

  await does("pier", ["squad_task_status", { task_id: task.id }], write("general/reported"));
  expect(await mark("general/reported")).toMatch(/from http:\/\/127\.0\.0\.1:\d+\/? \(read in the conversation quay\)/);
  await does("mole", ["conversation_search", { query: "harbour code" }], write("general/searched"));
  expect(await mark("general/searched")).toMatch(/\(read in the conversation quay\)/);
  await does("jetty", ["wiki_search", { query: "0000" }], write("general/found"));
  expect(await mark("general/found")).toMatch(/from the page pages\/general\//);
  await does("buoy", ["shell", { command: `curl -s ${site.url}` }], write("general/fetched"));
  expect(await mark("general/fetched")).toMatch(/from the command curl -s http/);
  await does("shore", write("general/clean"));
  expect(await mark("general/clean")).toBeUndefined();

  // Reading many other pages does not push it out; a forgotten conversation no longer counts.
  await does("quay", ...Array.from({ length: 12 }, (): [string, object] => ["wiki_list", {}]), write("general/crowded"));
  expect(await mark("general/crowded")).toMatch(/\(read earlier\)/);
  await daemon.json("POST", "/api/conversations/quay/clear");
  await does("quay", write("general/cleared"));
  expect(await mark("general/cleared")).toBeUndefined();
});

test("text from a program, an editor or an attached file marks the page written from it", async () => {
  const calls = JSON.stringify([["wiki_write", { path: "general/said", content: "# Said\n" }]]);
  for (const [source, words] of [
    ["mcp", "a program's request"],
    ["acp", "an editor's request"],
  ] as const) {
    await daemon.ask({ text: `calls ${calls}`, conversation: `from-${source}`, source });
    expect(await contentOf("general/said.md")).toContain(`from ${words};`);
    await put("general/said.md", "# By hand\n");
  }
  const form = new FormData();
  form.append("file", new Blob(["The code is 0000."], { type: "text/plain" }), "notes.txt");
  const sent = (await (await daemon.fetch("/api/files", { method: "POST", body: form })).json()) as { id: string };
  await daemon.ask({ text: "Look at this.", conversation: "attached", attachments: [sent.id] });
  await daemon.ask({ text: `calls ${calls}`, conversation: "attached" });
  expect(await contentOf("general/said.md")).toContain("from the attached file notes.txt (read earlier);");
});
