import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";
import { GREETER, webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();

/** Goes to another view and comes back. */
async function leaveAndReturn(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
  await page.goBack();
}
const holds = (field: Locator, words: string) =>
  until(`"${words}" to be there again`, async () => (await field.inputValue()) === words);

test("words typed into any form are there again after one left, and gone once they are sent", async () => {
  const daemon = await webDaemon();
  await squadWith(daemon, project(GREETER), "greeter", ["backend engineer"]);
  const task = await ended(daemon, (await delegate(daemon, "greeter", { task: "Add a farewell to the greeter" })).id);
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/squads/greeter" });
  const forms: [path: string, open: string | undefined, fields: Record<string, string>][] = [
    ["/squads/greeter", undefined, { Task: "Say goodbye", "A decision": "English only" }],
    ["/squads/greeter", "Add agent", { Role: "tester", Charter: "Tests what others build" }],
    ["/squads", "New squad", { "Project path": "/somewhere", Name: "others" }],
    ["/runs", "New run", { "Project path": "/elsewhere", Issue: "The total is off by a cent" }],
    ["/wiki", "New page", { Path: "general/tea", Content: "# Tea" }],
    ["/skills", undefined, { "Git URL": "https://example.org/skills" }],
    [`/tasks/${task.id}`, "Comment on line 1", { Comment: "Say it in French" }],
  ];
  for (const [path, button, fields] of forms) {
    await page.goto(daemon.url + path);
    const open = async () => {
      if (button !== undefined) await page.getByRole("button", { name: button, exact: true }).first().click();
    };
    await open();
    for (const [label, words] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(words);
    await leaveAndReturn(page);
    await open();
    for (const [label, words] of Object.entries(fields)) await holds(page.getByLabel(label, { exact: true }), words);
  }
  await page.getByRole("button", { name: "Add comment" }).click();
  await leaveAndReturn(page);
  await page.getByText("Say it in French").waitFor();
  await page.goto(`${daemon.url}/squads/greeter`);
  await page.getByRole("button", { name: "Log it" }).click();
  await page.getByText("English only").waitFor();
  await page.reload();
  await holds(page.getByLabel("A decision", { exact: true }), "");
  await holds(page.getByLabel("Task", { exact: true }), "Say goodbye");
  // A folder that does not exist cannot be analysed.
  expect(complaints.filter((words) => !words.includes("400"))).toEqual([]);
});

test("settings of several parts have a field for each: what is refused is said there, what is secret stays so, and prices have a currency", async () => {
  const key = "sk-very-secret-and-long";
  const daemon = await webDaemon();
  const kept = () => JSON.parse(readFileSync(join(daemon.home, "config.json"), "utf8"));
  await daemon.ask({ text: "What is in this project?", source: "web" });
  await daemon.json("PATCH", "/api/config", {
    provider: { baseUrl: "http://127.0.0.1:9/v1", apiKey: key, model: "scripted" },
  });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/settings" });
  const part = (name: string) => page.getByLabel(name, { exact: true });
  const save = page.getByRole("button", { name: "Save" });
  await part("provider").waitFor();
  expect(await part("provider.apiKey").inputValue()).toBe("");
  await part("provider.baseUrl").fill("nowhere");
  await save.click();
  await until("the part to be refused", async () => (await part("provider.baseUrl").getAttribute("aria-invalid")) === "true");
  expect(await part("provider.model").getAttribute("aria-invalid")).toBe("false");
  const says = (await part("provider.baseUrl").getAttribute("aria-describedby")) ?? "";
  expect(
    await page
      .locator(
        says
          .split(" ")
          .map((id) => `[id="${id}"]`)
          .join(", "),
      )
      .allTextContents(),
  ).toContainEqual(expect.stringContaining("provider.baseUrl"));
  await part("provider.baseUrl").fill("http://127.0.0.1:10/v1");
  await part("provider.wireApi").selectOption("responses");
  await part("modelTiers.low").fill("");
  await part("modelTiers.low").pressSequentially("small-one\nsmall-two");
  await part("currency").fill("EUR");
  await page.getByRole("button", { name: "Add a price" }).click();
  await part("Model of price 1").fill("scripted");
  await part("Price 1, input").fill("3000");
  await part("Price 1, output").pressSequentially("15000.50");
  await part("calls for each run").fill("40");
  await save.click();
  await page.getByText("Saved.").waitFor();
  expect(kept().provider).toMatchObject({ baseUrl: "http://127.0.0.1:10/v1", apiKey: key, wireApi: "responses" });
  expect(kept().modelTiers.low).toEqual(["small-one", "small-two"]);
  expect(kept().prices).toEqual({ scripted: { input: 3000, output: 15000.5 } });
  expect(kept().budgets).toEqual({ run: { calls: 40 } });
  expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain(key);
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page
    .getByText(/^€\d+\.\d\d$/)
    .first()
    .waitFor();
  expect(complaints.filter((words) => !words.includes("400"))).toEqual([]);
});
