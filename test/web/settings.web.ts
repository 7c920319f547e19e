import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();
const KEY = "sk-very-secret-and-long";

test("models, headers, servers, pools and commands are set in fields: no JSON is typed, each error stands at its field, and no secret is shown", async () => {
  const server = { command: "stock", args: ["--plain"], env: { STOCK_TOKEN: KEY }, disabled: true };
  const daemon = await webDaemon({ mcpServers: { stock: server } });
  const kept = () => JSON.parse(readFileSync(join(daemon.home, "config.json"), "utf8"));
  const written = { baseUrl: "http://127.0.0.1:9/v1", headers: { "X-Team": KEY }, proxy: `http://me:${KEY}@127.0.0.1:9` };
  await daemon.json("PATCH", "/api/config", { provider: written });
  const { page, complaints } = await openWindow(await browser(), daemon, { path: "/settings" });
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const save = async () => {
    await button("Save").click();
    await page.getByText("Saved.").waitFor();
    await button("Dismiss").click();
  };
  const wrong = () => page.locator('#config-form [aria-invalid="true"]').evaluateAll((all) => all.map(({ id }) => id));
  await field("provider.baseUrl").waitFor();
  const form = page.getByRole("region", { name: "Configuration" });
  expect(
    await form
      .locator("fieldset textarea")
      .evaluateAll((all) => all.filter((each) => /[{[]/.test((each as HTMLTextAreaElement).value)).length),
  ).toBe(0);

  // An optional part has no fields until somebody adds it.
  expect(await field("cluster.pools").count()).toBe(0);
  await button("Set up cluster").click();
  expect(await field("cluster.enabled").isChecked()).toBe(true);
  await field("cluster.leaseMs").fill("5");
  await button("Add a pool to cluster.pools").click();
  await field("Value of pool 1 of cluster.pools").fill("Fast One");
  await button("Add a model to provider.models").click();
  await field("provider.models.0.id").fill("small-one");
  await field("provider.models.0.contextWindow").fill("much");
  await field("provider.models.0.vision").selectOption("no");
  await field("transcribeCommand").fill("whisper\n{file}");
  await page.locator("summary", { hasText: "stock" }).click();
  await field("mcpServers.stock.url").fill("http://127.0.0.1:9/mcp");
  await button("Save").click();
  await until(`each of them to be refused: ${await wrong()}`, async () => (await wrong()).length >= 4);
  const at = "key-provider-models-0-contextWindow";
  // A missing name is reported at its value, in the same row.
  expect(await wrong()).toEqual(expect.arrayContaining([at, "key-cluster-leaseMs"]));
  expect(await field("provider.models.0.id").getAttribute("aria-invalid")).toBe("false");
  expect(await field("mcpServers.stock.args").getAttribute("aria-invalid")).toBe("false");
  expect(await page.locator(`[id="${at}-wrong"]`).textContent()).toMatch(
    /^provider\.models\.0\.contextWindow: "much" is not allowed/,
  );
  expect(await field("Value of pool 1 of cluster.pools").getAttribute("aria-invalid")).toBe("true");
  await field("mcpServers").getByText('must have "command" or "url", not both').waitFor();
  expect(await page.content()).not.toContain(KEY);
  expect(await page.evaluate("document.activeElement.getAttribute('aria-invalid')")).toBe("true");

  await field("cluster.leaseMs").fill("");
  await field("Name of pool 1 of cluster.pools").fill("/srv/shop");
  await field("Value of pool 1 of cluster.pools").fill("fast");
  await field("cluster.enabled").uncheck();
  await field("provider.models.0.contextWindow").fill("32000");
  await field("mcpServers.stock.url").fill("");
  await field("mcpServers.stock.args").fill("--plain\n--two words");
  await save();
  expect(kept().cluster).toEqual({ enabled: false, pools: { "/srv/shop": "fast" } });
  expect(kept().provider).toMatchObject({ ...written, models: [{ id: "small-one", contextWindow: 32_000, vision: false }] });
  expect(kept().mcpServers.stock).toMatchObject({ ...server, args: ["--plain", "--two words"] });
  expect(kept().transcribeCommand).toEqual(["whisper", "{file}"]);

  await field("calls for each run").fill("-1");
  await button("Add a price").click();
  await field("Model of price 1").fill("small-one");
  await field("Price 1, input").fill("cheap");
  await field("Price 1, output").fill("1");
  await button("Save").click();
  await until("limits and prices to be refused", async () => (await wrong()).length > 0);
  const named = page.locator('#config-form [aria-invalid="true"]');
  expect(await named.evaluateAll((all) => all.map((each) => each.getAttribute("aria-label")))).toEqual([
    ...["calls for each run", "Price 1, input"],
  ]);
  await field("calls for each run").fill("");
  await button("Take out price 1").click();
  await save();

  // A secret can be replaced or removed. Emptying the field again keeps it.
  await field("provider.proxy").fill("x");
  await field("provider.proxy").fill("");
  await button("Replace provider.headers").click();
  await field("Name of header 1 of provider.headers").fill("X-Other");
  await field("Value of header 1 of provider.headers").fill("anew");
  expect(await field("Value of header 1 of provider.headers").getAttribute("type")).toBe("password");
  await button("Take out mcpServers.stock.env").click();
  await field("transcribeCommand").fill("whisper {file}");
  await button("Add an MCP server to mcpServers").click();
  await field("mcpServers 2: name").fill("stock");
  await button("Save").click();
  await page.getByText("There is another MCP server of this name.").waitFor();
  expect(await wrong()).toEqual(["key-mcpServers-1-name"]);
  await field("mcpServers 2: name").fill("own");
  await field("mcpServers.own.command").fill("own");

  // Unsaved input is still there after leaving the view, and its secrets are kept only in the open page.
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  expect(await page.evaluate("JSON.stringify([{ ...sessionStorage }, { ...localStorage }])")).not.toContain("anew");
  await page.goBack();
  await page.locator("summary", { hasText: "own" }).waitFor();
  await save();
  expect(kept().provider).toMatchObject({ proxy: written.proxy, headers: { "X-Other": "anew" } });
  expect(kept().mcpServers.stock.env ?? {}).toEqual({});
  expect(kept().mcpServers.own).toEqual({ command: "own" });
  expect(kept().transcribeCommand).toBe("whisper {file}");
  await page.locator("summary", { hasText: "small-one" }).click();
  await button("Take out model 1 of provider.models").click();
  await save();
  expect(kept().provider.models ?? []).toEqual([]);
  expect(complaints.filter((words) => !words.includes("400"))).toEqual([]);
});
