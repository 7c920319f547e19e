import type { OwnCommand } from "../../home/own-command.ts";
import { nearest } from "../../lib/nearest.ts";
import { changeCommands } from "./changes.ts";
import { type Command, columns } from "./command.ts";
import { controlCommands } from "./control.ts";
import { knowledgeCommands } from "./knowledge.ts";
import { windowCommands } from "./windows.ts";
import { workCommands } from "./work.ts";

/** Commands that the terminal itself handles, listed for the help and for completion. */
const OWN: readonly Omit<Command, "run">[] = [
  { name: "help", help: "this" },
  { name: "new", takes: "[name]", help: "begins another conversation" },
  { name: "conversation", takes: "[name]", help: "lists the conversations, or goes to one" },
  { name: "copy", help: "puts the last answer on the clipboard" },
  { name: "quit", help: "leaves; IO goes on in the background" },
];

export const ASKED: readonly Command[] = [
  ...controlCommands,
  ...changeCommands,
  ...windowCommands,
  ...workCommands,
  ...knowledgeCommands,
];
const COMMAND_NAMES: readonly string[] = [...OWN, ...ASKED].map(({ name }) => name).sort();

/** Whether a command is IO's own. It takes precedence over a user's command with the same name. */
export const isBuiltIn = (name: string): boolean => name === "exit" || COMMAND_NAMES.includes(name);

/** Every available command, including those of the user and the project. */
export function commandList(own: readonly OwnCommand[]): { name: string; help: string }[] {
  const written = own.filter(({ name }) => !isBuiltIn(name)).map((each) => ({ name: each.name, help: aboutOwn(each) }));
  return [...OWN, ...ASKED, ...written].map(({ name, help }) => ({ name, help })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

const aboutOwn = ({ description, source }: OwnCommand): string => `${description || "a command of your own"} (${source})`;

const KEYS = [
  ["Enter", "sends; says it into the turn while one runs"],
  ["Alt+Enter", "queues it behind the turn that runs"],
  ["Escape", "cancels the turn"],
  ["Alt+Up", "takes back what was queued last"],
  ["Ctrl-J", "a new line (so does a backslash before Enter)"],
  ["Up, Down", "what was sent before"],
  ["Tab", "completes commands, @squads and files; again goes through the menu"],
  ["@file", "the text of the file, or the names in the folder, goes along"],
  ["Ctrl-R", "searches what was sent before"],
  ["Shift+Tab", "goes to the next mode: plan, ask, auto"],
  ["Ctrl-O", "shows the result of the last tool, or folds it"],
  ["Ctrl-G", "opens your editor on the line"],
  ["!command", "runs a command in your own shell"],
  ["Ctrl-C", "clears the line (Up brings it back); on an empty one cancels the turn, or leaves if pressed twice"],
];

/** What the two kinds of teams are for. */
const TEAMS = [
  ["squad", "a lasting team for one project: give it tasks, it remembers what was decided (/squads, io squad)"],
  ["swarm", "one issue through a whole pipeline of plan, code, tests and reviews, onto a branch (io swarm, /runs)"],
];

/** Every command and key in a few lines. The plain chat's help leaves out what it cannot do. */
export function helpText(own: readonly OwnCommand[] = [], { isPlain = false } = {}): string {
  const known = [...OWN, ...ASKED].filter(({ name }) => !(isPlain && needsScreen(name)));
  const commands = known.map(({ name, takes, help }) => [`/${name}${takes ? ` ${takes}` : ""}`, help]);
  const written = own.map((each) => [
    `/${each.name}`,
    isBuiltIn(each.name) ? `not read from ${each.source}: IO has a command of that name` : aboutOwn(each),
  ]);
  return columns([...commands, ...written, ["", ""], ...(isPlain ? [] : [...KEYS, ["", ""]]), ...TEAMS]);
}

/** Whether the plain chat lacks a command. */
export const needsScreen = (name: string): boolean => ["new", "conversation", "copy"].includes(name);

/** Parses a command: a slash and a name, but nothing that looks like a path. */
export function commandIn(text: string): { name: string; rest: string } | undefined {
  const found = /^\/([A-Za-z][A-Za-z0-9_-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  return found ? { name: found[1]!.toLowerCase(), rest: (found[2] ?? "").trim() } : undefined;
}

export function unknownCommand(name: string, own: readonly OwnCommand[] = []): string {
  const near = nearest(name, [...COMMAND_NAMES, ...own.map((each) => each.name)]);
  return `There is no command /${name}.${near ? ` Did you mean /${near}?` : " /help lists them."}`;
}
