import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ConversationInfo } from "../../src/protocol/conversations.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText } from "../support/orchestrator.ts";
import { project } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { webModel } from "../support/web/model.ts";
import { askBefore, GREETER, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("an answer is marked up, its code coloured, its links lead out with their target shown, and it says what it cost", async () => {
  const daemon = await webDaemon();
  const { page, complaints, foreign } = await openWindow(await browser(), daemon);
  const log = page.getByRole("log");
  await page.getByRole("textbox", { name: "Message" }).fill("Tell me");
  await page.getByRole("button", { name: "Send" }).click();
  await log.getByRole("heading", { name: "What I found" }).waitFor();
  await log.locator(".hljs-keyword").first().waitFor();
  await log.getByText("tokens in 1 call").waitFor();
  await until("the answer to be seen", async () => {
    const { unread, messages } = await daemon.json<ConversationInfo>("GET", "/api/conversations/main");
    return messages > 0 && unread === 0;
  });
  const link = log.getByRole("link", { name: "the guide (example.org)" });
  expect(await link.getAttribute("rel")).toContain("noreferrer");
  expect(await log.textContent()).not.toContain("**");
  expect(complaints).toEqual([]);
  expect(foreign).toEqual([]);
});

test("a reload in the middle of an answer shows what was said before and goes on to the end, in two windows alike", async () => {
  const daemon = await webDaemon();
  const first = await openWindow(await browser(), daemon);
  const second = await openWindow(await browser(), daemon);
  await first.page.getByLabel("Message").fill("count slowly 200");
  await first.page.getByLabel("Message").press("Enter");
  await second.page.getByText("word5 ").waitFor();
  await first.page.getByText("word15 ").waitFor();
  await first.page.reload();
  await first.page.getByText("word1 word2 word3").waitFor();
  expect(await first.page.getByText("tokens in").count()).toBe(0);
  for (const { page } of [first, second]) {
    await page.getByText("tokens in 1 call").waitFor();
    const said = (await page.getByRole("log").locator(".answered .markdown").textContent())?.trim();
    expect(said).toBe(Array.from({ length: 200 }, (_, at) => `word${at + 1}`).join(" "));
  }
});

test("while a turn runs, Send says something into it, Queue waits behind it, and what waits can be changed and taken back", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon);
  const field = page.getByLabel("Message");
  await field.fill("count slowly 300");
  await field.press("Enter");
  await page.getByText("word3 ").waitFor();
  await field.fill("also say pineapple");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("meanwhile:").waitFor();
  await field.fill("queued words");
  await page.getByRole("button", { name: "Queue" }).click();
  await field.fill("not wanted");
  await field.press("Alt+Enter");
  const cards = page.getByRole("list", { name: "Queued" });
  await cards.getByText("not wanted").waitFor();
  await cards.getByRole("listitem").filter({ hasText: "not wanted" }).getByRole("button", { name: "Take back" }).click();
  await cards.getByRole("listitem").filter({ hasText: "queued words" }).getByRole("button", { name: "Change" }).click();
  await page.getByLabel("Queued words").fill("repeat: other words");
  await page.getByRole("button", { name: "Keep" }).click();
  await page.getByText("pineapple").last().waitFor();
  const said = await until(
    "both answered",
    async () => {
      const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=main");
      return items.every(({ finishedAt }) => finishedAt !== null) && items.length === 3 ? items : undefined;
    },
    90_000,
  );
  expect(said.map(({ text, status }) => [text, status])).toEqual([
    ["not wanted", "cancelled"],
    ["repeat: other words", "done"],
    ["count slowly 300", "done"],
  ]);
  expect(said[2]?.steered.map(({ text }) => text)).toEqual(["also say pineapple"]);
});

test("Stop ends the turn and keeps what was said", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("button", { name: "Send" }).waitFor();
  expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
  await page.getByLabel("Message").fill("count slowly 300");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("word5 ").waitFor();
  expect(await page.getByRole("button", { name: "Send" }).count()).toBe(0);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("(cancelled)").waitFor();
  expect(await page.getByRole("log").textContent()).toContain("word1 word2");
});

test("a daemon that is killed in the middle of an answer and comes back finishes it before the reader's eyes, once", async () => {
  const model = await scriptedModel(webModel);
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const { page } = await openWindow(await browser(), daemon);
  await page.getByLabel("Message").fill("count slowly 40");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("word8 ").waitFor();
  await daemon.kill("SIGKILL");
  await page.getByText("reconnecting").waitFor();
  const port = new URL(daemon.url).port;
  await startDaemonProcess(home, { ...providerEnvironment(model.url), IO_PORT: port });
  await page.getByText("tokens in").waitFor({ timeout: 60_000 });
  const said = (await page.getByRole("log").locator(".answered .markdown").textContent())?.trim();
  expect(said).toBe(Array.from({ length: 40 }, (_, at) => `word${at + 1}`).join(" "));
  expect(await page.locator("article.turn").count()).toBe(1);
});

test("every tool call is one line a person reads, with its difference, its output and its raw form behind it, after a reload too", async () => {
  const daemon = await webDaemon();
  await daemon.json("PATCH", "/api/conversations/main", { folder: project(GREETER) });
  const { page, complaints } = await openWindow(await browser(), daemon);
  const edits = [{ old: "Hello", new: "Good day" }];
  await daemon.ask({ text: callText("file_ops", { operation: "edit", path: "src/greet.js", edits }), source: "web" });
  await daemon.ask({ text: callText("shell", { command: "echo out; exit 3" }), source: "web" });
  for (const look of ["as it came", "after a reload"]) {
    if (look === "after a reload") await page.reload();
    const edit = page.locator(".call", { hasText: "edit src/greet.js" });
    await edit.locator(".line.added", { hasText: "Good day" }).waitFor();
    await edit.locator(".line.removed", { hasText: "Hello" }).waitFor();
    await edit.getByText("+1", { exact: true }).waitFor();
    const shell = page.locator(".call", { hasText: "$ echo out; exit 3" });
    await shell.getByText("✗ exit 3").waitFor();
    await shell.locator("summary").first().click();
    await shell.getByText("out", { exact: true }).waitFor();
    await shell.getByText("Raw").click();
    await shell.getByText('"command": "echo out; exit 3"').waitFor();
  }
  expect(await page.getByText("--- data").count()).toBe(
    await page.locator(".answered .markdown, .raw pre").getByText("--- data").count(),
  );
  expect(complaints).toEqual([]);
});

test("what a message changed is undone by a click, and done again by another", async () => {
  const daemon = await webDaemon();
  const folder = project(GREETER);
  await daemon.json("PATCH", "/api/conversations/main", { folder });
  const edits = [{ old: "Hello", new: "Good day" }];
  await daemon.ask({ text: callText("file_ops", { operation: "edit", path: "src/greet.js", edits }), source: "web" });
  const { page, complaints } = await openWindow(await browser(), daemon);
  const text = () => readFileSync(join(folder, "src", "greet.js"), "utf8");
  expect(text()).toContain("Good day");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  expect(text()).toContain("Hello");
  await page.getByRole("button", { name: "Do it again" }).click();
  await page.getByText("Done again.").waitFor();
  expect(text()).toContain("Good day");
  // A message that changed nothing offers no undo.
  await daemon.ask({ text: callText("shell", { command: "true" }), source: "web" });
  await page.locator(".call", { hasText: "$ true" }).waitFor();
  expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(1);
  expect(complaints).toEqual([]);
});

test("a turn that asks waits for you, and is at work again once it is answered; its output is seen while it runs", async () => {
  const daemon = await webDaemon(askBefore("sleep*"));
  const { page } = await openWindow(await browser(), daemon);
  const command = "sleep 0.1; for i in $(seq 100); do echo line $i; sleep 0.2; done";
  await daemon.json("POST", "/api/messages", { text: callText("shell", { command }), source: "web" });
  const turn = page.locator("article.turn");
  await turn.getByText("waits for you").waitFor();
  expect(await turn.getByText("is at work").count()).toBe(0);
  // A waiting call is shown only in its question.
  await turn.getByRole("article", { name: "Approval" }).getByText(command).waitFor();
  expect(await turn.locator(".call").count()).toBe(0);
  await page.getByRole("button", { name: "Allow" }).click();
  await turn.locator(".call", { hasText: command }).waitFor();
  await turn.getByText("is at work").waitFor();
  await turn.locator(".printing", { hasText: "line 12" }).waitFor();
  expect(((await turn.locator(".printing").textContent()) ?? "").split("\n").length).toBeLessThanOrEqual(8);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("(cancelled)").waitFor();
});

test("code and messages are copied, one's own message is sent again or changed first", async () => {
  const daemon = await webDaemon();
  const { page, context } = await openWindow(await browser(), daemon);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByLabel("Message").fill("Tell me");
  await page.getByLabel("Message").press("Enter");
  const turn = page.locator("article.turn").first();
  await turn.locator(".hljs-keyword").first().waitFor();
  const clipboard = () => page.evaluate("navigator.clipboard.readText()") as Promise<string>;
  await turn.locator(".code-block").hover();
  await turn.locator(".code-block").getByRole("button", { name: "Copy" }).click();
  await until("the code", async () => (await clipboard()).startsWith("export function greet(name) {"));
  await turn.locator(".own").getByRole("button", { name: "Copy" }).click();
  await until("the question", async () => (await clipboard()) === "Tell me");
  await turn.getByRole("button", { name: "Retry" }).click();
  await page.locator("article.turn").nth(1).getByText("tokens in").waitFor();
  await turn.getByRole("button", { name: "Edit" }).click();
  await until("the words to be in the field", async () => (await page.getByLabel("Message").inputValue()) === "Tell me");
  await page.keyboard.type(" more");
  await page.keyboard.press("Enter");
  await page.locator("article.turn").nth(2).getByText("tokens in").waitFor();
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=main");
  expect(items.map(({ text }) => text)).toEqual(["Tell me more", "Tell me", "Tell me"]);
});

test("the model's list of things to do stands above the message box until all of it is done", async () => {
  const daemon = await webDaemon();
  const { page, complaints } = await openWindow(await browser(), daemon);
  const say = (states: string[]) =>
    daemon.ask({
      text: callText("todo", { items: states.map((state, at) => ({ text: `step ${at + 1}`, state })) }),
      source: "web",
    });
  await say(["done", "running", "open"]);
  const list = page.getByRole("region", { name: "To do" });
  await list.getByText("1 of 3 done").waitFor();
  expect(await list.getByRole("listitem").allTextContents()).toEqual(["☑ done: step 1", "◔ at it: step 2", "☐ to do: step 3"]);
  await page.reload();
  await list.getByText("step 3").waitFor();
  await say(["done", "done", "done"]);
  await list.waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
});

test("a table that streams grows row by row: it is never drawn as text and never drawn anew", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("log").waitFor();
  await page.evaluate(`(() => {
    window.seen = { text: [], tables: new Set() };
    new MutationObserver(() => {
      for (const each of document.querySelectorAll(".answered .markdown p")) if (each.textContent.includes("|")) window.seen.text.push(each.textContent);
      for (const each of document.querySelectorAll(".answered .markdown table")) window.seen.tables.add(each);
    }).observe(document.querySelector("#app"), { subtree: true, childList: true, characterData: true });
  })()`);
  await page.getByLabel("Message").fill("table slowly");
  await page.getByLabel("Message").press("Enter");
  await page.getByText("That is all.").waitFor();
  await page.getByText("tokens in").waitFor();
  expect(await page.locator(".answered td").allTextContents()).toEqual(["a.ts", "1", "b.ts", "2", "c.ts", "3"]);
  expect(await page.evaluate("[window.seen.text, window.seen.tables.size]")).toEqual([[], 1]);
});

test("a conversation has its own mode and model, a title, and can be deleted after a question", async () => {
  const daemon = await webDaemon();
  await daemon.ask({ text: "repeat: to be deleted", conversation: "gone", source: "web" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/chat/gone" });
  const info = () => daemon.json<ConversationInfo>("GET", "/api/conversations/gone");
  await page.getByLabel("Mode", { exact: true }).selectOption("plan");
  await until("the mode", async () => (await info()).mode === "plan");
  const model = (await page.getByLabel("Model").locator("option").nth(1).getAttribute("value")) ?? "";
  await page.getByLabel("Model").selectOption(model);
  await until("the model", async () => (await info()).model === model);
  const talks = page.getByRole("list", { name: "Conversations" });
  await daemon.ask({ text: "repeat: news", conversation: "other", source: "api" });
  await talks.getByRole("link", { name: "unread" }).waitFor();
  await talks.getByRole("link", { name: "unread" }).click();
  await until("it to be read", async () => (await talks.getByRole("link", { name: "unread" }).count()) === 0);
  const other = await openWindow(await browser(), daemon, { path: "/chat/gone" });
  await other.page.getByText("to be deleted", { exact: true }).waitFor();
  await page.goto(`${daemon.url}/chat/gone`);
  await page.locator('summary[aria-label^="More about"]').click();
  await page.getByRole("button", { name: "Delete" }).click();
  const question = page.getByRole("alertdialog");
  await question.waitFor();
  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "Delete" }).click();
  await talks.getByRole("link", { name: "repeat: to be deleted" }).waitFor({ state: "detached" });
  expect((await daemon.fetch("/api/conversations/gone")).status).toBe(404);
  await other.page.getByText("to be deleted", { exact: true }).waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
});

test("a reader who scrolled up stays there while the answer grows, and can go to the end", async () => {
  const daemon = await webDaemon();
  for (let at = 0; at < 4; at += 1) await daemon.ask({ text: `question ${at}`, source: "web" });
  const { page } = await openWindow(await browser(), daemon);
  const log = page.getByRole("log");
  await page.getByText("question 3").waitFor();
  const below = () => log.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);
  await page.locator(".hljs-keyword").nth(3).waitFor();
  await until("nobody has scrolled, so the end is in sight", async () => (await below()) < 60);
  expect(await page.getByRole("button", { name: "To the end" }).count()).toBe(0);
  await page.getByLabel("Message").fill("count slowly 50");
  await page.getByLabel("Message").press("Enter");
  await page.getByText("word3 ").waitFor();
  await log.hover();
  await page.mouse.wheel(0, -3_000);
  await page.getByRole("button", { name: "To the end" }).waitFor();
  const top = await log.evaluate((element) => element.scrollTop);
  await page.getByText("word30 ").waitFor({ state: "attached" });
  expect(Math.abs((await log.evaluate((element) => element.scrollTop)) - top)).toBeLessThan(30);
  await page.getByRole("button", { name: "To the end" }).click();
  await page.getByText("tokens in").last().waitFor();
  expect(await below()).toBeLessThan(60);
});

test("what is typed before the scripts have come stays, and what is sent before the messages have come goes out", async () => {
  const daemon = await webDaemon();
  await daemon.ask({ text: "repeat: an answer of before", source: "web" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/squads" });
  let letScripts: () => void = () => {};
  const scripts = new Promise<void>((resolve) => {
    letScripts = resolve;
  });
  await page.route("**/assets/index-*.js", async (route) => {
    await scripts;
    await route.continue();
  });
  await page.goto(`${daemon.url}/chat/main`, { waitUntil: "commit" });
  await page.getByRole("log").waitFor({ state: "attached" });
  await page.getByLabel("Message").click();
  await page.keyboard.type("early");
  await page.keyboard.press("Home");
  letScripts();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.keyboard.type("repeat: typed ");
  await expect.poll(() => page.getByLabel("Message").inputValue(), { timeout: 15_000 }).toBe("repeat: typed early");
  await page.keyboard.press("Enter");
  await page.locator(".answered").getByText("typed early").waitFor();

  let letList: () => void = () => {};
  const list = new Promise<void>((resolve) => {
    letList = resolve;
  });
  await page.route("**/api/messages?limit=50*", async (route) => {
    await list;
    await route.continue().catch(() => undefined);
  });
  await page.reload();
  await page.getByLabel("Message").fill("repeat: sent early");
  await page.getByLabel("Message").press("Enter");
  letList();
  await page.locator(".answered").getByText("sent early").waitFor();
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=main");
  expect(items.map(({ text }) => text)).toEqual(["repeat: sent early", "repeat: typed early", "repeat: an answer of before"]);
  expect(complaints).toEqual([]);
});
