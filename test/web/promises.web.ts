import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { asked } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { play } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";
import { AFRESH } from "../support/web/model.ts";
import { earlier } from "../support/web/month.ts";
import { askBefore, GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("Tasks of weeks show twenty rows in a small window while something waits, and with a mouse targets are lower than under a finger", async () => {
  const daemon = await webDaemon(askBefore("rm *"));
  await squadWith(daemon, project(GREETER), "greeter", ["backend engineer"]);
  await ended(daemon, (await delegate(daemon, "greeter", { task: "Say goodbye in a new language" })).id);
  const db = new DatabaseSync(join(daemon.home, "io.db"));
  db.exec("PRAGMA busy_timeout = 5000");
  const tasks = Array.from({ length: 240 }, (_, at) => [`Say goodbye in language number ${at + 1}`, at] as const);
  earlier(db, "agent_tasks", "description", tasks);
  db.close();
  await daemon.json("POST", "/api/messages", { text: AFRESH, source: "web" });
  await asked(daemon);
  const heights: number[] = [];
  for (const touch of [false, true]) {
    const { page } = await openWindow(await browser(), daemon, { path: "/tasks", touch });
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("region", { name: "Needs you" }).waitFor();
    const list = page.getByRole("list", { name: "Background work" });
    const rows = list.getByRole("link", { name: /Say goodbye/ });
    await rows.nth(19).waitFor();
    const room = (await list.boundingBox())!;
    const boxes = await Promise.all((await rows.all()).map((row) => row.boundingBox()));
    const seen = boxes.filter((box) => box && box.y >= room.y && box.y + box.height <= Math.min(800, room.y + room.height));
    if (!touch) expect(seen.length).toBeGreaterThanOrEqual(20);
    // One scroll bar: the list scrolls, and the view does not.
    expect(await page.getByRole("main").evaluate((main) => main.scrollHeight - main.clientHeight)).toBeLessThanOrEqual(1);
    heights.push((await page.getByLabel("State").boundingBox())?.height ?? 0);
    // Also what is pages further down is found.
    await page.getByRole("searchbox", { name: "Find a task" }).fill("number 240");
    await list.getByRole("link", { name: "Say goodbye in language number 240" }).waitFor();
  }
  expect(heights[0]).toBeLessThan(44);
  expect(heights[1]).toBeGreaterThanOrEqual(44);
});

test("a run at work is followed in its picture, made smaller, and cancelled only by the button that says so", async () => {
  const words = Array.from({ length: 600 }, (_, at) => `word${at + 1} `);
  const model = await scriptedModel(play(({ role }) => (role === "engineer" ? { say: words, gapMs: 60 } : undefined)));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  await page.getByRole("list", { name: "Running" }).getByRole("link", { name: "Greet everybody" }).waitFor();
  await page.getByRole("region", { name: "Timeline" }).getByRole("link", { name: "engineer", exact: true }).first().waitFor();
  const picture = page.getByRole("group", { name: "Pipeline" });
  const now = picture.locator(".node.now");
  await now.getByText("running").waitFor();
  const widthOf = async () => (await picture.locator("svg").boundingBox())?.width ?? 0;
  for (let times = 0; times < 6; times += 1) await page.getByRole("button", { name: "Zoom in" }).click();
  const room = await picture.boundingBox();
  expect(await widthOf()).toBeGreaterThan(room!.width);
  // However large the picture is, the running step is centred.
  await until("what runs to be in sight", async () => {
    const node = await now.boundingBox();
    return node !== null && node.x >= room!.x - 1 && node.x + node.width <= room!.x + room!.width + 1;
  });
  const large = await widthOf();
  await page.getByRole("button", { name: "Zoom out" }).click();
  await until("a smaller picture", async () => (await widthOf()) < large * 0.9);

  await page.getByRole("button", { name: "Cancel" }).click();
  const question = page.getByRole("alertdialog");
  expect(await question.evaluate((dialog) => dialog.contains(dialog.ownerDocument.activeElement))).toBe(true);
  // Also after a click beside the buttons has removed the focus.
  await question.getByRole("heading").click();
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape");
  expect(await question.isVisible()).toBe(true);
  await question.getByRole("button", { name: "Cancel" }).click();
  expect((await runEnded(daemon, begun.id)).status).toBe("cancelled");
  await page.getByRole("list", { name: "Running" }).waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Run again" }).click();
  await question.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/") && !url.pathname.includes(begun.id));
  await page.getByRole("heading", { name: "Greet everybody" }).waitFor();
  const next = new URL(page.url()).pathname.split("/")[2] ?? "";
  expect((await daemon.json<Run>("GET", `/api/runs/${next}`)).projectPath).toBe(begun.projectPath);
  await daemon.json("POST", `/api/runs/${next}/cancel`);
  await runEnded(daemon, next);
  expect(complaints).toEqual([]);
});

test("the step that failed is shown as failed in the picture of its run, and says why where it is opened", async () => {
  const model = await scriptedModel(play(({ role }) => (role === "pm" ? { say: "" } : undefined)));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const begun = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const run = await runEnded(daemon, begun.id);
  expect(run.status).toBe("failed");
  const { page } = await openWindow(await browser(), daemon, { path: `/runs/${begun.id}` });
  const failed = page.getByRole("group", { name: "Pipeline" }).locator(".node.bad").filter({ hasText: "spec" });
  await failed.getByText("failed").waitFor();
  await page.getByRole("region", { name: "Timeline" }).getByRole("link", { name: "pm", exact: true }).first().click();
  const step = run.steps.find(({ kind, state }) => kind === "call" && state === "failed");
  expect(step?.error).toMatch(/\w/);
  await page.getByRole("region", { name: "Step" }).locator(".problem").getByText(step!.error!).waitFor();
});

test("the list of conversations says which is at work and which is unread, and a new title stands there at once", async () => {
  const daemon = await webDaemon();
  await daemon.ask({ text: "repeat: something to read", conversation: "news", source: "api" });
  await daemon.json("POST", "/api/messages", { text: "count slowly 200", conversation: "slow" });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/chat/news2" });
  const talks = page.getByRole("list", { name: "Conversations" });
  await talks.getByRole("link", { name: /at work.*count slowly 200/ }).waitFor();
  await talks.getByRole("link", { name: /something to read.*1 unread/ }).click();
  await page.getByRole("log").getByText("something to read").first().waitFor();
  await page.locator('summary[aria-label^="More about"]').click();
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByLabel("Title").fill("All the news");
  await page.keyboard.press("Enter");
  await talks.getByRole("link", { name: "All the news", exact: true }).waitFor();
  await page.getByRole("heading", { name: "All the news", level: 1 }).waitFor();
  await talks.getByRole("link", { name: /count slowly 200/ }).click();
  await page.getByRole("button", { name: "Stop" }).click();
  await until("nothing to be at work", async () => (await talks.getByRole("link", { name: /at work/ }).count()) === 0);
  expect(complaints).toEqual([]);
});
