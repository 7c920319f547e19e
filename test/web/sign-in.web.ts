import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { until } from "../support/until.ts";

const browser = fileBrowser();
const LINKS = ["Chat", "Squads", "Tasks", "Runs", "Wiki", "Skills", "Usage", "Settings"];

test("a wrong token is refused with one alert, the right one opens the chat main with eight links", async () => {
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
  await startDaemonProcess(home, { IO_ENGINE: "rehearsal", IO_PORT: new URL(daemon.url).port });
  await page.getByText("reconnecting").waitFor({ state: "detached" });
  await page.getByLabel("Message").fill("hello");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("log").getByText("tokens in").waitFor();
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
