import { expect, test } from "vitest";
import { asked, finishedMessage } from "../support/approvals.ts";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { callText } from "../support/orchestrator.ts";
import { askBefore, webDaemon } from "../support/web/seed.ts";

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
