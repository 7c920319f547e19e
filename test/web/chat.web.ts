import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";
import { webModel } from "../support/web/model.ts";
import { webDaemon } from "../support/web/seed.ts";

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
  await field.fill("count slowly 60");
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
    30_000,
  );
  expect(said.map(({ text, status }) => [text, status])).toEqual([
    ["not wanted", "cancelled"],
    ["repeat: other words", "done"],
    ["count slowly 60", "done"],
  ]);
  expect(said[2]?.steered.map(({ text }) => text)).toEqual(["also say pineapple"]);
});

test("Stop ends the turn and keeps what was said", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon);
  expect(await page.getByRole("button", { name: "Stop" }).isDisabled()).toBe(true);
  await page.getByLabel("Message").fill("count slowly 300");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("word5 ").waitFor();
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
  expect(await page.getByRole("article").count()).toBe(1);
});

test("equal tool calls are one counted row that unfolds to what was asked and what came back", async () => {
  const daemon = await webDaemon();
  const { page } = await openWindow(await browser(), daemon);
  const calls = [
    { path: "a", content: "# A\n" },
    { path: "b", content: "# B\n" },
  ];
  await daemon.ask({ text: `call wiki_write ${JSON.stringify(calls)}`, source: "web" });
  await page.getByText("wiki_write ×2").click();
  await page.getByText('"content": "# B').waitFor();
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
  await page.getByRole("log").getByText("an answer of before").last().waitFor();
  await page.getByLabel("Message").click();
  await page.keyboard.type("early");
  await page.keyboard.press("Home");
  letScripts();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.keyboard.type("repeat: typed ");
  expect(await page.getByLabel("Message").inputValue()).toBe("repeat: typed early");
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
