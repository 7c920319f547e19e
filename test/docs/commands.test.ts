import type { Command } from "commander";
import { expect, test } from "vitest";
import { buildProgram } from "../../src/cli/io.ts";
import { createShell } from "../../src/cli/output.ts";
import { messageOf } from "../../src/lib/errors.ts";
import { readShell } from "../../src/shell/read.ts";
import { commandsIn } from "../../src/shell/syntax.ts";
import { documents } from "../support/documents.ts";

const shell = createShell({ HOME: "/home/you" });
const names = new Map<string, Command>();

test("the command line understands every command of the documents' examples", () => {
  const wrong = documents().flatMap(({ path, text }) =>
    examplesIn(text).flatMap((words) => complaintsAt(`${path}: ${words.join(" ")}`, whyRefused(words))),
  );
  expect(examplesIn('```sh\nFOO=1 io squad list && swarm --aply "x y"  # note\n```')).toEqual([
    ["io", "squad", "list"],
    ["swarm", "--aply", "x y"],
  ]);
  expect(documents().flatMap(({ text }) => examplesIn(text)).length).toBeGreaterThan(50);
  expect(wrong).toEqual([]);
});

test("every command and flag that a sentence of the documents names is there", () => {
  const mentioned = documents().flatMap(({ path, text }) => mentionsIn(text).map((words) => ({ path, words })));
  expect(mentioned.length).toBeGreaterThan(100);
  expect(mentioned.flatMap(({ path, words }) => complaintsAt(`${path}: ${words.join(" ")}`, whyUnknown(words)))).toEqual([]);
});

test.each([
  [["io", "squd", "list"], "unknown command 'squd'"],
  [["io", "squad", "lst"], "unknown command 'lst'"],
  [["io", "squad", "list", "--jsn"], "unknown option '--jsn'"],
  [["io", "squad", "create", "web"], "missing required argument 'folder'"],
  [["io", "--daemn"], "unknown option '--daemn'"],
  [["swarm", "resum", "r1"], 'swarm would take "resum" for an issue'],
  [["swarm", "run", "--aply", "an issue"], "unknown option '--aply'"],
])("a mistake in an example is noticed: %j", (words, why) => {
  expect(whyRefused(words)).toContain(why);
});

test.each([
  [["io", "squad", "crate"], "io squad has no command crate"],
  [["io", "status", "--jsn"], "io status has no flag --jsn"],
  [["swarm", "--aply"], "swarm has no flag --aply"],
  [mentionsIn("`io task list, show <id> [--lst]`")[1]!, "io task show has no flag --lst"],
])("a mistake in a sentence is noticed: %j", (words, why) => {
  expect(whyUnknown(words)).toBe(why);
});

const complaintsAt = (where: string, why: string | undefined): string[] => (why === undefined ? [] : [`${where}: ${why}`]);

/** The calls of our programs in code blocks that show what to type. */
function examplesIn(text: string): string[][] {
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|shell|console)\n(.*?)^ *```/gms)].map(([, block = ""]) => block);
  return blocks.flatMap((block) => {
    // In blocks with prompts, only lines after a prompt are typed. Placeholders are in angle brackets.
    const typed = [...block.matchAll(/^\$ (.*)$/gm)].map(([, line]) => line).join("\n") || block;
    const line = readShell(typed.replace(/<([a-z][a-z -]*)>/g, (_, name: string) => name.replaceAll(" ", "-")));
    const calls = commandsIn(line).map(({ words }) => words.map(({ text: word }) => word));
    return calls.map(withoutVariables).filter(([program]) => program === "io" || program === "swarm");
  });
}

function withoutVariables(words: string[]): string[] {
  const start = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  return start < 0 ? [] : words.slice(start);
}

/** Parses a command line as the real programs do, without running it. */
function whyRefused([program = "", ...args]: readonly string[]): string | undefined {
  const all = buildProgram(shell);
  disarm(all);
  const typed = program === "swarm" ? ["swarm", ...args] : args;
  try {
    all.parse(typed, { from: "user" });
  } catch (error) {
    return messageOf(error);
  }
  const swarm = all.commands.find((each) => each.name() === "swarm")!;
  const [first] = typed[0] === "swarm" ? typed.slice(1) : [];
  const isWord = first !== undefined && /^\w+$/.test(first) && !swarm.commands.some((each) => each.name() === first);
  return isWord ? `swarm would take "${first}" for an issue` : undefined;
}

function disarm(command: Command, isTop = true): void {
  command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  if (isTop) {
    command.action((_options, { args }: Command) => {
      if (args.length === 0) return;
      const isFlag = args[0]!.startsWith("-");
      command.error(`unknown ${isFlag ? "option" : "command"} '${args[0]}'`);
    });
  } else if (command.commands.length === 0) command.action(() => undefined);
  for (const each of command.commands) disarm(each, false);
}

/** Commands mentioned in sentences: `io squad set <slug> --check "<command>"`. */
function mentionsIn(text: string): string[][] {
  const prose = text.replace(/^ *```.*?^ *```/gms, "");
  return [...prose.matchAll(/`((?:io|swarm) [^`\n]+)`/g)].flatMap(([, words = ""]) => {
    // `io task list, show <id>` names two commands.
    const [first = "", ...more] = words.split(/,\s+/);
    const [program = "", group = ""] = first.split(/\s+/);
    return [first, ...more.map((each) => `${program} ${program === "io" ? `${group} ` : ""}${each}`)].map((each) =>
      each.split(/\s+/),
    );
  });
}

/** Why a mention names an unknown command or flag. Only names are checked, because sentences omit the rest. */
function whyUnknown(words: readonly string[]): string | undefined {
  let here = commandCalled(words[0]!);
  const path = [words[0]!];
  for (const word of words.slice(1)) {
    if (/^[[<"'…$-]/.test(word)) break;
    const next = here.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (!next && here.commands.length > 0 && !(here.name() === "swarm" && path.length > 1) && /^[a-z-]+$/.test(word))
      return `${path.join(" ")} has no command ${word}`;
    if (!next) break;
    here = next;
    path.push(word);
  }
  if (words[1]?.startsWith("…")) return undefined;
  const usual = here.name() === "swarm" ? here.commands.find((each) => each.name() === "run") : undefined;
  const known = [here, ...(usual ? [usual] : [])].flatMap((each) => each.options.flatMap(({ long, short }) => [long, short]));
  const flags = words.flatMap((word) => /^\[?(--?[a-z][a-z-]*)/.exec(word)?.[1] ?? []);
  const unknown = flags.find((flag) => ![...known, "--help"].includes(flag));
  return unknown && `${path.join(" ")} has no flag ${unknown}`;
}

function commandCalled(program: string): Command {
  const all = names.get("io") ?? buildProgram(shell);
  names.set("io", all);
  return program === "io" ? all : all.commands.find((each) => each.name() === program)!;
}
