import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PRESETS } from "../../src/engine/models/presets.ts";
import { Config, loadConfig, ProviderConfig, SECRET_KEYS, updateConfig } from "../../src/home/config.ts";
import { RetentionConfig } from "../../src/home/retention-config.ts";
import { ExitCode, UserError } from "../../src/lib/errors.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryFolder } from "../support/home.ts";

function fileWith(text: string): string {
  const file = join(temporaryFolder(), "config.json");
  writeFileSync(file, text);
  return file;
}

function failureOf(work: () => unknown): UserError {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

test("without a file the defaults apply, and no file is created", () => {
  const file = join(temporaryFolder(), "config.json");
  expect(loadConfig(file)).toMatchObject({ host: "127.0.0.1", port: 3170, allowRemote: false, maxLiveSessions: 40 });
  expect(existsSync(file)).toBe(false);
});

test("a mistyped key is an error that names it and suggests the right one", () => {
  const error = failureOf(() => loadConfig(fileWith('{"prot": 4000}')));
  expect(error.exitCode).toBe(ExitCode.usage);
  expect(error.message).toContain('prot: no such key. Did you mean "port"?');
});

test("an invalid value is an error that names the key, the value and what is allowed", () => {
  const error = failureOf(() => loadConfig(fileWith('{"port": 70000, "logLevel": "loud"}')));
  expect(error.message).toContain("port: 70000 is not allowed");
  expect(error.message).toMatch(/logLevel: "loud" is not allowed.*debug/);
});

test("an error about an invalid secret does not show it", () => {
  const error = failureOf(() => loadConfig(fileWith('{"telegramBotToken": 123456789}')));
  expect(error.message).toContain("telegramBotToken: (hidden)");
  expect(error.message).not.toContain("123456789");
  expect(SECRET_KEYS).toContain("telegramBotToken");
});

test("an error about what holds secrets does not show them", () => {
  const secret = "sk-very-secret-and-long";
  const server = { command: "own", url: "http://127.0.0.1:9", env: { TOKEN: secret }, headers: { "X-Key": secret } };
  const error = failureOf(() => loadConfig(fileWith(JSON.stringify({ mcpServers: { own: server }, forge: [secret] }))));
  expect(error.message).toContain('mcpServers.own: (hidden) is not allowed: it must have "command" or "url", not both');
  expect(error.message).toContain("forge: (hidden)");
  expect(error.message).not.toContain(secret);
});

test.each(['{"port": 1', "[1]", "null"])("a file with %s is left unchanged and not overwritten", (text) => {
  const file = fileWith(text);
  expect(failureOf(() => loadConfig(file)).exitCode).toBe(ExitCode.usage);
  expect(failureOf(() => updateConfig(file, { port: 1 })).message).toContain("left as it is");
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("an update keeps other keys, can remove keys, and leaves the file readable only by its owner", () => {
  const file = fileWith('{"port": 4000, "host": "localhost"}');
  expect(updateConfig(file, { port: undefined, logLevel: "debug" })).toMatchObject({ port: 3170, logLevel: "debug" });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ host: "localhost", logLevel: "debug" });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("an update with an invalid value changes nothing", () => {
  const file = fileWith('{"port": 4000}');
  failureOf(() => updateConfig(file, { port: -1 }));
  expect(readFileSync(file, "utf8")).toBe('{"port": 4000}');
});

test("docs/reference/config.md has a row for each key of config.json, of its provider and of retention, and for no other", () => {
  const text = readFileSync(join(packageRoot, "docs", "reference", "config.md"), "utf8");
  const rows = [...text.matchAll(/^\| `([A-Za-z.]+)` \|/gm)].map((match) => match[1]!);
  const below = (name: string) => rows.filter((row) => row.startsWith(`${name}.`)).map((row) => row.slice(name.length + 1));
  expect(rows.filter((row) => !row.includes(".")).sort()).toEqual(Object.keys(Config.shape).sort());
  expect(below("retention").sort()).toEqual(Object.keys(RetentionConfig.shape).sort());
  expect(below("provider").sort()).toEqual(Object.keys(ProviderConfig.shape).sort());
});

test("docs/configuration.md has a section for each provider that setup knows, with its address and variable", () => {
  const text = readFileSync(join(packageRoot, "docs", "configuration.md"), "utf8");
  const sections = text.split(/^### /m).slice(1);
  for (const { name, title, address, variables } of PRESETS) {
    const heading = name === "other" ? "Any other" : title.replace(" or Foundry", "");
    const section = sections.find((each) => each.startsWith(heading));
    expect(section, title).toBeDefined();
    if (address) expect(section).toContain(address);
    for (const variable of variables.slice(0, 1)) expect(section).toContain(variable);
  }
});
