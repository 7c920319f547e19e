import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { oneLine } from "../../lib/quoted.ts";
import { locate } from "../../lib/real-path.ts";
import { terminalSafe } from "../../lib/terminal-safe.ts";
import type { FileEdit } from "../../protocol/messages.ts";
import { textBlock } from "./content.ts";

const KINDS: Readonly<Record<string, ToolKind>> = {
  shell: "execute",
  shell_output: "read",
  shell_stop: "execute",
  web_fetch: "fetch",
  todo: "think",
  conversation_search: "search",
  skill_search: "search",
  squad_recall: "search",
  wiki_delete: "delete",
  wiki_list: "read",
  wiki_read: "read",
  wiki_search: "search",
  wiki_source: "read",
  wiki_write: "edit",
};
const OPERATIONS: Readonly<Record<string, { kind: ToolKind; words: string }>> = {
  read: { kind: "read", words: "Read" },
  list: { kind: "read", words: "List" },
  search: { kind: "search", words: "Search" },
  find: { kind: "search", words: "Find" },
  write: { kind: "edit", words: "Write" },
  edit: { kind: "edit", words: "Edit" },
  move: { kind: "move", words: "Move" },
  delete: { kind: "delete", words: "Delete" },
};
const WORDS: Readonly<Record<string, string>> = { shell: "Run", web_fetch: "Fetch", todo: "Write the steps" };
const MOST_TITLE = 200;
/** The most text of each side of a diff, and of a call's output, that an editor gets. */
const MOST_DIFFERENCE = 100_000;
const MOST_OUTPUT = 4_000;

/** What is known of a tool call before it has ended. */
export interface KnownCall {
  tool: string;
  /** A one-line summary of the arguments. */
  args: string;
  /** The arguments as JSON; missing if they are long. */
  input?: string | undefined;
}

/** Describes a call for an editor. Relative paths are resolved against the folder. */
export function describeCall({ tool, args, input }: KnownCall, folder: string | null) {
  const given = recordIn(input);
  const operation = tool === "file_ops" ? OPERATIONS[wordIn(given, "operation") || (args.split(" ")[0] ?? "")] : undefined;
  const words = operation?.words ?? WORDS[tool] ?? sentence(tool);
  const about = operation ? wordsBehind(args) : args;
  return {
    title: about === "" || tool === "todo" ? words : `${words} ${inlineCode(about)}`,
    name: tool,
    kind: operation?.kind ?? KINDS[tool] ?? ("other" as const),
    ...locationsOf(tool, given, folder),
    ...(given && { rawInput: given }),
  };
}

function locationsOf(tool: string, given: Record<string, unknown> | undefined, folder: string | null) {
  const path = tool === "file_ops" ? wordIn(given, "path") : "";
  if (path === "" || (folder === null && !path.startsWith("/"))) return {};
  const line = given?.from;
  const location: ToolCallLocation = { path: locate(path, folder ?? "/"), ...(typeof line === "number" && { line }) };
  return { locations: [location] };
}

/** The visible result of a call: its diff, or else its text. */
export function contentOf({ diff, text }: { diff?: FileEdit | undefined; text?: string | undefined }): ToolCallContent[] {
  if (diff && diff.after.length <= MOST_DIFFERENCE && (diff.before ?? "").length <= MOST_DIFFERENCE)
    return [
      {
        type: "diff",
        path: diff.path,
        oldText: diff.before === null ? null : terminalSafe(diff.before),
        newText: terminalSafe(diff.after),
      },
    ];
  if (!text) return [];
  return [{ type: "content", content: textBlock(fenced(text.slice(-MOST_OUTPUT))) }];
}

/** A code block that the text cannot close. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.trimEnd()}\n${fence}`;
}

/** Untrusted text on one line, where markdown does not apply. */
export function inlineCode(text: string): string {
  const line = terminalSafe(oneLine(text, MOST_TITLE));
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`;
}

const wordIn = (given: Record<string, unknown> | undefined, name: string): string =>
  typeof given?.[name] === "string" ? given[name] : "";
const wordsBehind = (args: string) => args.slice(args.indexOf(" ") + 1);
const sentence = (tool: string) => {
  const words = tool.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

function recordIn(json: string | undefined): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json ?? "null");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Shortened arguments are not valid JSON.
    return undefined;
  }
}
