import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { cleanEnvironment, IO, providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText } from "../support/orchestrator.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";
import { swarm } from "../support/swarm/command.ts";
import { type BotApi, startBotApi } from "../support/telegram/bot-api.ts";
import { isConnected, OWNER, telegramConfig } from "../support/telegram/daemon.ts";
import { createPerson, type TelegramPerson } from "../support/telegram/person.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { webModel } from "../support/web/model.ts";
import { askBefore, GREETER, runEnded } from "../support/web/seed.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);
const browser = fileBrowser();

let home: string;
let daemon: TestDaemon;
let api: BotApi;
let owner: TelegramPerson;
/** How many times the provider will still fail, for each client. */
const failing = { page: 3, phone: 3 };
/** The mark and word that every channel must show, by id. */
const tasks: Record<string, string> = {};
const runs: Record<string, string> = {};

const model: Model = (request, index) => {
  const said = lastUserText(request);
  if (characterOf(request) && said.includes("Break down")) return { status: 400, message: "this cannot be answered" };
  if (characterOf(request)) return { say: "I sang it." };
  if (JSON.stringify(request.messages).includes("Wait for ever")) return { hang: true };
  if (said.includes("say nothing")) return { status: 400, message: "this cannot be answered" };
  const [, who] = /be patient, (page|phone)/.exec(said) ?? [];
  if (who === "page" || who === "phone") {
    failing[who] -= 1;
    return failing[who] < 0 ? { say: "At last." } : { status: 503, message: "overloaded", headers: { "retry-after": "3" } };
  }
  return webModel(request, index);
};

beforeAll(async () => {
  api = await startBotApi(atTheEnd);
  const server = await scriptedModel(model, undefined, atTheEnd);
  const config = { ...telegramConfig(api), authorizedUserId: OWNER, ...askBefore("rm *"), approvalExpiresMs: 1_000 };
  home = temporaryHome(config, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(server.url), atTheEnd);
  owner = createPerson(api, OWNER, "Olga");
  await isConnected(daemon);
  await squadWith(daemon, project({ "README.md": "# Songs\n" }, atTheEnd), "choir", ["Singer"]);
  const begin = async (files: Record<string, string>, issue: string) =>
    (await daemon.json<Run>("POST", "/api/runs", { projectPath: project(files, atTheEnd), issue })).id;
  const approved = await begin(GREETER, "Add a farewell(name) function");
  const untested = await begin({ "README.md": "# Words\n" }, "Add a word");
  for (const [words, shown] of [
    ["Sing a song", "! done, unproven"],
    ["Break down", "✗ failed"],
  ] as const) {
    const { id } = await delegate(daemon, "choir", { task: words });
    await ended(daemon, id, 60_000);
    tasks[id] = shown;
  }
  for (const [id, shown] of [
    [approved, "✓ approved"],
    [untested, "! untested"],
  ] as const) {
    await runEnded(daemon, id);
    runs[id] = shown;
  }
}, 240_000);

/** An id in a list, with the text before its mark. */
const listed = (id: string) => new RegExp(`${id} +(?:[\\d-]+ [\\d:]+ +)?(?=[✓✗!…·] )`);

/** The mark and word that a list shows for each id. */
const shownIn = (text: string, ids: Record<string, string>) =>
  Object.fromEntries(Object.entries(ids).map(([id, { length }]) => [id, text.split(listed(id))[1]?.slice(0, length)]));

test("commands, the chat, the page and Telegram show the same tasks and runs with the same marks and words", async () => {
  expect(Object.keys({ ...tasks, ...runs })).toHaveLength(4);

  expect(shownIn((await runIo(["task", "list"], home)).stdout, tasks)).toEqual(tasks);
  for (const [id, shown] of Object.entries(tasks))
    expect((await runIo(["task", "show", id], home)).stdout.split("\n")[0]).toContain(`${id}  ${shown}`);
  const env = cleanEnvironment(home);
  expect(shownIn((await swarm(["list"], home, env)).stdout, runs)).toEqual(runs);
  for (const [id, shown] of Object.entries(runs)) {
    const [mark, words] = shown.split(" ");
    expect((await swarm(["show", id], home, env)).stdout.split("\n")[0]).toMatch(
      new RegExp(`^${mark} Run ${id}: done, ${words}(?: \\(.*\\))?$`),
    );
  }

  const terminal = await openTerminal(home, [process.execPath, IO], env, { columns: 160 });
  await terminal.sees("connected", 60_000);
  for (const [command, ids] of [
    ["/tasks", tasks],
    ["/runs", runs],
  ] as const) {
    await terminal.enter(command);
    for (const id of Object.keys(ids)) await terminal.sees(listed(id), 60_000);
    expect(shownIn(await terminal.screen(), ids)).toEqual(ids);
    await terminal.press("C-l");
  }

  for (const [command, title, ids] of [
    ["/tasks", /Tasks, newest first/, tasks],
    ["/runs", /Runs, newest first/, runs],
  ] as const) {
    owner.send(command);
    const { text } = await owner.sees(title, 60_000);
    for (const [id, shown] of Object.entries(ids)) {
      const [mark, ...words] = shown.split(" ");
      expect(text).toContain(`${mark} ${id} ${words.join(" ")}: `);
    }
  }

  const { page } = await openWindow(await browser(), daemon, { path: "/tasks" });
  expect(await badges(page, "tasks", tasks)).toEqual(tasks);
  await page.goto(`${daemon.url}/runs`);
  expect(await badges(page, "runs", runs)).toEqual(runs);
}, 240_000);

/** The badge in the row of each id's link. */
async function badges(page: Page, kind: string, ids: Record<string, string>): Promise<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const id of Object.keys(ids)) {
    const row = page.locator(".list-row", { has: page.locator(`a[href$="/${kind}/${id}"]`) });
    const badge = row.locator(".badge");
    shown[id] = `${await badge.getAttribute("data-mark")} ${(await badge.textContent())?.trim()}`;
  }
  return shown;
}

test("a call that came to nothing has the same mark and word where it is told while it runs and where it is read later", async () => {
  const send = async (text: string) => {
    const { stderr } = await runIo(["send", "--conversation", "calls", text], home);
    return stderr;
  };
  const failed = callText("shell", { command: "exit 7" });
  expect(await send(failed)).toMatch(/^✗ shell {2}exit 7 {2}exit 7$/m);
  // Progress of a call that ends at once is shown only together with the answer.
  owner.send(callText("shell", { command: "sleep 2; exit 7" }));
  await owner.sees(/shell ✗ exit 7/, 60_000);

  const expired = await send(callText("shell", { command: "rm -f nothing" }));
  expect(expired).toMatch(/^✗ shell {2}rm -f nothing {2}refused$/m);
  expect((await runIo(["approval", "list", "--state", "expired"], home)).stdout).toMatch(/ {2}expired {2}.*rm -f nothing/);

  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", {
    ...{ text: callText("shell", { command: "sleep 1000" }), conversation: "calls", source: "api" },
  });
  const states = async (of: string) =>
    (await daemon.json<{ items: { state: string }[] }>("GET", `/api/messages/${of}/calls`)).items.map(({ state }) => state);
  await until("the command to run", async () => (await states(id)).includes("begun"), 60_000);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await until("its end", async () => (await states(id)).includes("unknown"), 60_000);
  expect(await send("say nothing")).toContain("this cannot be answered");

  const { page } = await openWindow(await browser(), daemon, { path: "/chat/calls" });
  const turns = page.locator("article.turn");
  await page.locator("article.turn.failed .problem", { hasText: "this cannot be answered" }).waitFor();
  for (const [at, shown] of ["✗ exit 7", "✗ refused", "! unknown"].entries()) {
    await turns.nth(at).scrollIntoViewIfNeeded();
    await turns.nth(at).locator(".call", { hasText: shown }).first().waitFor();
  }
  expect(await page.locator('.call .tool[data-mark="✓"]').count()).toBe(0);
}, 240_000);

test("tries at a failing provider are seen in the page and in Telegram while they last, and not behind the answer", async () => {
  const words = /! try [1-3] failed, it is tried again in 3 s: the model's provider is failing/;
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/patience" });
  await page.locator("textarea").first().waitFor();
  await daemon.json("POST", "/api/messages", { text: "be patient, page", conversation: "patience", source: "web" });
  owner.send("be patient, phone");
  await Promise.all([
    page.locator("article.turn [role=status]", { hasText: words }).waitFor({ timeout: 60_000 }),
    owner.sees(words, 60_000),
  ]);
  await page.getByText("At last.").waitFor({ timeout: 60_000 });
  expect(await page.getByText(words).count()).toBe(0);
  await owner.sees(/^At last\.$/, 60_000);
}, 240_000);

test("a step that a cancelled run was at is shown as cancelled, nowhere as begun", async () => {
  const folder = project({ "README.md": "# Words\n" });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: folder, issue: "Wait for ever" });
  const read = () => daemon.json<Run>("GET", `/api/runs/${id}`);
  await until("a step to be under way", async () => (await read()).steps.some(({ state }) => state === "begun"), 60_000);
  await daemon.json("POST", `/api/runs/${id}/cancel`);
  expect((await runEnded(daemon, id)).outcome).toBe("cancelled");
  expect((await swarm(["show", id], folder, cleanEnvironment(home))).stdout).not.toContain("begun");
  const { page } = await openWindow(await browser(), daemon, { path: `/runs/${id}` });
  await page.locator('.step .badge[data-mark="!"]', { hasText: "cancelled" }).first().waitFor();
  expect(await page.locator(".badge", { hasText: "begun" }).count()).toBe(0);
}, 240_000);
