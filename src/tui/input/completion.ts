import { readdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Draft } from "./editor.ts";
import { MOST_WORD } from "./editor.ts";

/** The options that could replace the word before the caret. */
export interface Completion {
  from: number;
  to: number;
  options: string[];
}

export interface CompletionDeps {
  commands: readonly string[];
  /** Returns the possible arguments of a command. */
  argumentsOf: (command: string) => Promise<string[]>;
  /** Returns squads, and agents as squad/agent. */
  people: () => Promise<string[]>;
  cwd: string;
}

const MOST = 200;
/** As long as an escaped space, so that positions stay the same. */
const HELD = "\0\0";

/** Completes a command, its argument, a squad or agent after an @, or a file path. */
export async function complete({ text, caret }: Draft, deps: CompletionDeps): Promise<Completion | undefined> {
  const before = text.slice(0, caret);
  const command = /^\/([a-z][a-z0-9_-]*)?$/i.exec(before);
  if (command)
    return among(
      `/${command[1] ?? ""}`,
      deps.commands.map((name) => `/${name}`),
      0,
      caret,
    );
  const argument = /^\/([a-z][a-z0-9_-]*)\s+(\S*)$/i.exec(before);
  if (argument) {
    const [, name = "", word = ""] = argument;
    const found = among(word, await deps.argumentsOf(name.toLowerCase()), caret - word.length, caret);
    if (found) return found;
  }
  const word = /[^\s"'`(]*$/.exec(before.slice(-MOST_WORD).replaceAll("\\ ", HELD))![0].replaceAll(HELD, "\\ ");
  const from = caret - word.length;
  if (word.startsWith("@")) {
    const people = among(
      word,
      (await deps.people()).map((name) => `@${name}`),
      from,
      caret,
    );
    return (
      people ??
      among(
        word,
        files(word.slice(1), deps.cwd).map((path) => `@${path}`),
        from,
        caret,
      )
    );
  }
  return word === "" ? undefined : among(word, files(word, deps.cwd), from, caret);
}

/** The longest common prefix. */
export function commonStart(options: readonly string[]): string {
  const [first = "", ...others] = options;
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}

function among(word: string, known: readonly string[], from: number, to: number): Completion | undefined {
  const lower = word.toLowerCase();
  const options = known.filter((each) => each.toLowerCase().startsWith(lower)).slice(0, MOST);
  return options.length > 0 ? { from, to, options } : undefined;
}

/** Lists paths in the way that they are typed, with a backslash before each space. */
function files(typedWord: string, cwd: string): string[] {
  const word = typedWord.replaceAll("\\ ", " ");
  const path = word.startsWith("~/") ? join(homedir(), word.slice(2)) : word;
  const folder = path.endsWith("/") ? path : dirname(path);
  const typed = word.slice(0, word.lastIndexOf("/") + 1);
  const isHidden = word.slice(typed.length).startsWith(".");
  try {
    return readdirSync(resolve(cwd, folder), { withFileTypes: true })
      .filter(({ name }) => isHidden || !name.startsWith("."))
      .map((entry) => `${typed}${entry.name}${entry.isDirectory() ? "/" : ""}`)
      .filter((name) => !/[\p{Cc}]|[^\S ]/u.test(name))
      .map((name) => name.replaceAll(" ", "\\ "))
      .sort();
  } catch {
    // There is no such folder, or it is not readable.
    return [];
  }
}
