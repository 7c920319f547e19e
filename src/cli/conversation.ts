import type { Command } from "commander";
import type { z } from "zod";
import type { ConversationList, MessageList } from "../protocol/api.ts";
import { type Message, shownFailure } from "../protocol/messages.ts";
import { wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

type Conversations = z.infer<typeof ConversationList>;
type Messages = z.infer<typeof MessageList>;

const MOST_MESSAGES = 200;

/** What was said, from the command line. */
export function conversationCommands(program: Command, shell: Shell): void {
  const conversation = program.command("conversation").description("what was said to IO and what it answered");

  conversation
    .command("list")
    .description("all conversations, the latest first")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await shell.client().request<Conversations>("GET", "/api/conversations");
      const lines = list.items.map(
        ({ name, messages, waiting, lastAt }) =>
          `${name}  ${messages} messages${waiting > 0 ? `, ${waiting} waiting` : ""}  last ${lastAt}`,
      );
      shell.print(list, lines.join("\n") || 'Nothing was said yet: io send "<text>"', options);
    });

  conversation
    .command("show")
    .description("the latest messages of a conversation, the oldest of them first")
    .argument("<name>", "such as main")
    .option("--limit <count>", "how many at most", "20")
    .option("--before <id>", "those before this message")
    .option(...JSON_OPTION)
    .action(async (name: string, { json, limit, before }: Json & { limit: string; before?: string }) => {
      const most = wholeNumber("--limit", limit, MOST_MESSAGES);
      const query = new URLSearchParams({ conversation: name, limit: String(most), ...(before && { before }) });
      const page = await shell.client().request<Messages>("GET", `/api/messages?${query}`);
      shell.print(page, () => tell(name, page), { json });
    });
}

function tell(name: string, { items, next }: Messages): string {
  if (items.length === 0) return `Nothing more was said in "${name}". "io conversation list" names all conversations.`;
  const earlier = next === undefined ? [] : [`(there is more; go on with --before ${next})`];
  return [...earlier, ...[...items].reverse().map(exchange)].join("\n\n");
}

function exchange(message: Message): string {
  const { createdAt, source, text, reply, status } = message;
  const time = createdAt.slice(0, 16).replace("T", " ");
  const end = shownFailure(message) ?? (reply === null ? `(${status})` : undefined);
  return [`${time}  [via ${source.channel}] ${text}`, ...(reply === null ? [] : [reply]), ...(end ? [end] : [])].join("\n");
}
