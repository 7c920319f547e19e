import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { asked, finishedMessage } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { cleanEnvironment, IO, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, systemOf } from "../support/orchestrator.ts";
import { smallDisk } from "../support/small-disk.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { webModel } from "../support/web/model.ts";
import { askBefore, GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("a question is one line above every other view, a whole card where it was asked and in the inbox, and gone everywhere once it is answered", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  const first = await openWindow(await browser(), daemon);
  const second = await openWindow(await browser(), daemon, { path: "/wiki" });
  const command = `echo ${"long ".repeat(60)}end`;
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: callText("shell", { command }) });
  await asked(daemon);
  const line = first.page.getByRole("region", { name: "Needs you" });
  for (const name of ["Squads", "Tasks", "Runs", "Wiki", "Skills", "Usage", "Settings"]) {
    await first.page.getByRole("link", { name, exact: true }).click();
    await first.page.getByRole("heading", { name, level: 1 }).waitFor();
    await line.getByText("1 waits for you: echo long").waitFor();
    expect((await line.boundingBox())?.height).toBeLessThanOrEqual(48);
  }
  expect(await first.page.title()).toMatch(/^\(1\) /);
  const card = first.page.getByRole("article", { name: "Approval" });
  expect(await card.count()).toBe(0);
  await first.page.getByRole("link", { name: "Chat", exact: true }).click();
  await first.page.getByRole("log").getByRole("article", { name: "Approval" }).getByText(command).waitFor();
  expect(await line.count()).toBe(0);

  await second.page.getByRole("region", { name: "Needs you" }).getByRole("link", { name: "Open" }).click();
  expect(new URL(second.page.url()).pathname).toBe("/inbox");
  const answered = second.page.getByRole("article", { name: "Approval" });
  await answered.getByText(command).waitFor();
  await answered.getByRole("button", { name: "Allow" }).click();
  await second.page.getByText("Nothing waits for you.").waitFor();
  await card.waitFor({ state: "detached" });
  await until("the title to be calm", async () => !/^\(/.test(await first.page.title()));
  expect((await finishedMessage(daemon, id)).status).toBe("done");
});

test("what a task asks stands in the task, which is not said to have run nothing; in another conversation it is only the line", async () => {
  const daemon = await webDaemon(askBefore("node --test*"));
  await squadWith(daemon, project(GREETER), "greeter", ["backend engineer"]);
  const { id, agent } = await delegate(daemon, "greeter", { task: "Add a farewell" });
  await asked(daemon);
  for (let at = 1; at <= 15; at += 1) await daemon.json("PATCH", `/api/conversations/talk-${at}`, { title: `Talk ${at}` });
  const { page } = await openWindow(await browser(), daemon, { path: "/chat/elsewhere" });
  await page.getByRole("region", { name: "Needs you" }).getByText("node --test").waitFor();
  expect(await page.getByRole("article", { name: "Approval" }).count()).toBe(0);
  await page.getByRole("button", { name: "4 more" }).waitFor();
  const atWork = page.getByRole("list", { name: "Running" }).getByRole("link", { name: "Add a farewell" });
  // What runs is in sight beside many conversations.
  const [row, engine] = await Promise.all([atWork.boundingBox(), page.locator(".engine").boundingBox()]);
  expect(row!.y + row!.height).toBeLessThanOrEqual(engine!.y);
  await atWork.click();
  await page.getByRole("heading", { name: "Add a farewell", level: 1 }).waitFor();
  await page.reload();
  const question = page.getByRole("article", { name: "Approval" });
  await question.getByText("node --test", { exact: true }).waitFor();
  await question.getByText(`${agent} of greeter wants to run a command`).waitFor({ timeout: 10_000 });
  // A waiting call is shown only in its question. Each finished call has its own row.
  const activity = page.getByRole("region", { name: "Activity" });
  await activity.getByText("write src/farewell.js").waitFor();
  expect(await activity.getByText("node --test").count()).toBe(0);
  // What it will run is not known yet.
  const evidence = page.getByRole("region", { name: "Evidence" });
  await evidence.waitFor({ state: "attached" });
  expect(await evidence.getByText("It ran no command").count()).toBe(0);
  await question.getByRole("button", { name: "Allow" }).click();
  expect((await ended(daemon, id)).status).toBe("done");
  await activity.getByText("node --test → exit code: 0").waitFor();
  expect(await activity.locator(".what", { hasText: /src\/farewell\.js|^node --test/ }).count()).toBe(2);
  await page.getByRole("list", { name: "Running" }).waitFor({ state: "detached" });
});

test("a denial's note reaches the model", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  const { page } = await openWindow(await browser(), daemon, { width: 390 });
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: callText("shell", { command: "echo hi" }) });
  await page.getByPlaceholder("a note, told to the model").fill("not on a Friday");
  await page.getByRole("button", { name: "Deny" }).click();
  expect((await finishedMessage(daemon, id)).reply).toContain("not on a Friday");
});

test("a budget that is used up waits there, and the work goes on once it is raised", async () => {
  const daemon = await webDaemon({ budgets: { turn: { calls: 1 } } });
  const { page } = await openWindow(await browser(), daemon);
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", {
    text: callText("wiki_write", { path: "a", content: "# A\n" }),
  });
  await page.getByRole("article", { name: "Approval" }).getByRole("button", { name: "Raise" }).click();
  expect((await finishedMessage(daemon, id)).status).toBe("done");
  await page.getByRole("article", { name: "Approval" }).waitFor({ state: "detached" });
});

test("an approval that is decided here is over in the terminal too, and one that is decided there is gone here", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  const { page } = await openWindow(await browser(), daemon, { path: "/inbox" });
  const terminal = await openTerminal(daemon.home, [process.execPath, IO], cleanEnvironment(daemon.home));
  await terminal.sees("connected", 30_000);
  const needs = page.getByRole("main");
  await daemon.json("POST", "/api/messages", { text: callText("shell", { command: "echo first" }) });
  await terminal.sees("echo first");
  await needs.getByRole("button", { name: "Allow" }).click();
  await needs.getByText("Nothing waits for you.").waitFor();
  await terminal.enter("/approvals");
  await terminal.sees("Nothing waits for you.");

  await daemon.json("POST", "/api/messages", { text: callText("shell", { command: "echo second" }) });
  await needs.getByText("echo second").waitFor();
  const [waiting] = await asked(daemon);
  await terminal.enter(`/deny ${waiting!.id}`);
  await needs.getByText("echo second").waitFor({ state: "detached" });
});

test("what a plan wants to know is told above every view and answered in the inbox; the plan can then be run", async () => {
  const model = await scriptedModel((request, index) => {
    const system = systemOf(request);
    if (system.startsWith("You analyse what")) return { say: "**Complexity**: small." };
    if (!system.startsWith("You clarify a request")) return webModel(request, index);
    const said = lastUserText(request);
    return { say: said.includes("In Welsh") ? "1. Greet in Welsh.\n\nREQUIREMENTS_CLEAR" : "1. In which **language**?" };
  });
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const first = await openWindow(await browser(), daemon, { path: "/runs" });
  const second = await openWindow(await browser(), daemon, { path: "/usage" });
  await first.page.getByRole("button", { name: "New run" }).click();
  await first.page.getByLabel("Project path").fill(project(GREETER));
  await first.page.getByLabel("Issue").fill("Greet politely");
  await first.page.getByRole("button", { name: "Plan it first" }).click();
  await second.page.getByRole("region", { name: "Needs you" }).getByRole("link", { name: "Open" }).click();
  const needs = second.page.getByRole("main");
  await needs.getByText("In which language?").waitFor();
  await needs.getByRole("textbox").fill("In Welsh");
  await needs.getByRole("button", { name: "Answer" }).click();
  await needs.getByText("Nothing waits for you.").waitFor();
  await first.page.getByRole("button", { name: "Run it" }).click();
  await first.page.getByRole("heading", { name: "Greet politely" }).waitFor();
  await first.page.getByText("The issue").click();
  await first.page.getByText("Greet in Welsh.").first().waitFor();
  expect([...first.complaints, ...second.complaints]).toEqual([]);
});

test("a run that failed waits in the inbox with its reason, and goes on from there", async () => {
  let isBroken = true;
  const model = await scriptedModel((request, index) => (isBroken ? { say: "" } : webModel(request, index)));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const { page } = await openWindow(await browser(), daemon, { path: "/wiki" });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const line = page.getByRole("region", { name: "Needs you" });
  await line.getByText("run failed: Greet everybody").waitFor();
  await line.getByRole("link", { name: "Open" }).click();
  const needs = page.getByRole("main");
  await needs.getByText("Run failed").waitFor();
  isBroken = false;
  await needs.getByRole("button", { name: "Resume it" }).click();
  await needs.getByText("Nothing waits for you.").waitFor();
  expect((await runEnded(daemon, id)).outcome).toBe("approved");
});

test("a full disk is told on the page and in the terminal for as long as it is full", async () => {
  const disk = await smallDisk(48);
  const home = join(disk.folder, "home");
  mkdirSync(home, { mode: 0o700 });
  const model = await scriptedModel(webModel);
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("list", { name: "Conversations" }).waitFor();
  const terminal = await openTerminal(temporaryHome(), [process.execPath, IO], cleanEnvironment(home));
  await terminal.sees("connected", 30_000);
  const banner = page.getByRole("status").filter({ hasText: `The disk that holds ${home} is full: work waits` });
  expect(await banner.count()).toBe(0);
  await disk.fill();
  await banner.waitFor();
  await terminal.sees("is full: work waits");
  await terminal.sees(/· disk full ·/);
  const late = await openWindow(await browser(), daemon, { path: "/wiki" });
  await late.page.getByText("Free some space and it goes on by itself.").waitFor();
  disk.free();
  await banner.waitFor({ state: "detached" });
  await terminal.sees("There is room on the disk again");
  await until("the status line to be calm", async () => !(await terminal.screen()).includes("· disk full ·"));
});
