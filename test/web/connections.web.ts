import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { temporaryFolder } from "../support/home.ts";
import { startGuarded } from "../support/mcp/guarded.ts";
import { odd, serverProcesses, serversOf } from "../support/mcp/servers.ts";
import { until } from "../support/until.ts";
import { webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();
/** On a busy machine, a server's first start may take long. */
const SLOW = { timeout: 60_000 };

test("the settings show MCP servers, clients and tokens; a person adds, trusts, logs in, switches off, removes and revokes", async () => {
  const guarded = await startGuarded(onTestFinished);
  const daemon = await webDaemon({ mcpServers: { guarded: { type: "http", url: `${guarded.url}/mcp` } } });
  const config = () => JSON.parse(readFileSync(join(daemon.home, "config.json"), "utf8"));
  const project = temporaryFolder();
  const calls = join(temporaryFolder(), "calls.txt");
  writeFileSync(join(project, ".mcp.json"), JSON.stringify({ mcpServers: { stock: odd("plain", calls) } }));
  await daemon.json("PATCH", "/api/conversations/shop", { folder: project });

  const { page, context, complaints } = await openWindow(await browser(), daemon, { path: "/settings" });
  const connections = page.getByRole("region", { name: "Connections" });
  const item = (name: string) => connections.getByRole("listitem", { name, exact: true });
  const press = (name: string) => connections.getByRole("button", { name, exact: true }).click();
  const dialog = page.getByRole("alertdialog");
  const stands = (name: string, state: string) => item(name).getByText(state, { exact: true }).waitFor(SLOW);

  // A server from a project's file is started only after a person has seen what it runs.
  await stands("stock", "untrusted");
  await press("Switch on stock");
  await dialog.getByText(/odd-server\.mjs/).waitFor();
  await dialog.getByRole("button", { name: "Never mind" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(serverProcesses(daemon.home)).toEqual([]);
  await press("Switch on stock");
  await dialog.getByRole("button", { name: "Switch on" }).click();
  await stands("stock", "ready");
  expect((await serversOf(daemon, project)).find(({ name }) => name === "stock")).toMatchObject({ state: "ready", project });
  await press("Look at stock");
  await dialog.getByText("mcp__stock__write").waitFor();
  await dialog.getByRole("button", { name: "Never mind" }).click();
  await press("Switch off stock");
  await stands("stock", "untrusted");
  await until("its process to end", () => serverProcesses(daemon.home).length === 0);

  await stands("guarded", "needs-login");
  await press("Log in to guarded");
  const opened = context.waitForEvent("page");
  await item("guarded")
    .getByRole("link", { name: /^Go on at 127/ })
    .click();
  await (await opened).getByText("You are logged in.").waitFor(SLOW);
  await stands("guarded", "ready");

  await press("Add a server");
  const added = connections.getByRole("form", { name: "New server" });
  const { command, args } = odd("plain", calls);
  await added.getByLabel("Server name").fill("guarded");
  await added.getByLabel("Command").fill(command);
  await added.getByLabel("Arguments").fill(args.join("\n"));
  await added.getByLabel("Variables").fill("SERVER_TOKEN=hush-hush-hush");
  await added.getByRole("button", { name: "Add it" }).click();
  await added.getByRole("alert").getByText('There is a server called "guarded" already.').waitFor();
  await added.getByLabel("Server name").fill("own");
  await added.getByRole("button", { name: "Add it" }).click();
  await stands("own", "ready");
  expect(config().mcpServers.own).toEqual({ command, args, env: { SERVER_TOKEN: "hush-hush-hush" } });
  await press("Switch off own");
  await stands("own", "off");
  expect(config().mcpServers.own.disabled).toBe(true);
  await press("Remove own");
  await press("Yes");
  await item("own").waitFor({ state: "detached" });
  expect(Object.keys(config().mcpServers)).toEqual(["guarded"]);

  await connections.getByLabel("Connect", { exact: true }).selectOption({ label: "Zed" });
  const pasted = connections.getByRole("group", { name: "For Zed" });
  expect(JSON.parse((await pasted.locator("code").textContent()) ?? "").agent_servers.IO.args.at(-1)).toBe("acp");
  await connections.getByLabel("Program", { exact: true }).fill("webui");
  await press("Make a token");
  const token = (await connections.getByRole("group", { name: "New token" }).locator("code").textContent()) ?? "";
  const asks = async (path: string) =>
    (await fetch(`${daemon.url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect([await asks("/v1/models"), await asks("/api/status")]).toEqual([200, 403]);
  await press("Revoke webui");
  await press("Yes");
  await connections.getByText("No token was made.").waitFor();
  expect(await asks("/v1/models")).toBe(401);
  expect(await page.content()).not.toContain("hush-hush");
  expect(complaints.filter((text) => !/409/.test(text))).toEqual([]);
});
