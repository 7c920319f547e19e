import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { asked, finishedMessage } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { cleanEnvironment, IO, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, systemOf } from "../support/orchestrator.ts";
import { project } from "../support/squads.ts";
import { openTerminal } from "../support/terminal.ts";
import { webModel } from "../support/web/model.ts";
import { askBefore, GREETER, runEnded, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

test("a question stands above every view with its whole command, and is gone everywhere once it is answered in one window", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  const first = await openWindow(await browser(), daemon);
  const second = await openWindow(await browser(), daemon, { path: "/wiki" });
  const command = `echo ${"long ".repeat(60)}end`;
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: callText("shell", { command }) });
  await asked(daemon);
  for (const name of ["Squads", "Tasks", "Runs", "Wiki", "Skills", "Usage", "Settings", "Chat"]) {
    await first.page.getByRole("link", { name }).click();
    await first.page.getByRole("region", { name: "Needs you" }).getByText(command).waitFor();
  }
  await second.page.getByRole("region", { name: "Needs you" }).getByRole("button", { name: "Allow" }).click();
  for (const { page } of [first, second])
    await page.getByRole("region", { name: "Needs you" }).getByText(command).waitFor({ state: "detached" });
  expect((await finishedMessage(daemon, id)).status).toBe("done");
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
  await page.getByRole("button", { name: "Raise" }).click();
  expect((await finishedMessage(daemon, id)).status).toBe("done");
  await page.getByText("Nothing waits for you.").waitFor();
});

test("an approval that is decided here is over in the terminal too, and one that is decided there is gone here", async () => {
  const daemon = await webDaemon(askBefore("echo *"));
  const { page } = await openWindow(await browser(), daemon);
  const terminal = await openTerminal(daemon.home, [process.execPath, IO], cleanEnvironment(daemon.home));
  await terminal.sees("connected", 30_000);
  const needs = page.getByRole("region", { name: "Needs you" });
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

test("what a plan wants to know is asked above every view and answered there; the plan can then be run", async () => {
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
  const needs = second.page.getByRole("region", { name: "Needs you" });
  await needs.getByText("In which language?").waitFor();
  await needs.getByRole("textbox").fill("In Welsh");
  await needs.getByRole("button", { name: "Answer" }).click();
  await first.page.getByRole("region", { name: "Needs you" }).getByText("Nothing waits for you.").waitFor();
  await first.page.getByRole("button", { name: "Run it" }).click();
  await first.page.getByRole("heading", { name: "Greet politely" }).waitFor();
  await first.page.getByText("The issue").click();
  await first.page.getByText("Greet in Welsh.").first().waitFor();
  expect([...first.complaints, ...second.complaints]).toEqual([]);
});

test("a run that failed waits there with its reason, and goes on from there", async () => {
  let isBroken = true;
  const model = await scriptedModel((request, index) => (isBroken ? { say: "" } : webModel(request, index)));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const { page } = await openWindow(await browser(), daemon, { path: "/wiki" });
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(GREETER), issue: "Greet everybody" });
  const needs = page.getByRole("region", { name: "Needs you" });
  await needs.getByText("Run failed").waitFor();
  isBroken = false;
  await needs.getByRole("button", { name: "Resume it" }).click();
  await needs.getByText("Nothing waits for you.").waitFor();
  expect((await runEnded(daemon, id)).outcome).toBe("approved");
});
