import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const browser = fileBrowser();
const LINKS = ["Inbox", "Chat", "Squads", "Tasks", "Runs", "Wiki", "Skills", "Usage", "Settings"];

test("a wrong token is refused with one alert, the right one opens the chat main with its nine links", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon, { signedIn: false });
  await page.getByText("io web").first().waitFor();
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("alert").count()).toBe(1);

  await page.getByLabel("Token").fill(daemon.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("log").waitFor();
  expect(new URL(page.url()).pathname).toBe("/chat/main");
  expect(await page.getByRole("navigation").count()).toBe(1);
  const names = await page.getByRole("navigation").getByRole("link").allTextContents();
  expect(names).toEqual(LINKS);
  for (const name of LINKS) expect(await page.getByRole("link", { name }).count()).toBe(1);
});

test("the address of io web signs in once, and not a second time", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { url } = JSON.parse((await runIo(["web", "--json"], daemon.home)).stdout) as { url: string };
  const path = url.slice(daemon.url.length);
  const first = await openWindow(await browser(), daemon, { signedIn: false, path });
  await first.page.getByRole("log").waitFor();
  expect(first.page.url()).not.toContain("ticket");
  expect(first.complaints).toEqual([]);
  const second = await openWindow(await browser(), daemon, { signedIn: false, path });
  await second.page.getByRole("alert").waitFor();
  expect(await second.page.getByRole("alert").textContent()).toContain("io web");
});

test("io web starts the browser with a file that only the user can read, and the ticket stands in no argument", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const told = join(daemon.home, "arguments");
  const opener = join(daemon.home, "opener");
  writeFileSync(opener, `#!/bin/sh\necho "$@" > '${told}.part'; mv '${told}.part' '${told}'\n`, { mode: 0o755 });
  const terminal = await openTerminal(daemon.home, [process.execPath, IO, "web"], {
    ...cleanEnvironment(daemon.home),
    BROWSER: opener,
  });
  await until("the browser", () => existsSync(told));
  const ticket = /ticket=([\w-]+)/.exec(await terminal.scrollback())?.[1] ?? "none was printed";
  const file = readFileSync(told, "utf8").trim();
  expect(file).toMatch(/^\/.*\.html$/);
  expect(file).not.toContain(ticket);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const { page } = await openWindow(await browser(), daemon, { signedIn: false });
  await page.goto(`file://${file}`);
  await page.getByRole("log").waitFor();
  expect(page.url()).not.toContain("ticket");
});

test("another port of this host is sent the cookie and can do nothing with it; the page stays signed in over reloads", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page, context } = await openWindow(await browser(), daemon, { signedIn: false });
  await page.getByLabel("Token").fill(daemon.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("log").waitFor();
  let stolen = "";
  const thief = createServer((request, response) => {
    stolen = request.headers.cookie ?? stolen;
    response.setHeader("content-type", "text/html").end("<title>thief</title>");
  });
  await new Promise<void>((ready) => thief.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void thief.close());
  const elsewhere = await context.newPage();
  const { port } = thief.address() as AddressInfo;
  await elsewhere.goto(`http://127.0.0.1:${port}/`);
  expect(stolen).toContain("io_session_");
  expect(await elsewhere.evaluate("localStorage.length")).toBe(0);
  for (const path of ["/api/messages", "/api/events", "/api/config"])
    expect((await fetch(daemon.url + path, { headers: { cookie: stolen, "sec-fetch-site": "same-origin" } })).status).toBe(401);
  const second = await context.newPage();
  await second.goto(daemon.url);
  await second.getByLabel("Message").fill("hello");
  await second.getByRole("button", { name: "Send" }).click();
  await second.getByRole("log").getByText("tokens in").waitFor();
  await page.reload();
  await page.getByRole("log").getByText("tokens in").waitFor();
});

test("io web without a daemon says so and starts none", async () => {
  const { code } = await runIo(["web"], temporaryHome());
  expect(code).toBe(4);
});

test("the page comes compressed under a strict policy, its assets for ever, and nothing that is not there", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const page = await fetch(`${daemon.url}/runs/r_1`, { headers: { "accept-encoding": "br, gzip" } });
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(page.headers.get("content-encoding")).toBe("br");
  const script = /src="(\/assets\/[^"]+)"/.exec(await page.text())?.[1];
  const asset = await fetch(daemon.url + script, { headers: { "accept-encoding": "gzip" } });
  expect(asset.headers.get("content-encoding")).toBe("gzip");
  expect(asset.headers.get("cache-control")).toContain("immutable");
  expect((await fetch(`${daemon.url}/assets/none.js`)).status).toBe(404);
  expect((await fetch(`${daemon.url}/api/none`, { headers: { authorization: `Bearer ${daemon.token}` } })).status).toBe(404);
});

test("a lost daemon is shown as reconnecting; when it is back, so is the page, without another sign-in", async () => {
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("log").waitFor();
  await daemon.kill("SIGKILL");
  await page.getByText("reconnecting").waitFor();
  // Nothing is pushed out of sight by the line that says so.
  expect(await page.evaluate("document.documentElement.scrollHeight - innerHeight")).toBe(0);
  await startDaemonProcess(home, { IO_ENGINE: "rehearsal", IO_PORT: new URL(daemon.url).port });
  await page.getByText("reconnecting").waitFor({ state: "detached" });
  await page.getByLabel("Message").fill("hello");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("log").getByText("tokens in").waitFor();
});

test("without the daemon another view says so instead of the browser; a session that has ended is renewed in place, and nothing typed is lost", async () => {
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("list", { name: "Conversations" }).waitFor();
  await daemon.kill("SIGKILL");
  await page.getByText("reconnecting").waitFor();
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByText("The daemon does not answer.").waitFor();
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByLabel("Message").fill("hello, half typed");

  const token = "another-token-for-the-same-home";
  await startDaemonProcess(home, { IO_ENGINE: "rehearsal", IO_PORT: new URL(daemon.url).port, IO_TOKEN: token });
  await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Your session has ended" }).waitFor({ state: "detached" });
  await expect.poll(() => page.getByLabel("Message").inputValue(), { timeout: 15_000 }).toBe("hello, half typed");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("log").getByText("tokens in").waitFor();
});

test("a session that ended is renewed where one is, whether a save, another view or a lost daemon tells of it, and over a question too", async () => {
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  const { page, context } = await openWindow(await browser(), daemon, { path: "/wiki?new" });
  const ended = page.getByRole("heading", { name: "Your session has ended" });
  const renew = async (token: string) => {
    await ended.waitFor();
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await ended.waitFor({ state: "detached" });
  };
  await page.getByLabel("Path", { exact: true }).fill("general/tea");
  await page.getByLabel("Content", { exact: true }).fill("Earl Grey.");
  await context.clearCookies();
  await page.getByRole("button", { name: "Save" }).click();
  await renew(daemon.token);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("main").getByText("Earl Grey.").waitFor();

  await context.clearCookies();
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await renew(daemon.token);
  await page.getByText("A task is work that an agent").waitFor();

  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByRole("alertdialog").waitFor();
  await daemon.kill("SIGKILL");
  const token = "another-token-for-the-same-home";
  await startDaemonProcess(home, { IO_ENGINE: "rehearsal", IO_PORT: new URL(daemon.url).port, IO_TOKEN: token });
  await renew(token);
  expect(await page.getByRole("alertdialog").count()).toBe(0);
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Stop everything" }).click();
  await page.getByText("Ended: 0 messages").waitFor();
});

test("a file of the page that does not come is said, once it was tried anew, instead of loading the page for ever", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon);
  let asked = 0;
  await page.route("**/assets/UsageView-*.js", (route) => {
    asked += 1;
    return route.fulfill({ status: 404, body: "" });
  });
  await page.goto(`${daemon.url}/usage`);
  await page.getByRole("alert").getByText("A part of the page could not be loaded.").waitFor();
  expect(asked).toBe(2);
  await page.unroute("**/assets/UsageView-*.js");
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
});

test("on a phone the navigation stays, and what does not fit is behind Menu", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon, { width: 390 });
  await page.getByRole("navigation").waitFor();
  expect(await page.getByRole("link", { name: "Wiki" }).count()).toBe(0);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("link", { name: "Wiki" }).click();
  await until("the wiki", () => new URL(page.url()).pathname === "/wiki");
  await page.getByRole("link", { name: "Settings" }).waitFor({ state: "hidden" });
});
