import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Finding } from "../../src/protocol/doctor.ts";
import { cleanEnvironment, IO, providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { startGuarded } from "../support/mcp/guarded.ts";
import { isIn } from "../support/mcp/servers.ts";
import { scriptedModel } from "../support/model.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let model: ModelServer;
let guarded: Awaited<ReturnType<typeof startGuarded>>;

beforeAll(async () => {
  guarded = await startGuarded(atTheEnd);
  model = await scriptedModel(obedient, undefined, atTheEnd);
  const mcpServers = { guarded: { type: "http", url: `${guarded.url}/mcp` } };
  daemon = await startDaemonProcess(
    temporaryHome({ mode: "full", mcpServers }, atTheEnd),
    providerEnvironment(model.url),
    atTheEnd,
  );
});

/** The doctor's finding about the server. */
const finding = async () =>
  (await daemon.json<{ items: Finding[] }>("GET", "/api/doctor")).items.find(
    ({ check, state }) => check === "mcp" && state !== "ok",
  );
const whoami = async () => (await modelCalls(daemon, model, "mcp__guarded__whoami", {})).read;

test("a server that sends people anywhere but to a web page begins no login, and no browser is opened", async () => {
  await isIn(daemon, "guarded", "needs-login");
  for (const address of ["file:///etc/passwd", "--version:x", "vscode://open/this", "http://me:pass@127.0.0.1/authorize"]) {
    guarded.sendTo(address);
    const begun = await runIo(["mcp", "login", "guarded", "--no-browser"], daemon.home);
    // The server is at fault, not the person who typed the command.
    expect(begun.code, address).toBe(1);
    expect(begun.stdout, address).toBe("");
    expect(begun.stderr).toMatch(/The login (?:was not begun: .* no web page|could not be begun)/);
  }
  guarded.sendTo(undefined);
});

test("at a terminal a person is told which host the server names, and nothing is opened before they say so", async () => {
  await isIn(daemon, "guarded", "needs-login");
  const told = join(daemon.home, "opened");
  const opener = join(daemon.home, "opener");
  writeFileSync(opener, `#!/bin/sh\ntouch '${told}'\n`, { mode: 0o755 });
  for (const answer of ["n", "y"]) {
    const command = [process.execPath, IO, "mcp", "login", "guarded"];
    const env = { ...cleanEnvironment(daemon.home), BROWSER: opener };
    const terminal = await openTerminal(daemon.home, command, env, { name: answer });
    const shows = (text: string) => until(text, async () => (await terminal.screen()).includes(text));
    await shows(`It leads to ${new URL(guarded.url).host}.`);
    await shows("Open it in the browser?");
    expect(existsSync(told)).toBe(false);
    await terminal.enter(answer);
    await shows("this waits for you");
    if (answer === "y") await until("the browser", () => existsSync(told));
    else expect(existsSync(told)).toBe(false);
  }
});

test("a login goes through a browser once, its tokens are told to nobody, are refreshed, and are forgotten by a logout", async () => {
  expect((await isIn(daemon, "guarded", "needs-login")).detail).toBe("it wants a login: io mcp login guarded");
  expect(await finding()).toMatchObject({
    found: "guarded wants a login, and nobody has logged in yet",
    remedy: "Run: io mcp login guarded",
  });
  const begun = await runIo(["mcp", "login", "guarded", "--no-browser", "--json"], daemon.home);
  const { url } = JSON.parse(begun.stdout) as { url: string };
  expect(new URL(url).searchParams.get("code_challenge_method")).toBe("S256");
  const back = (await fetch(url, { redirect: "manual" })).headers.get("location") ?? "";
  expect(back).toContain(`${daemon.url}/oauth/callback?`);
  expect((await fetch(back.replace(/state=[^&]*/, "state=guessed"))).status).toBe(400);
  const page = await fetch(back);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain("You are logged in");
  expect((await fetch(back)).status).toBe(400);
  await isIn(daemon, "guarded", "ready");
  expect(unmarked(await whoami())).toBe("somebody who logged in");

  guarded.expire();
  expect(unmarked(await whoami())).toBe("somebody who logged in");
  expect(guarded.seen).toMatchObject({ registrations: 1, refreshes: 1 });

  const told = await Promise.all(
    ["/api/mcp", "/api/mcp/guarded", "/api/config"].map(async (path) => (await daemon.fetch(path)).text()),
  );
  const all =
    told.join() + daemon.output() + readFileSync(join(daemon.home, "logs", "io.log"), "utf8") + JSON.stringify(model.requests);
  expect(guarded.seen.given.filter((secret) => all.includes(secret))).toEqual([]);

  await daemon.kill("SIGTERM");
  daemon = await startDaemonProcess(daemon.home, providerEnvironment(model.url), atTheEnd);
  await isIn(daemon, "guarded", "ready");
  guarded.expire();
  guarded.revoke();
  expect(await whoami()).toContain("its last login has expired, and it wants a login: io mcp login guarded");
  expect(await finding()).toMatchObject({ found: "the login of guarded has expired", remedy: "Run: io mcp login guarded" });
  expect((await isIn(daemon, "guarded", "needs-login")).tools).toEqual(["mcp__guarded__whoami"]);
  // After another unfinished login attempt, or a restart, the old login still counts as expired. A logout resets that.
  await runIo(["mcp", "login", "guarded", "--no-browser"], daemon.home);
  await daemon.kill("SIGTERM");
  daemon = await startDaemonProcess(daemon.home, providerEnvironment(model.url), atTheEnd);
  await isIn(daemon, "guarded", "needs-login");
  expect((await finding())?.found).toBe("the login of guarded has expired");
  expect((await runIo(["mcp", "logout", "guarded"], daemon.home)).stdout).toContain("needs-login");
  expect((await finding())?.found).toBe("guarded wants a login, and nobody has logged in yet");
});
