import { nearest } from "../../lib/nearest.ts";
import { type Command, columns } from "./command.ts";
import { controlCommands } from "./control.ts";
import { knowledgeCommands } from "./knowledge.ts";
import { workCommands } from "./work.ts";

/** What the terminal itself does, named here for the help and for completion. */
const OWN: readonly Omit<Command, "run">[] = [
  { name: "help", help: "this" },
  { name: "new", takes: "[name]", help: "begins another conversation" },
  { name: "conversation", takes: "[name]", help: "lists the conversations, or goes to one" },
  { name: "copy", help: "puts the last answer on the clipboard" },
  { name: "quit", help: "leaves; IO goes on in the background" },
];

export const ASKED: readonly Command[] = [...controlCommands, ...workCommands, ...knowledgeCommands];
export const COMMAND_NAMES: readonly string[] = [...OWN, ...ASKED].map(({ name }) => name).sort();

const KEYS = [
  ["Enter", "sends; says it into the turn while one runs"],
  ["Alt+Enter", "queues it behind the turn that runs"],
  ["Escape", "cancels the turn"],
  ["Alt+Up", "takes back what was queued last"],
  ["Ctrl-J", "a new line (so does a backslash before Enter)"],
  ["Up, Down", "what was sent before"],
  ["Tab", "completes commands, @squads and files"],
  ["Ctrl-O", "shows the result of the last tool, or folds it"],
  ["Ctrl-G", "opens your editor on the line"],
  ["!command", "runs a command in your own shell"],
  ["Ctrl-C", "clears the line; twice on an empty one leaves"],
];

/** Every command and key, in a few lines. */
export function helpText(): string {
  const commands = [...OWN, ...ASKED].map(({ name, takes, help }) => [`/${name}${takes ? ` ${takes}` : ""}`, help]);
  return columns([...commands, ["", ""], ...KEYS]);
}

/** A line that is a command: a slash, a name, and nothing that looks like a path. */
export function commandIn(text: string): { name: string; rest: string } | undefined {
  const found = /^\/([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  return found ? { name: found[1]!.toLowerCase(), rest: (found[2] ?? "").trim() } : undefined;
}

export function unknownCommand(name: string): string {
  const near = nearest(name, COMMAND_NAMES);
  return `There is no command /${name}.${near ? ` Did you mean /${near}?` : " /help lists them."}`;
}
