import type { ConversationInfo } from "../protocol/conversations.ts";
import { type Message, shownFailure } from "../protocol/messages.ts";
import { showState } from "../protocol/shown-state.ts";
import type { Client } from "./client.ts";

const PAGE = 200;

/** A conversation with all its messages, oldest first. */
export interface ExportedConversation extends Omit<ConversationInfo, "messages"> {
  messages: Message[];
}

/** Reads a whole conversation, page by page. Throws if it does not exist. */
export async function readConversation(client: Pick<Client, "request">, name: string): Promise<ExportedConversation> {
  const { messages: _, ...info } = await client.request<ConversationInfo>(
    "GET",
    `/api/conversations/${encodeURIComponent(name)}`,
  );
  const messages: Message[] = [];
  let before: string | undefined;
  do {
    const query = new URLSearchParams({ conversation: name, limit: String(PAGE), ...(before !== undefined && { before }) });
    const page = await client.request<{ items: Message[]; next?: string }>("GET", `/api/messages?${query}`);
    messages.push(...page.items);
    before = page.next;
  } while (before !== undefined);
  return { ...info, messages: messages.reverse() };
}

/** A conversation as Markdown. Questions are quoted, so that their text cannot form headings. */
export function conversationMarkdown({ name, title, folder, messages }: ExportedConversation): string {
  const about = [`Conversation \`${name}\``, ...(folder === null ? [] : [`in \`${folder}\``]), `${messages.length} messages`];
  return [`# ${title ?? name}`, `${about.join(", ")}.`, ...messages.map(exchange)].join("\n\n");
}

function exchange(message: Message): string {
  const { createdAt, source, text, steered, reply } = message;
  const time = createdAt.slice(0, 16).replace("T", " ");
  const asked = [text, ...steered.map((more) => more.text)].map((each) => `> ${each.replace(/\r?\n/g, "\n> ")}`);
  const end = shownFailure(message) ?? (reply === null ? `(${showState({ kind: "message", ...message }).words})` : undefined);
  return [
    `## ${time} UTC, via ${source.channel}`,
    ...asked,
    ...(reply === null ? [] : [reply]),
    ...(end ? [`*${end}*`] : []),
  ].join("\n\n");
}
