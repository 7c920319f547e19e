import { basename, dirname, resolve } from "node:path";
import { conversationMarkdown, readConversation } from "../../client/export.ts";
import { codeOf, UserError } from "../../lib/errors.ts";
import { withFolder } from "../../lib/pinned/folder.ts";
import { createFile } from "../../lib/pinned/write.ts";
import { realOf } from "../../lib/real-path.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import type { ContextUse } from "../../protocol/turns.ts";
import { type Command, type CommandDeps, columns } from "./command.ts";

const at = ({ conversation }: Pick<CommandDeps, "conversation">) => `/api/conversations/${encodeURIComponent(conversation)}`;

/** Commands about the model's context window, the settings and exports. */
export const windowCommands: readonly Command[] = [
  {
    name: "context",
    help: "what fills the model's window in this conversation",
    async run(deps) {
      const { context } = await deps.client.request<{ context: ContextUse | null }>("GET", `${at(deps)}/context`);
      if (context === null) return "Nothing is in the model's window yet.";
      const { window, total, instructions, tools, conversation, messages } = context;
      const row = (name: string, tokens: number) => [name, tokens.toLocaleString("en"), `${percent(tokens, window)} %`];
      const rows = [row("instructions", instructions), row("tools", tools), row(`${messages} messages`, conversation)];
      return `${columns([...rows, row("all", total), ["window", window.toLocaleString("en"), ""]])}\n/compact makes room, /clear begins anew.`;
    },
  },
  {
    name: "compact",
    help: "empties the model's window but for a short record of what was said",
    async run(deps) {
      await deps.client.request<ConversationInfo>("POST", `${at(deps)}/compact`);
      return "Compacted: the next message begins with a short record of what was said. IO finds the rest when it is asked for.";
    },
  },
  {
    name: "clear",
    help: "has the model begin anew, without what was said; nothing is deleted",
    async run(deps) {
      await deps.client.request<ConversationInfo>("POST", `${at(deps)}/clear`);
      return "Cleared: the model begins anew with the next message. What was said stays on disk (/export, io conversation show).";
    },
  },
  {
    name: "config",
    takes: "[key [value]]",
    help: "the settings; with a key one of them, with a value it is written",
    async run({ client, args: [key, ...words] }) {
      const all = await client.request<Record<string, unknown>>("GET", "/api/config");
      if (key === undefined) return columns(Object.entries(all).map(([name, value]) => [name, shown(value)]));
      if (!(key in all)) throw new UserError(`There is no setting "${key}"; /config lists them.`);
      if (words.length === 0) return `${key} = ${shown(all[key])}`;
      const after = await client.request<Record<string, unknown>>("PATCH", "/api/config", { [key]: valueIn(words.join(" ")) });
      return `${key} = ${shown(after[key])}`;
    },
  },
  {
    name: "export",
    takes: "[file]",
    help: "writes the conversation as Markdown into a new file",
    async run({ client, conversation, rest }) {
      const file = resolve(rest || `${conversation}.md`);
      const text = conversationMarkdown(await readConversation(client, conversation));
      try {
        withFolder(realOf(dirname(file)), (folder) => createFile(folder, basename(file), text, { durable: false }));
      } catch (error) {
        if (codeOf(error) === "EEXIST") throw new UserError(`${file} is there already; name another: /export <file>`);
        throw new UserError(`${file} cannot be written (${codeOf(error) ?? "unknown"}).`, { cause: error });
      }
      return `Written: ${file}`;
    },
  },
];

const percent = (part: number, whole: number): number => (whole > 0 ? Math.round((part / whole) * 100) : 0);

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** Parses JSON; anything else is taken as a string. */
function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A plain word, such as the name of a mode.
    return text;
  }
}
