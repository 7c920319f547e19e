import type { Command } from "commander";
import { Config, configWith, loadConfig, nearest, rawConfig, updateConfig } from "../home/config.ts";
import { withoutSecrets } from "../home/config-secrets.ts";
import { modeFrom } from "../home/modes.ts";
import { ensureHome } from "../home/paths.ts";
import { usageError } from "../lib/errors.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

type Values = Record<string, unknown>;

/** `io config`: reads and changes settings with or without a daemon; a running one applies them at once. */
export function configCommands(program: Command, shell: Shell): void {
  const config = program.command("config").description("what config.json says");

  config
    .command("list")
    .description("every setting as it holds now; of secrets only whether they are set")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const all = await read(shell);
      const lines = () => Object.entries(all).map(([key, value]) => `${key} = ${shown(value)}`);
      shell.print(all, () => lines().join("\n"), options);
    });

  config
    .command("get")
    .description("one setting as it holds now")
    .argument("<key>", "such as mode, or provider.baseUrl")
    .option(...JSON_OPTION)
    .action(async (key: string, options: Json) => {
      const value = at(await read(shell), known(key)) ?? null;
      shell.print(value, () => shown(value), options);
    });

  config
    .command("set")
    .description("write one setting into config.json; a running daemon follows")
    .argument("<key>", "such as mode, or provider.baseUrl")
    .argument("<value>", "a word, a number, or JSON; null goes back to the default")
    .option(...JSON_OPTION)
    .action(async (key: string, given: string, options: Json) => {
      const path = known(key);
      const changes = changesFor(shell, path, given);
      const after = shell.daemon()
        ? await shell.client().request<Values>("PATCH", "/api/config", changes)
        : await written(shell, changes);
      const value = at(after, path) ?? null;
      shell.print(value, () => `${key} = ${shown(value)}`, options);
      if (key === "mode" && given !== "null" && value !== given)
        shell.note(`IO_MODE stands above config.json for as long as this daemon runs: the mode is ${shown(value)}.`);
    });
}

async function read(shell: Shell): Promise<Values> {
  if (shell.daemon()) return shell.client().request<Values>("GET", "/api/config");
  return withoutSecrets({ ...loadConfig(shell.paths.config), ...modeFrom(shell.env) });
}

async function written({ paths }: Shell, changes: Values): Promise<Values> {
  ensureHome(paths);
  return withoutSecrets(updateConfig(paths.config, withoutNulls(changes)));
}

/** Splits a key at its dots, after checking its first part. */
function known(key: string): string[] {
  const path = key.split(".");
  const names = Object.keys(Config.shape);
  if (names.includes(path[0]!) && path.every((part) => part !== "")) return path;
  const near = nearest(path[0]!, names);
  throw usageError(`${key}: no such key.${near ? ` Did you mean "${near}"?` : ' "io config list" names all of them.'}`);
}

/** The change of a whole top-level key. Values that parse as JSON are used as such, unless only the string is valid. */
function changesFor({ paths }: Shell, [key = "", ...inner]: string[], given: string): Values {
  const before = rawConfig(paths.config)[key];
  const changed = (value: unknown): Values => ({
    [key]: value === null && inner.length === 0 ? null : within(before, inner, value),
  });
  const check = (changes: Values) => configWith(paths.config, withoutNulls(changes));
  const asWord = changed(given);
  const asJson = parsed(given);
  if (asJson === undefined) {
    check(asWord);
    return asWord;
  }
  const changes = changed(asJson);
  try {
    check(changes);
    return changes;
  } catch (error) {
    try {
      check(asWord);
      return asWord;
    } catch {
      // The error about the value itself says more.
      throw error;
    }
  }
}

/** Replaces one part of an object; null removes it. */
function within(before: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value;
  const object = typeof before === "object" && before !== null && !Array.isArray(before) ? (before as Values) : {};
  const inner = within(object[first], rest, value);
  return Object.fromEntries(Object.entries({ ...object, [first]: inner }).filter(([, each]) => each !== null));
}

const withoutNulls = (changes: Values): Values =>
  Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? undefined]));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function at(values: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? (value as Values)[key] : undefined),
    values,
  );
}

const shown = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "not set"));
