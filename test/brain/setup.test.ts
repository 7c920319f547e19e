import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cleanEnvironment, IO, runIo } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const config = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as unknown;

test("setup takes its answers from a pipe and writes a config that only its owner can read", async () => {
  const home = join(temporaryFolder(), "new", "home");
  const answers = ["https://models.example/v1", "", "model-x", "MODELS_KEY", "4000", "yes", "1:bot-secret", "42"];
  const result = await runIo(["setup"], home, {}, `${answers.join("\n")}\n`);
  expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("provider, port, telegramEnabled") });
  expect(`${result.stdout}${result.stderr}`).not.toContain("bot-secret");
  expect(config(home)).toEqual({
    provider: { type: "openai", baseUrl: "https://models.example/v1", model: "model-x", apiKeyEnv: "MODELS_KEY" },
    port: 4000,
    telegramEnabled: true,
    telegramBotToken: "1:bot-secret",
    authorizedUserId: 42,
  });
  expect((statSync(join(home, "config.json")).mode & 0o777).toString(8)).toBe("600");

  const kept = config(home);
  expect((await runIo(["setup"], home, {}, "")).code).toBe(0);
  expect(config(home)).toEqual(kept);
  expect((await runIo(["setup"], home, {}, "none\n\n\nno\n")).code).toBe(0);
  expect(config(home)).toEqual({ port: 4000, telegramEnabled: false, telegramBotToken: "1:bot-secret", authorizedUserId: 42 });
});

test("setup --yes asks nothing and takes the defaults", async () => {
  const home = join(temporaryFolder(), "home");
  const result = await runIo(["setup", "--yes", "--json"], home);
  expect(result).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(result.stdout)).toEqual({ path: join(home, "config.json"), changed: [] });
  expect(config(home)).toEqual({});
});

test("an answer that cannot be is exit 2 and changes nothing, and a broken config is left as it is", async () => {
  const home = temporaryHome({ port: 5000 });
  const wrong = await runIo(["setup"], home, {}, "\n\n99999\n");
  expect(wrong).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("port: 99999 is not allowed") });
  expect((await runIo(["setup"], home, {}, "ftp://x\n")).stderr).toContain("provider.baseUrl");
  expect(config(home)).toEqual({ port: 5000 });
  writeFileSync(join(home, "config.json"), "{ broken");
  expect(await runIo(["setup", "--yes"], home)).toMatchObject({ code: 2 });
  expect(readFileSync(join(home, "config.json"), "utf8")).toBe("{ broken");
  expect(existsSync(join(home, "daemon.json"))).toBe(false);
});

test("a key that is typed into a terminal does not stay on the screen", { timeout: 60_000 }, async () => {
  const home = temporaryHome();
  const terminal = await openTerminal(
    home,
    ["sh", "-c", `"${process.execPath}" "${IO}" setup; sleep 60`],
    cleanEnvironment(home),
  );
  const answer = async (question: RegExp, text: string) => {
    await until(String(question), async () => question.test(await terminal.screen()));
    await terminal.type(text);
    await terminal.press("Enter");
  };
  await answer(/\[none\]:\s*$/, "https://models.example/v1");
  await answer(/\[openai\]:\s*$/, "");
  await answer(/model's name:\s*$/, "model-x");
  await answer(/none\):\s*$/, "sk-very-secret");
  await answer(/\[\d+\]:\s*$/, "4000");
  await answer(/\[no\]:\s*$/, "");
  await until("the end", async () => (await terminal.screen()).includes("provider, port set"));
  const shown = (await terminal.screen()).replaceAll("\n", "");
  expect(shown).toContain("model-x");
  expect(shown).not.toContain("secret");
  expect(config(home)).toMatchObject({ provider: { apiKey: "sk-very-secret" }, port: 4000 });
});
