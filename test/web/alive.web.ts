import { join } from "node:path";
import { createServer } from "vite";
import { expect, test } from "vitest";
import { fillConversation, fillLong, oneTask } from "../../bench/web/long-lists.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { callText } from "../support/orchestrator.ts";
import { ended, project } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { GREETER, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

/** Sums up layout shifts that no input has caused. */
const WATCH_SHIFTS = `window.shifted = 0;
new PerformanceObserver((seen) => {
  for (const { value, hadRecentInput } of seen.getEntries()) if (!hadRecentInput) window.shifted += value;
}).observe({ type: "layout-shift", buffered: true });`;

test("nothing moves while an answer streams, and a difference of thousands of lines is drawn only where one looks", async () => {
  const daemon = await webDaemon();
  const { page, complaints } = await openWindow(await browser(), daemon);
  const field = page.getByLabel("Message");
  await page.getByText("Three ways to begin:").waitFor();
  await page.evaluate(WATCH_SHIFTS);
  for (const words of ["count slowly 40", "a table slowly"]) {
    await field.fill(words);
    await field.press("Enter");
    await until(
      "the answer",
      async () => (await page.getByText("tokens in 1 call").count()) === (words.includes("table") ? 2 : 1),
      60_000,
    );
  }
  expect(await page.evaluate<number>("window.shifted")).toBeLessThan(0.02);

  await daemon.json("PATCH", "/api/conversations/main", { folder: project(GREETER) });
  await daemon.ask({ text: callText("shell", { command: "seq -f 'line %.0f' 10000 > long.txt" }), source: "web" });
  await page.getByRole("button", { name: /changed long\.txt/ }).click();
  const lines = page.getByRole("list", { name: "Lines of long.txt" });
  await lines.locator(".line.added").first().waitFor();
  expect(await lines.locator(".line").count()).toBeLessThan(200);
  await lines.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await until("the last lines", async () => (await lines.textContent())?.includes("line 10000"));
  expect(await lines.locator(".line").count()).toBeLessThan(200);
  expect(complaints).toEqual([]);
});

test("thousands of messages, steps and activities are drawn only where one looks", async () => {
  const daemon = await webDaemon();
  const task = await oneTask(daemon, project(GREETER));
  await ended(daemon, task);
  fillConversation(join(daemon.home, "io.db"), "long", 5_000);
  fillLong(join(daemon.home, "io.db"), task);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/chat/long" });
  await page.getByRole("log").getByText("Answer 4999").waitFor();
  expect(await page.locator(".turn").count()).toBeLessThan(200);
  for (const [path, name, last] of [
    ["/runs/r_long", "Steps", "spec/1999"],
    [`/tasks/${task}`, "What was seen", "command number 19999"],
  ] as const) {
    await page.goto(daemon.url + path);
    const list = page.getByRole("list", { name });
    await list.getByRole("listitem").first().waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(200);
    await until(`the last of ${name}`, async () => {
      await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return (await list.textContent())?.includes(last);
    });
    expect(await list.getByRole("listitem").count()).toBeLessThan(200);
  }
  expect(complaints).toEqual([]);
});

test("the page can be installed; news becomes a notification only on request, by its level, and while nobody looks", async () => {
  const daemon = await webDaemon();
  const { page, context } = await openWindow(await browser(), daemon, { path: "/settings" });
  const debug = await context.newCDPSession(page);
  const manifest = await debug.send("Page.getAppManifest");
  expect(manifest.errors).toEqual([]);
  expect(JSON.parse(manifest.data ?? "{}")).toMatchObject({ start_url: "/", display: "standalone" });

  await context.grantPermissions(["notifications"], { origin: daemon.url });
  // Records what the browser would show, because this one has no desktop.
  await page.addInitScript(`window.shown = [];
    window.Notification = class { static permission = "granted"; static requestPermission = async () => "granted"; close() {}
      constructor(title, options) { window.shown.push([title, options.body, options.silent]); } };
    document.hasFocus = () => window.isLookedAt === true;`);
  await page.reload();
  const shown = () => page.evaluate<[string, string, boolean][]>("window.shown");
  const tell = (text: string) =>
    daemon.json("POST", "/api/schedules", { when: "in 5s", text: `repeat: ${text}`, conversation: "main" });
  const choice = page.getByLabel("Notifications");
  await expect.poll(() => choice.inputValue(), { timeout: 15_000 }).toBe("off");
  await choice.selectOption("all");
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  await tell("tea is ready");
  await until("the notification", async () => (await shown()).length === 1, 60_000);
  expect(await shown()).toEqual([["IO has news", "tea is ready", true]]);
});

test("the gallery shows every component without a daemon and without a complaint", async () => {
  const server = await createServer({
    configFile: `${packageRoot}/web/vite.config.ts`,
    cacheDir: `${packageRoot}/node_modules/.vite-gallery`,
    server: { port: 0, host: "127.0.0.1", hmr: false },
  });
  try {
    await server.listen();
    const page = await (await browser()).newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (said) => void (said.type() === "error" && complaints.push(said.text())));
    await page.goto(`${server.resolvedUrls?.local[0]}gallery.html`);
    for (const name of ["Buttons", "Fields", "States", "Question", "Difference", "Lists and charts"])
      await page.getByRole("region", { name, exact: true }).waitFor({ timeout: 60_000 });
    await page.locator(".hljs-keyword").first().waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Split" }).click();
    await page.locator(".pair .line.removed").first().waitFor();
    await page.getByRole("button", { name: "Offer Undo" }).click();
    await page.getByRole("button", { name: "Undo", exact: true }).waitFor();
    await page.close();
    expect(complaints).toEqual([]);
  } finally {
    await server.close();
  }
});
