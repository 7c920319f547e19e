import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Choice, chooseEngine } from "../../../src/engine/models/ladder.ts";
import type { SessionSpec } from "../../../src/engine/port.ts";
import { pidFileOf } from "../../../src/engine/runtime/leftovers.ts";
import { Config } from "../../../src/home/config.ts";
import { startDaemonProcess } from "../../support/daemon.ts";
import { startEngine, turn } from "../../support/engine.ts";
import { type Answer, type GitHub, standInForGitHub } from "../../support/github.ts";
import { type AtTheEnd, temporaryFolder, temporaryHome } from "../../support/home.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

const TOKEN = "gho_0123456789abcdefghijklmnopqrstuvwxyz";
const NO_OLLAMA = { ollamaUrl: "http://127.0.0.1:9" };
const runtime = process.env.COPILOT_CLI_PATH ? { COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH } : {};
const spec = (id: string, folder: string): SessionSpec => ({
  id,
  systemMessage: () => "You are a test.",
  tools: [],
  workingDirectory: folder,
});
const said = (...lines: string[]) => lines.join("\n");

/** Writes the file that `copilot login` leaves in a home. */
function logIn(home: string, config: object): void {
  mkdirSync(join(home, ".copilot"));
  const head = said("// User settings belong in settings.json.", "// This file is managed automatically.", "");
  writeFileSync(join(home, ".copilot", "config.json"), head + JSON.stringify(config, null, 2), { mode: 0o600 });
}
const mona = { host: "https://github.com", login: "mona" };
const users = { loggedInUsers: [{ ...mona, kind: "githubDotCom" }], lastLoggedInUser: mona };

/** Starts an engine on whatever provider is found in this environment. */
async function engineFor(
  github: GitHub,
  env: NodeJS.ProcessEnv,
  config: Record<string, unknown> = NO_OLLAMA,
  atTheEnd: AtTheEnd = onTestFinished,
) {
  const folder = temporaryFolder(atTheEnd);
  const all = { PATH: process.env.PATH, HOME: folder, ...runtime, ...github.env, ...env };
  const choice = await chooseEngine(Config.parse(config), all);
  const engine = await startEngine(folder, "", config, { env: all, choice }, atTheEnd);
  return { folder, choice, engine, ask: () => engine.session(spec("one", folder)).run(turn("Hello?")) };
}

describe("the login", () => {
  test("of the Copilot CLI serves from the file that the CLI writes", async () => {
    const github = await standInForGitHub();
    const home = temporaryFolder();
    logIn(home, { ...users, authTokens: { "https://github.com:mona": { token: TOKEN } } });
    const { choice, ask } = await engineFor(github, { HOME: home });
    expect(choice.why).toBe("GitHub Copilot, with the Copilot CLI's login of mona");
    expect(await ask()).toMatchObject({ outcome: "done", text: "Hello from Copilot." });
    expect(github.asked.map(({ token }) => token)).toEqual([TOKEN, TOKEN, TOKEN]);
  });

  test("of the Copilot CLI serves from the system's keychain", async () => {
    const github = await standInForGitHub();
    const home = temporaryFolder();
    logIn(home, users);
    for (const name of ["secret-tool", "security"]) {
      const program = join(home, name);
      writeFileSync(program, said("#!/bin/sh", `case "$*" in *copilot-cli*https://github.com:mona*) echo ${TOKEN};; esac`, ""));
      chmodSync(program, 0o755);
    }
    const { ask } = await engineFor(github, { HOME: home, PATH: `${home}:${process.env.PATH}` });
    expect((await ask()).outcome).toBe("done");
    expect(github.asked.at(-1)?.token).toBe(TOKEN);
  });

  test("that older versions of the CLI wrote serves too", async () => {
    const home = temporaryFolder();
    logIn(home, { logged_in_users: [mona], last_logged_in_user: mona, copilot_tokens: { "https://github.com:mona": TOKEN } });
    expect(await chosen({ HOME: home })).toMatchObject({ kind: "copilot", login: { token: TOKEN } });
  });

  test("of a company's own GitHub is used with that host", async () => {
    const home = temporaryFolder();
    const work = { host: "https://example.ghe.com", login: "mona_work" };
    logIn(home, {
      loggedInUsers: [work],
      lastLoggedInUser: work,
      authTokens: { "https://example.ghe.com:mona_work": { token: TOKEN } },
    });
    expect((await chosen({ HOME: home })).login).toMatchObject({ host: "example.ghe.com", token: TOKEN });
  });

  test.each([
    ["whose token is nowhere", users, /token of the Copilot CLI's login of mona .*keychain: set COPILOT_GITHUB_TOKEN/],
    [
      "that has expired",
      { ...users, authTokens: { "https://github.com:mona": { token: TOKEN, expiresAt: "2020-01-01T00:00:00Z" } } },
      /the Copilot CLI's login of mona has expired: run `copilot login`/,
    ],
    ["in a file that nobody can read", { loggedInUsers: "mona" }, /the Copilot CLI's config\.json cannot be read/],
  ])("%s is passed over for the next model, and that is told", async (_, config, why) => {
    const home = temporaryFolder();
    logIn(home, config);
    const github = await standInForGitHub();
    const { choice, engine, ask } = await engineFor(github, { HOME: home, PATH: home });
    expect(choice.kind).toBe("rehearsal");
    expect(choice.why).toMatch(why);
    expect(engine.status().notes.join(" ").toLowerCase()).toMatch(new RegExp(why.source.toLowerCase()));
    expect((await ask()).outcome).toBe("done");
    expect(github.list()).toEqual([]);
  });

  test("is no classic token: the next variable serves, and that is told", async () => {
    const choice = await chosen({ COPILOT_GITHUB_TOKEN: "ghp_0123456789abcdefghijklmnopqrstuvwxyz", GH_TOKEN: TOKEN });
    expect(choice).toMatchObject({ kind: "copilot", login: { token: TOKEN, variable: "GH_TOKEN" } });
    expect(choice.notes?.[0]).toMatch(/^COPILOT_GITHUB_TOKEN holds a classic token/);
  });

  test("that is asked for and not there is refused with what to do", async () => {
    await expect(chosen({ IO_ENGINE: "copilot" })).rejects.toThrow(/no login to ask with\. Set COPILOT_GITHUB_TOKEN, or log in/);
  });
});

async function chosen(env: NodeJS.ProcessEnv): Promise<Choice> {
  return chooseEngine(Config.parse(NO_OLLAMA), { PATH: process.env.PATH, HOME: temporaryFolder(), ...env });
}

describe("nothing is sent that nobody asked for", () => {
  test("GitHub hears nothing before the first turn, then who asks, which models there are, and the turn", async () => {
    const github = await standInForGitHub();
    const { engine, folder, ask } = await engineFor(github, { GH_TOKEN: TOKEN });
    expect(engine.status()).toMatchObject({ kind: "copilot", state: "ready" });
    expect(github.list()).toEqual([]);
    expect((await ask()).outcome).toBe("done");
    expect(github.list()).toEqual(["GET /copilot_internal/user", "GET /models", "POST /chat/completions"]);
    await engine.session(spec("one", folder)).run(turn("And again?"));
    await engine.session(spec("two", folder)).run(turn("And you?"));
    await engine.stop();
    expect(github.list().slice(3)).toEqual(["POST /chat/completions", "POST /chat/completions"]);
  });

  test("a daemon starts, tells its status and answers, and its token is in none of its files", { timeout: 60_000 }, async () => {
    const github = await standInForGitHub();
    const home = temporaryHome(NO_OLLAMA);
    const daemon = await startDaemonProcess(home, { ...runtime, ...github.env, COPILOT_GITHUB_TOKEN: TOKEN });
    expect(await daemon.json("GET", "/api/status")).toMatchObject({ engine: { kind: "copilot" } });
    expect(github.list()).toEqual([]);
    expect(await daemon.ask({ text: "Hello?" })).toMatchObject({ status: "done", reply: "Hello from Copilot." });
    await daemon.kill("SIGTERM");
    expect(github.list()).toEqual(["GET /copilot_internal/user", "GET /models", "POST /chat/completions"]);
    const files = readdirSync(home, { recursive: true, encoding: "utf8" }).map((name) => join(home, name));
    expect(files.filter((file) => statSync(file).isFile() && readFileSync(file).includes(TOKEN))).toEqual([]);
  });

  test("a default model that the subscription lacks is stood in for, and the status says so", async () => {
    const github = await standInForGitHub({ models: ["gpt-5-mini"] });
    const { engine, ask } = await engineFor(github, { GITHUB_TOKEN: TOKEN });
    expect((await ask()).outcome).toBe("done");
    expect(JSON.parse(github.asked.at(-1)?.body ?? "{}")).toMatchObject({ model: "gpt-5-mini" });
    expect(engine.status().notes[0]).toContain('"claude-sonnet-4.6" is not available; "gpt-5-mini" serves instead');
  });
});

const json = (status: number, message: string): Answer => ({ status, body: { message } });

describe("what fails is told apart, and names the login", () => {
  test.each<[string, GitHub["answer"], string, RegExp]>([
    [
      "a bad token",
      { "/copilot_internal/user": json(401, "Bad credentials") },
      "unauthorized",
      /^GitHub did not accept the token of GH_TOKEN: .*\(HTTP 401: Bad credentials\)\. Set GH_TOKEN to a valid token/,
    ],
    [
      "a token that the models' server refuses",
      { "/models": { status: 401, body: "unauthorized: token expired\n" } },
      "unauthorized",
      /^GitHub did not accept the token of GH_TOKEN: .*\(HTTP 401: unauthorized: token expired\)/,
    ],
    [
      "an account that Copilot does not know",
      { "/copilot_internal/user": json(404, "Not Found") },
      "unauthorized",
      /^GitHub Copilot is not there for the token of GH_TOKEN: the account has no subscription/,
    ],
    [
      "an account without a subscription",
      { "/models": { status: 403, body: "unauthorized: not licensed to use Copilot\n" } },
      "unauthorized",
      /^GitHub Copilot is not there for the token of GH_TOKEN: .*\(HTTP 403: unauthorized: not licensed to use Copilot\)/,
    ],
    [
      "single sign-on",
      { "/copilot_internal/user": json(403, "Resource protected by organization SAML enforcement.") },
      "unauthorized",
      /^an organization asks for single sign-on before it lets the token of GH_TOKEN in/,
    ],
    [
      "a token without the permission",
      { "/models": { status: 403, body: "Personal Access Token does not have Copilot Requests permission" } },
      "unauthorized",
      /^the token of GH_TOKEN may not use GitHub Copilot: it lacks a permission .*"Copilot Requests"/,
    ],
    [
      "a policy",
      { "/chat/completions": { status: 403, body: { error: { message: "Access denied by policy settings" } } } },
      "unauthorized",
      /^GitHub Copilot forbids this to the token of GH_TOKEN, by a policy .*\(HTTP 403: Access denied by policy settings\)/,
    ],
    [
      "a quota that is used up",
      { "/chat/completions": { status: 402, body: { error: { message: "You have no quota left", code: "quota_exceeded" } } } },
      "unpaid",
      /^the GitHub Copilot quota of the token of GH_TOKEN is used up \(HTTP 402: You have no quota left\)/,
    ],
    [
      "a token that is refused in the middle",
      { "/chat/completions": { status: 401, body: "unauthorized: AuthenticateToken authentication failed\n" } },
      "unauthorized",
      /^GitHub did not accept the token of GH_TOKEN/,
    ],
    [
      "a GitHub that fails",
      { "/copilot_internal/user": json(500, "oops") },
      "failing",
      /^GitHub fails to answer the token of GH_TOKEN \(HTTP 500: oops\)/,
    ],
    [
      "a line that is cut",
      { "/copilot_internal/user": "hang up" },
      "unreachable",
      /^GitHub could not be reached with the token of GH_TOKEN/,
    ],
    [
      "a network that wants a login of its own",
      { "/copilot_internal/user": { status: 200, body: "<html>Welcome to the hotel</html>" } },
      "unreachable",
      /^something other than GitHub answered for github\.com/,
    ],
  ])("%s", async (_, answer, code, message) => {
    const github = await standInForGitHub();
    Object.assign(github.answer, answer);
    const { ask } = await engineFor(github, { GH_TOKEN: TOKEN });
    const result = await ask();
    expect(result).toMatchObject({ outcome: "failed", error: { code } });
    expect(result.error?.message).toMatch(message);
  });

  test.each<[string, NodeJS.ProcessEnv]>([
    ["a refused connection", { COPILOT_DEBUG_GITHUB_API_URL: "http://127.0.0.1:9" }],
    [
      "a name that nobody knows",
      { COPILOT_DEBUG_GITHUB_API_URL: "http://github.invalid", HTTP_PROXY: undefined, HTTPS_PROXY: undefined },
    ],
    ["a proxy that does not let anybody through", { COPILOT_DEBUG_GITHUB_API_URL: undefined }],
  ])("no network: %s", async (_, env) => {
    const github = await standInForGitHub();
    const result = await (await engineFor(github, { GH_TOKEN: TOKEN, ...env })).ask();
    expect(result.error).toMatchObject({
      code: "unreachable",
      message: expect.stringMatching(/^GitHub could not be reached with the token of GH_TOKEN/),
    });
  });

  // These two run concurrently, because nearly all of their time is spent waiting for a silent GitHub.
  test.concurrent("silence is waited for no longer than half a minute, and the next message is served when GitHub is back", async ({
    onTestFinished: atTheEnd,
  }) => {
    const github = await standInForGitHub({ atTheEnd });
    github.answer["/copilot_internal/user"] = "never";
    const home = temporaryFolder(atTheEnd);
    logIn(home, { ...users, authTokens: { "https://github.com:mona": { token: TOKEN } } });
    const { ask } = await engineFor(github, { HOME: home }, NO_OLLAMA, atTheEnd);
    const begun = performance.now();
    expect((await ask()).error).toMatchObject({
      code: "unreachable",
      message: expect.stringContaining("the Copilot CLI's login of mona"),
    });
    expect(performance.now() - begun).toBeLessThan(soon(30_000));
    delete github.answer["/copilot_internal/user"];
    expect((await ask()).outcome).toBe("done");
  }, 60_000);

  test.concurrent("silence after the runtime was killed is waited for no longer either", async ({ onTestFinished: atTheEnd }) => {
    const github = await standInForGitHub({ atTheEnd });
    const { folder, engine, ask } = await engineFor(github, { GH_TOKEN: TOKEN }, NO_OLLAMA, atTheEnd);
    expect((await ask()).outcome).toBe("done");
    github.answer["/models"] = "never";
    process.kill(Number(readFileSync(pidFileOf(folder, process.pid), "utf8")), "SIGKILL");
    await until("the death to be noticed", () => engine.status().state !== "ready");
    const begun = performance.now();
    expect((await ask()).error).toMatchObject({ code: "unreachable", message: expect.stringContaining("the token of GH_TOKEN") });
    expect(performance.now() - begun).toBeLessThan(soon(30_000));
  }, 60_000);
});
