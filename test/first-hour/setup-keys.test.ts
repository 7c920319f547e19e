import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { cleanEnvironment, IO } from "../support/daemon.ts";
import { standInForGitHub } from "../support/github.ts";
import { temporaryFolder } from "../support/home.ts";
import { startOllama, startOpenAi } from "../support/providers/index.ts";
import { bare, config, KEY, nobody, obeys, PROVIDERS, TOKEN } from "../support/setup.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

describe("by keys, at a terminal", () => {
  const open = async (home: string, env: NodeJS.ProcessEnv = {}) => {
    const place = temporaryFolder();
    const command = ["sh", "-c", `"${process.execPath}" "${IO}" setup; echo "exit $?"; sleep 100`];
    const terminal = await openTerminal(place, command, cleanEnvironment(home, { ...nobody, ...env }));
    const seen = (what: RegExp) =>
      until(String(what), async () => what.test(await terminal.screen()), 40_000).catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${await terminal.screen()}`);
      });
    /** Moves the cursor down to the line with this label and presses Enter. */
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
    /** Answers the last questions with their defaults. */
    const finish = async () => {
      await seen(/Telegram bot/);
      await terminal.press("Enter");
      await seen(/at every login/);
      await terminal.press("Enter");
      await seen(/exit 0/);
    };
    const answer = async (question: RegExp, text: string) => {
      await seen(question);
      if (text !== "") await terminal.type(text);
      await terminal.press("Enter");
    };
    return { ...terminal, seen, choose, answer, finish };
  };

  test("Ollama is found with its models, chosen with the arrow keys, and tried before anything is written", async () => {
    const server = await startOllama({ script: obeys });
    const home = bare();
    mkdirSync(home);
    writeFileSync(join(home, "config.json"), JSON.stringify({ ollamaUrl: server.origin }));
    const { choose, seen, finish, screen } = await open(home);
    await seen(/Ollama at http:\/\/127\.0\.0\.1:\d+: .*llama3\.2:latest/);
    await choose(/Which model is to answer\?/, /Ollama/);
    await choose(/Its model/, /llama3\.2:latest/);
    await seen(/The model works: llama3\.2:latest answered/);
    expect(config(home)).toEqual({ ollamaUrl: server.origin });
    await finish();
    expect(config(home)).toMatchObject({ provider: { baseUrl: server.origin, model: "llama3.2:latest" } });
    expect((await screen()).replaceAll("\n", "")).toMatch(/npm link\), or for this shell alone: alias io=/);
  });

  test("a provider's key stays off the screen, and one that is wrong leads back to the choice", async () => {
    const server = await startOpenAi({ key: KEY, script: obeys });
    const home = bare();
    const { choose, answer, seen, finish, screen } = await open(home);
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
    await finish();
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
    const { choose, answer, finish } = await open(home, { ...github.env, HOME: person, IO_COPILOT_PROGRAM: program });
    await choose(/Which model is to answer\?/, /GitHub Copilot/);
    await choose(/How does IO log in/, /Log in now/);
    await answer(/Type the code 1234/, "yes");
    // The fake GitHub answers but calls no tool, so setup asks the person what to do.
    await choose(/at GitHub Copilot[\s\S]*What now\?/, /Keep it/);
    await finish();
    expect(config(home)).toEqual({});
    expect(github.asked.find(({ what }) => what.includes("chat/completions"))?.token).toBe(TOKEN);
  });

  test.each(PROVIDERS)("$title: its address, its key off the screen, and its model", async (provider) => {
    const server = await provider.start();
    const home = bare();
    const { choose, answer, seen, finish, screen } = await open(home);
    await choose(/Which model is to answer\?/, new RegExp(`● ${provider.title}`));
    await answer(provider.address, server.origin);
    await answer(/Its API key/, provider.key);
    if (provider.type === "azure") await answer(/Its deployment's name/, provider.model);
    else await choose(/Its model/, new RegExp(`● ${provider.model}`));
    await seen(/The model works/);
    expect(await screen()).not.toContain(provider.key);
    expect(existsSync(home)).toBe(false);
    await finish();
    const { type, key, model } = provider;
    expect(config(home)).toMatchObject({
      provider: { type, baseUrl: server.origin, apiKey: key, model: expect.stringContaining(model) },
    });
  });

  test("GitHub Copilot by a token, which stays off the screen; what the variables say; and no model for now", async () => {
    const github = await standInForGitHub();
    const home = bare();
    const first = await open(home, github.env);
    await first.choose(/Which model is to answer\?/, /GitHub Copilot/);
    await first.choose(/How does IO log in/, /With a token/);
    await first.answer(/The token/, TOKEN);
    await first.choose(/at GitHub Copilot[\s\S]*What now\?/, /Keep it/);
    expect([(await first.screen()).includes(TOKEN), existsSync(home)]).toEqual([false, false]);
    await first.finish();
    expect(config(home)).toEqual({ githubToken: TOKEN });
    expect(github.asked.find(({ what }) => what.includes("chat/completions"))?.token).toBe(TOKEN);

    const server = await startOpenAi({ key: KEY, script: obeys });
    const own = bare();
    const variables = { COPILOT_PROVIDER_BASE_URL: server.origin, COPILOT_PROVIDER_API_KEY: KEY, COPILOT_MODEL: "gpt-4o" };
    const second = await open(own, variables);
    await second.choose(/Which model is to answer\?/, /What COPILOT_PROVIDER_BASE_URL says/);
    await second.seen(/The model works: gpt-4o/);
    await second.finish();
    expect(config(own)).toEqual({});

    const none = bare();
    const third = await open(none);
    await third.choose(/Which model is to answer\?/, /None for now/);
    await third.finish();
    expect(config(none)).toEqual({});
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
