import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { cleanEnvironment, IO, runIo } from "../support/daemon.ts";
import { standInForGitHub } from "../support/github.ts";
import { temporaryFolder } from "../support/home.ts";
import type { Script } from "../support/providers/index.ts";
import { startOllama, startOpenAi } from "../support/providers/index.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const TOKEN = "github_pat_right_token_of_somebody_0123456789";
const obeys: Script = ({ afterTool }) => (afterTool ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] });
/** A home that nobody has used: not even its folder is there. */
const bare = () => join(temporaryFolder(), "home");
const config = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as unknown;
/** No Ollama that happens to run on the machine is found. */
const nobody = { HOME: "/nonexistent" };

describe("by flags, on a bare home", () => {
  test("GitHub Copilot by a token, read from standard input, tried for real and kept where only its owner can read it", async () => {
    const github = await standInForGitHub();
    const home = bare();
    const env = { ...nobody, ...github.env };
    const result = await runIo(["setup", "--engine", "copilot", "--github-token", "-", "--json"], home, env, `${TOKEN}\n`);
    expect(result).toMatchObject({ code: 0 });
    expect(JSON.parse(result.stdout)).toMatchObject({
      changed: ["githubToken"],
      model: { found: expect.stringContaining("GitHub Copilot") },
    });
    expect(config(home)).toEqual({ githubToken: TOKEN });
    expect(github.asked.find(({ what }) => what.includes("chat/completions"))?.token).toBe(TOKEN);
    expect(`${result.stdout}${result.stderr}`).not.toContain(TOKEN);
    const asked = github.asked.length;
    // What is written serves from now on.
    expect((await runIo(["doctor"], home, env)).stdout).toContain("at GitHub Copilot");
    expect(github.asked.length).toBeGreaterThan(asked);
  });

  test("GitHub Copilot by the login that is there; without any, exit 2 says how", async () => {
    const github = await standInForGitHub();
    const login = await runIo(["setup", "--engine", "copilot"], bare(), {
      ...nobody,
      ...github.env,
      COPILOT_GITHUB_TOKEN: TOKEN,
    });
    expect(login).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing but the defaults.*\n.*(works|Take note)/) });
    const home = bare();
    const none = await runIo(["setup", "--engine", "copilot"], home, nobody);
    expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/no login for GitHub Copilot.*--github-token/) });
    const classic = await runIo(["setup", "--github-token", "ghp_abc"], home, nobody);
    expect(classic).toMatchObject({ code: 2, stderr: expect.stringContaining("fine-grained") });
    expect(existsSync(home)).toBe(false);
  });

  test("a provider by its name, address, key and model", async () => {
    const server = await startOpenAi({ key: KEY, script: obeys });
    const home = bare();
    const flags = ["--provider", "openai", "--base-url", server.origin, "--api-key-env", "OPENAI_API_KEY", "--model", "gpt-4o"];
    const result = await runIo(["setup", ...flags, "--port", "4000"], home, { ...nobody, OPENAI_API_KEY: KEY });
    expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/provider, port set[\s\S]*The model works: gpt-4o/) });
    expect(config(home)).toMatchObject({ provider: { apiKeyEnv: "OPENAI_API_KEY", model: "gpt-4o" }, port: 4000 });
  });

  test("a key that is wrong writes nothing, unless it is not to be tested", async () => {
    const server = await startOpenAi({ key: KEY, script: obeys });
    const home = bare();
    const flags = ["setup", "--provider", "openai", "--base-url", server.origin, "--api-key", "-", "--model", "gpt-4o"];
    const wrong = await runIo(flags, home, nobody, "sk-proj-mistyped-0123456789");
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/HTTP 401[\s\S]*Nothing was written/) });
    expect(existsSync(home)).toBe(false);
    expect(await runIo([...flags, "--no-test"], home, nobody, "sk-proj-mistyped-0123456789")).toMatchObject({ code: 0 });
    expect(config(home)).toMatchObject({ provider: { apiKey: "sk-proj-mistyped-0123456789" } });
  });

  test("Ollama, with the first model that has tools", async () => {
    const server = await startOllama({ script: obeys });
    const home = bare();
    const result = await runIo(["setup", "--engine", "ollama", "--base-url", server.origin], home, nobody);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("The model works: llama3.2:latest") });
    expect(config(home)).toEqual({ provider: { type: "openai", baseUrl: server.origin, model: "llama3.2:latest" } });
  });

  test("the rehearsal model, a bot and a service, without asking anybody anything", async () => {
    const home = bare();
    const flags = [
      "--engine",
      "rehearsal",
      "--telegram-token",
      "123456:ABCDEFGHIJKLMNOPQRSTUVWX",
      "--telegram-user",
      "42",
      "--service",
    ];
    const person = temporaryFolder();
    const result = await runIo(["setup", ...flags], home, { HOME: person, XDG_RUNTIME_DIR: "/nowhere" });
    expect(result.code).toBe(0);
    expect(config(home)).toEqual({
      telegramEnabled: true,
      telegramBotToken: "123456:ABCDEFGHIJKLMNOPQRSTUVWX",
      authorizedUserId: 42,
    });
    const units = readdirSync(join(person, ".config", "systemd", "user"));
    expect(units.filter((name) => /^io-home-[0-9a-f]{6}\.service$/.test(name))).toHaveLength(1);
  });

  test("what cannot be is exit 2, and a pipe that nobody writes to is not waited for for ever", async () => {
    for (const flags of [
      ["--engine", "gpt"],
      ["--port", "many"],
      ["--api-key", "sk-x"],
      ["--provider", "opnai"],
    ])
      expect([flags, (await runIo(["setup", ...flags], bare(), nobody)).code]).toEqual([flags, 2]);
    const home = bare();
    const child = spawn(process.execPath, [IO, "setup"], {
      env: cleanEnvironment(home, nobody),
      stdio: ["pipe", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const code = await new Promise((done) => child.once("close", done));
    expect([code, stderr]).toEqual([2, expect.stringContaining("for scripts there are flags")]);
    expect(existsSync(home)).toBe(false);
  });
});

describe("by keys, at a terminal", () => {
  const open = async (home: string, env: NodeJS.ProcessEnv = {}) => {
    const place = temporaryFolder();
    const command = ["sh", "-c", `"${process.execPath}" "${IO}" setup; echo "exit $?"; sleep 100`];
    const terminal = await openTerminal(place, command, cleanEnvironment(home, { ...nobody, ...env }));
    const seen = (what: RegExp) =>
      until(String(what), async () => what.test(await terminal.screen()), 40_000).catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${await terminal.screen()}`);
      });
    /** Moves down until the line under the cursor is the one that is meant. */
    const choose = async (question: RegExp, label: RegExp) => {
      await seen(question);
      await until(`the cursor on ${label}`, async () => {
        const line = (await terminal.screen()).split("\n").findLast((each) => each.includes("●"));
        if (line && label.test(line)) return true;
        await terminal.press("Down");
        return false;
      });
      await terminal.press("Enter");
    };
    const answer = async (question: RegExp, text: string) => {
      await seen(question);
      if (text !== "") await terminal.type(text);
      await terminal.press("Enter");
    };
    return { ...terminal, seen, choose, answer };
  };

  test("Ollama is found with its models, chosen with the arrow keys, and tried before anything is written", async () => {
    const server = await startOllama({ script: obeys });
    const home = bare();
    mkdirSync(home);
    writeFileSync(join(home, "config.json"), JSON.stringify({ ollamaUrl: server.origin }));
    const { choose, seen, press, screen } = await open(home);
    await seen(/Ollama at http:\/\/127\.0\.0\.1:\d+: .*llama3\.2:latest/);
    await choose(/Which model is to answer\?/, /Ollama/);
    await choose(/Its model/, /llama3\.2:latest/);
    await seen(/The model works: llama3\.2:latest answered/);
    expect(config(home)).toEqual({ ollamaUrl: server.origin });
    await seen(/Telegram bot/);
    await press("Enter");
    await seen(/at every login/);
    await press("Enter");
    await seen(/exit 0/);
    expect(config(home)).toMatchObject({ provider: { baseUrl: server.origin, model: "llama3.2:latest" } });
    expect((await screen()).replaceAll("\n", "")).toMatch(/npm link\), or for this shell alone: alias io=/);
  });

  test("a provider's key stays off the screen, and one that is wrong leads back to the choice", async () => {
    const server = await startOpenAi({ key: KEY, script: obeys });
    const home = bare();
    const { choose, answer, seen, press, screen } = await open(home);
    await choose(/Which model is to answer\?/, /● OpenAI/);
    await answer(/Its address/, server.origin);
    await answer(/Its API key/, "sk-proj-mistyped-0123456789");
    await answer(/Its model/, "gpt-4o");
    await choose(/does not answer[\s\S]*What now\?/, /Choose again/);
    await choose(/Which model is to answer\?/, /● OpenAI/);
    await answer(/Its address/, server.origin);
    await answer(/Its API key/, KEY);
    await choose(/Its model/, /gpt-4o\b(?!-)/);
    await seen(/The model works/);
    const shown = (await screen()).replaceAll("\n", "");
    expect(shown).not.toMatch(/mistyped|right-key/);
    await seen(/Telegram bot/);
    await press("Enter");
    await seen(/at every login/);
    await press("Enter");
    await seen(/exit 0/);
    expect(config(home)).toMatchObject({ provider: { apiKey: KEY } });
  });

  test("GitHub Copilot is connected there: by the login of its own program, which has the terminal meanwhile", async () => {
    const github = await standInForGitHub();
    const home = bare();
    const person = temporaryFolder();
    const program = join(person, "copilot");
    const stored = {
      lastLoggedInUser: { host: "https://github.com", login: "mona" },
      authTokens: { "https://github.com:mona": TOKEN },
    };
    writeFileSync(
      program,
      `#!/bin/sh\nprintf 'Type the code 1234 (then Enter): '\nread answer\nmkdir -p "$HOME/.copilot"\ncat > "$HOME/.copilot/config.json" <<'END'\n${JSON.stringify(stored)}\nEND\n`,
    );
    chmodSync(program, 0o755);
    const { choose, answer, seen, press } = await open(home, { ...github.env, HOME: person, IO_COPILOT_PROGRAM: program });
    await choose(/Which model is to answer\?/, /GitHub Copilot/);
    await choose(/How does IO log in/, /Log in now/);
    await answer(/Type the code 1234/, "yes");
    // The stand-in answers, but calls no tool, which the person is asked about.
    await choose(/at GitHub Copilot[\s\S]*What now\?/, /Keep it/);
    await seen(/Telegram bot/);
    await press("Enter");
    await seen(/at every login/);
    await press("Enter");
    await seen(/exit 0/);
    expect(config(home)).toEqual({});
    expect(github.asked.find(({ what }) => what.includes("chat/completions"))?.token).toBe(TOKEN);
  });

  test("Ctrl-C at any question writes nothing, not even the folder", async () => {
    const home = bare();
    const first = await open(home);
    await first.seen(/Which model is to answer\?/);
    await first.press("C-c");
    await first.seen(/Nothing was changed[\s\S]*exit 130/);
    const second = await open(home);
    await second.choose(/Which model is to answer\?/, /None for now/);
    await second.seen(/Telegram bot/);
    await second.press("C-c");
    await second.seen(/Nothing was changed[\s\S]*exit 130/);
    expect(existsSync(home)).toBe(false);
  });
});
