import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { cleanEnvironment, IO, runIo } from "../support/daemon.ts";
import { standInForGitHub } from "../support/github.ts";
import { temporaryFolder } from "../support/home.ts";
import { startOllama, startOpenAi } from "../support/providers/index.ts";
import { bare, config, KEY, nobody, obeys, PROVIDERS, TOKEN } from "../support/setup.ts";

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
    // The stored settings are used from now on.
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

  test.each(PROVIDERS)("$title by its name, address, key and model", async ({ name, start, key, model, type }) => {
    const server = await start();
    const home = bare();
    const flags = ["--provider", name, "--base-url", server.origin, "--api-key", "-", "--model", model];
    const result = await runIo(["setup", ...flags], home, nobody, key);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("The model works: ") });
    expect(config(home)).toMatchObject({ provider: { type, baseUrl: server.origin, apiKey: key, model } });
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
    const home = bare();
    const child = spawn(process.execPath, [IO, "setup"], {
      env: cleanEnvironment(home, nobody),
      stdio: ["pipe", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const ended = new Promise((done) => child.once("close", done));
    // It gives up after ten seconds, in which the others can be tried.
    for (const flags of [
      ["--engine", "gpt"],
      ["--port", "many"],
      ["--api-key", "sk-x"],
      ["--provider", "opnai"],
    ])
      expect([flags, (await runIo(["setup", ...flags], bare(), nobody)).code]).toEqual([flags, 2]);
    expect([await ended, stderr]).toEqual([2, expect.stringContaining("for scripts there are flags")]);
    expect(existsSync(home)).toBe(false);
  });
});
