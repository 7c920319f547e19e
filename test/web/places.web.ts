import { expect, test } from "vitest";
import type { Schedule } from "../../src/protocol/schedules.ts";
import { asked } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { AFRESH } from "../support/web/model.ts";
import { askBefore, GREETER, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("a form that the palette asks for opens in its own view too, and again after it was closed; its address goes with it", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", []);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/squads" });
  await page.getByRole("heading", { name: "greeter" }).waitFor();
  const choose = async (words: string) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to or do" }).fill(words);
    await page.keyboard.press("Enter");
  };
  for (let times = 0; times < 2; times += 1) {
    await choose("make a squad");
    await page.getByLabel("Project path").waitFor({ timeout: 10_000 });
    await page.getByRole("button", { name: "Never mind" }).click();
    await page.getByLabel("Project path").waitFor({ state: "detached" });
    await until("an address without a form", () => page.url() === `${daemon.url}/squads`, 10_000);
  }
  await choose("make a squad");
  await page.getByLabel("Project path").waitFor();
  await page.goBack();
  await page.getByLabel("Project path").waitFor({ state: "detached" });

  await page.goto(`${daemon.url}/settings`);
  const question = page.getByRole("alertdialog");
  for (let times = 0; times < 2; times += 1) {
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await choose("stop everything");
    await question.getByRole("button", { name: "Never mind" }).click({ timeout: 10_000 });
    await question.waitFor({ state: "detached" });
  }
  expect(complaints).toEqual([]);
});

test("the window's title names a place as people do, and what is not there has a heading and one link of each name", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", []);
  await daemon.ask({ text: "repeat: hello", conversation: "c1", source: "api" });
  await daemon.json("PATCH", "/api/conversations/c1", { title: "All about invoices" });
  await daemon.json("PUT", "/api/wiki/pages/general/style", { content: "# House style\n\nPlain words.\n" });
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/c1" });
  const isTitled = (title: string) => until(title, async () => (await page.title()) === title, 10_000);
  await isTitled("All about invoices · Chat · IO");
  await page.goto(`${daemon.url}/wiki/general/style`);
  await isTitled("House style · Wiki · IO");
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await isTitled("Tasks · IO");
  await page.goto(`${daemon.url}/runs/r_none`);
  await page.getByRole("heading", { name: "This run is not there.", level: 1 }).waitFor({ timeout: 10_000 });
  expect(await page.getByRole("link", { name: "Runs" }).count()).toBe(1);
});

test("every one of hundreds of conversations is reached from the list, and by the palette", async () => {
  const daemon = await webDaemon();
  const many = Array.from({ length: 260 }, (_, at) => `talk-${String(at).padStart(3, "0")}`);
  for (const name of many) await daemon.json("PATCH", `/api/conversations/${name}`, { title: `About ${name}` });
  const { page } = await openWindow(await browser(), daemon);
  const links = page.getByRole("list", { name: "Conversations" }).getByRole("link");
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("button", { name: "Even more" }).click();
  await until("the first 250", async () => (await links.count()) >= 250);
  await page.getByRole("button", { name: "Even more" }).click();
  await until("all of them", async () => (await links.count()) >= many.length);
  expect(await page.getByRole("button", { name: "Even more" }).count()).toBe(0);

  const [oldest] = many;
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to or do" }).fill(oldest!);
  await page.getByRole("option", { name: `About ${oldest}` }).waitFor();
  expect(await page.getByRole("option", { name: `About ${oldest}` }).count()).toBe(1);
});

test("schedules are made, paused, done now and removed in the settings, and what is wrong with one is said in its form", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", []);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/settings#group-schedules" });
  const part = page.getByRole("region", { name: "Schedules" });
  await part.getByText("Nothing is scheduled yet.").waitFor({ timeout: 10_000 });
  await part.getByRole("button", { name: "Add a schedule" }).click();
  await part.getByLabel("When").fill("now and then");
  await part.getByLabel("What").fill("repeat: good morning");
  await part.getByRole("button", { name: "Add", exact: true }).click();
  await part.locator(".problem").getByText("now and then").waitFor();
  await part.getByLabel("When").fill("daily 09:00");
  await part.getByRole("button", { name: "Add", exact: true }).click();
  const row = part.getByRole("listitem", { name: "repeat: good morning" });
  await row.getByText("IO, in main · next").waitFor();
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("paused").waitFor();
  await row.getByText("History").click();
  await row.getByText("Not due yet.").waitFor();
  await row.getByRole("button", { name: "Run now" }).click();
  await row.getByRole("link", { name: "the answer" }).waitFor();
  await row.getByText("done", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Resume" }).click();
  await row.getByText("active").waitFor();
  const { items } = await daemon.json<{ items: Schedule[] }>("GET", "/api/schedules");
  expect(items).toMatchObject([{ when: "daily 09:00", text: "repeat: good morning", state: "active" }]);
  await row.getByRole("button", { name: "Remove" }).click();
  await row.getByRole("button", { name: "Yes" }).click();
  await part.getByText("Nothing is scheduled yet.").waitFor();
  // A browser complains of every refusal by itself.
  expect(complaints.filter((each) => !each.includes("400"))).toEqual([]);
});

test("on the narrowest phones the bar's words stand beside each other while something waits, and a long name widens no list", async () => {
  const daemon = await webDaemon(askBefore("rm *"));
  const name = `The squad that ${"looks after things and ".repeat(3)}rests`;
  // With two squads there is a choice of squad.
  await squadWith(daemon, project(GREETER), "greeter", []);
  await daemon.json("POST", "/api/squads", { name, projectPath: project(GREETER), slug: "long" });
  await daemon.json("POST", "/api/messages", { text: AFRESH, source: "web" });
  await asked(daemon);
  const { page } = await openWindow(await browser(), daemon, { width: 360, touch: true, path: "/tasks" });
  await page.getByRole("region", { name: "Needs you" }).waitFor();
  await page.getByRole("option", { name }).waitFor({ state: "attached" });
  const overflow = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth";
  expect(await page.evaluate(overflow)).toBe(0);
  for (const width of [320, 360, 375, 390]) {
    await page.setViewportSize({ width, height: 740 });
    const last = await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Tasks" }).boundingBox();
    const menu = await page.getByRole("button", { name: "Menu" }).boundingBox();
    expect(last!.x + last!.width, `at ${width} px`).toBeLessThanOrEqual(menu!.x + 1);
  }
});

test("a conversation that is opened from another view is whole, also while its last turn waits for a person", async () => {
  const daemon = await webDaemon(askBefore("rm *"));
  for (let at = 1; at <= 9; at += 1) await daemon.ask({ text: `repeat: saying ${at}`, conversation: "long", source: "web" });
  const { page } = await openWindow(await browser(), daemon, { path: "/tasks" });
  await page.getByRole("list", { name: "Conversations" }).getByRole("link", { name: "saying 1" }).click();
  const turns = page.getByRole("log").locator("article.turn");
  await until("every turn", async () => (await turns.count()) === 9, 10_000);
  await daemon.json("POST", "/api/messages", { text: AFRESH, conversation: "long", source: "web" });
  await asked(daemon);
  await page.reload();
  await until("every turn again", async () => (await turns.count()) === 10, 10_000);
});
