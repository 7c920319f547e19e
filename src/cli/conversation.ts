import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { z } from "zod";
import { conversationMarkdown, readConversation } from "../client/export.ts";
import { usageError } from "../lib/errors.ts";
import type { MessageList } from "../protocol/api.ts";
import type { ConversationChange, ConversationInfo, ConversationList, DeletedConversation } from "../protocol/conversations.ts";
import { type Message, shownFailure } from "../protocol/messages.ts";
import { showState } from "../protocol/shown-state.ts";
import { confirm, wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

type Messages = z.infer<typeof MessageList>;

const MOST = 200;
const pathOf = (name: string) => `/api/conversations/${encodeURIComponent(name)}`;

/** `io conversation`: the conversations and their messages. */
export function conversationCommands(program: Command, shell: Shell): void {
  const conversation = program.command("conversation").description("what was said to IO and what it answered");

  conversation
    .command("list")
    .description("the conversations, the latest first")
    .option("--limit <count>", "how many at most", "50")
    .option("--before <name>", "those after this one in the list")
    .option("--search <words>", "only those with these words in name, title or folder")
    .option(...JSON_OPTION)
    .action(async ({ json, limit, before, search }: Json & { limit: string; before?: string; search?: string }) => {
      const most = String(wholeNumber("--limit", limit, MOST));
      const query = new URLSearchParams({ limit: most, ...(before && { before }), ...(search && { q: search }) });
      const list = await shell.client().request<ConversationList>("GET", `/api/conversations?${query}`);
      const more = list.next === undefined ? [] : [`(there are more; go on with --before ${list.next})`];
      const none = search ? "No conversation has these words." : 'Nothing was said yet: io send "<text>"';
      shell.print(list, [...list.items.map(line), ...more].join("\n") || none, { json });
    });

  conversation
    .command("show")
    .description("the latest messages of a conversation, the oldest of them first")
    .argument("<name>", "such as main")
    .option("--limit <count>", "how many at most", "20")
    .option("--before <id>", "those before this message")
    .option(...JSON_OPTION)
    .action(async (name: string, { json, limit, before }: Json & { limit: string; before?: string }) => {
      const most = wholeNumber("--limit", limit, MOST);
      const query = new URLSearchParams({ conversation: name, limit: String(most), ...(before && { before }) });
      const client = shell.client();
      // Fails if the conversation does not exist, which an empty list of messages would not show.
      const info = await client.request<ConversationInfo>("GET", pathOf(name));
      const page = await client.request<Messages>("GET", `/api/messages?${query}`);
      shell.print(page, () => format(info, page), { json });
    });

  conversation
    .command("rename")
    .description("give a conversation a title; its name stays")
    .argument("<name>", "such as main")
    .argument("<title>", 'a few words; "" goes back to the first message\'s words')
    .option(...JSON_OPTION)
    .action(async (name: string, title: string, options: Json) => {
      const client = shell.client();
      await client.request<ConversationInfo>("GET", pathOf(name));
      const renamed = await client.request<ConversationInfo>("PATCH", pathOf(name), { title: title.trim() || null });
      shell.print(renamed, `${name} is now called "${renamed.title ?? name}".`, options);
    });

  conversation
    .command("set")
    .description(
      'set folder, mode, model or news of a conversation; "default" takes one back. Makes the conversation if there is none',
    )
    .argument("<name>", "such as main")
    .option("--folder <path>", "the project that it works in")
    .option("--mode <mode>", "plan, ask, auto or full: how much is done unasked")
    .option("--model <model>", "the model that answers in it")
    .option("--news <which>", "which news goes out at once: all, urgent or none")
    .option(...JSON_OPTION)
    .action(
      async (name: string, { json, ...given }: Json & { folder?: string; mode?: string; model?: string; news?: string }) => {
        const changes = Object.fromEntries(
          Object.entries(given).map(([key, value]) => [
            key,
            value === "default" ? null : key === "folder" ? resolve(value) : value,
          ]),
        ) as ConversationChange;
        if (Object.keys(changes).length === 0) throw usageError("Say what to set: --folder, --mode, --model or --news.");
        const changed = await shell.client().request<ConversationInfo>("PATCH", pathOf(name), changes);
        shell.print(changed, line(changed), { json });
      },
    );

  conversation
    .command("delete")
    .description("cancel what waits or runs in a conversation, and delete all that was said in it")
    .argument("<name>", "such as main")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (name: string, { json, yes }: Json & { yes?: boolean }) => {
      const client = shell.client();
      const { messages, running, waiting } = await client.request<ConversationInfo>("GET", pathOf(name));
      const open = running + waiting > 0 ? `, ${running + waiting} of them unfinished` : "";
      await confirm(shell, `Delete the conversation "${name}" with ${count(messages, "message")}${open}?`, yes);
      const deleted = await client.request<DeletedConversation>("DELETE", pathOf(name));
      const cancelled = deleted.cancelled > 0 ? `, ${deleted.cancelled} of them cancelled first` : "";
      shell.print(deleted, `Deleted "${name}": ${count(deleted.messages, "message")}${cancelled}.`, { json });
    });

  conversation
    .command("export")
    .description("print a whole conversation, the oldest message first")
    .argument("<name>", "such as main")
    .addOption(new Option("--format <format>", "as Markdown or as JSON").choices(["md", "json"]).default("md"))
    .option(...JSON_OPTION)
    .action(async (name: string, { json, format }: Json & { format: string }) => {
      const exported = await readConversation(shell.client(), name);
      shell.print(exported, () => conversationMarkdown(exported), { json: json || format === "json" });
    });
}

const shownState = (of: Pick<Message, "status" | "waitsFor">) => {
  const { mark, words } = showState({ kind: "message", ...of });
  return `${mark} ${words}`;
};
const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function line({
  name,
  title,
  folder,
  mode,
  model,
  news,
  messages,
  lastMessageAt,
  unread,
  running,
  waitsFor,
  waiting,
}: ConversationInfo): string {
  return [
    `${name}  ${count(messages, "message")}`,
    ...(running > 0 ? [shownState({ status: "running", waitsFor })] : []),
    ...(waiting > 0 ? [`${waiting} queued`] : []),
    ...(unread > 0 ? [`${unread} unread`] : []),
    ...(lastMessageAt === null ? [] : [`last ${lastMessageAt}`]),
    ...(title === null ? [] : [`"${title}"`]),
    ...(folder === null ? [] : [folder]),
    ...[mode, model, news ? `news: ${news}` : null].flatMap((each) => (each === null ? [] : [each])),
  ].join("  ");
}

function format({ name, folder }: ConversationInfo, { items, next }: Messages): string {
  if (items.length === 0) return `Nothing more was said in "${name}"${folder === null ? "" : ` (${folder})`}.`;
  const earlier = next === undefined ? [] : [`(there is more; go on with --before ${next})`];
  return [...earlier, ...[...items].reverse().map(exchange)].join("\n\n");
}

function exchange(message: Message): string {
  const { createdAt, source, text, reply } = message;
  const time = createdAt.slice(0, 16).replace("T", " ");
  const end = shownFailure(message) ?? (reply === null ? `(${showState({ kind: "message", ...message }).words})` : undefined);
  return [`${time}  [via ${source.channel}] ${text}`, ...(reply === null ? [] : [reply]), ...(end ? [end] : [])].join("\n");
}
