import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { callSummary } from "../../protocol/call-summary.ts";
import { type Message, type MessageProgress, type Source, shownFailure } from "../../protocol/messages.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { textBlock } from "./content.ts";
import { contentOf, describeCall } from "./tools.ts";
import { callIdOf } from "./turn-reporter.ts";

export interface ReplayDeps {
  access: Pick<AcpAccess, "request">;
  conversation: string;
  folder: string;
  /** Undefined: read the history without showing it. */
  tell: ((update: SessionUpdate) => Promise<void>) | undefined;
}

/** The history of a conversation. */
export interface Replayed {
  /** The ids of finished messages. */
  finished: string[];
  /** Running and queued messages, oldest first, with the progress of the running one. */
  unfinished: { message: Message; progress?: MessageProgress }[];
}

interface JournalCall {
  callId: string;
  tool: string;
  args: string;
  state: string;
  result: string | null;
}

const PAGE = 200;

/** Whether a person sent it, not IO itself or a schedule. */
export const isOfPerson = ({ channel }: Source): boolean => channel !== "background" && channel !== "schedule";

/** Replays everything that was said in a conversation, oldest first. */
export async function replayMessages({ access, conversation, folder, tell }: ReplayDeps): Promise<Replayed> {
  const replayed: Replayed = { finished: [], unfinished: [] };
  for (const message of await messagesOf(access, conversation)) {
    const address = `/api/messages/${segment(message.id)}`;
    if (message.status !== "queued" && isOfPerson(message.source)) await tell?.(userSaid(message.id, withFiles(message)));
    if (message.finishedAt === null) {
      const isRunning = message.status === "running";
      const progress = isRunning ? await access.request<MessageProgress>("GET", `${address}/progress`) : undefined;
      replayed.unfinished.push({ message, ...(progress && { progress }) });
      continue;
    }
    replayed.finished.push(message.id);
    if (!tell) continue;
    for (const { text } of message.steered) await tell(userSaid(message.id, text));
    if (message.route.tools.length > 0) {
      const { items } = await access.request<{ items: JournalCall[] }>("GET", `${address}/calls?limit=500`);
      for (const call of items) await tell(endedCall(message.id, call, folder));
    }
    const reply = [message.reply, shownFailure(message)].filter(Boolean).join("\n\n");
    const messageId = `${message.id}-reply`;
    if (reply !== "") await tell({ sessionUpdate: "agent_message_chunk", content: textBlock(reply), messageId });
  }
  return replayed;
}

const withFiles = ({ text, attachments }: Message): string =>
  [text, ...attachments.map(({ name }) => `(attached: ${name})`)].join("\n");

const userSaid = (messageId: string, text: string): SessionUpdate => ({
  sessionUpdate: "user_message_chunk",
  content: textBlock(text),
  messageId,
});

function endedCall(message: string, { callId, tool, args, state, result }: JournalCall, folder: string): SessionUpdate {
  return {
    sessionUpdate: "tool_call",
    toolCallId: callIdOf(message, callId),
    ...describeCall({ tool, args: callSummary(tool, args), input: args }, folder),
    status: state === "done" ? "completed" : "failed",
    content: contentOf({ text: result ?? undefined }),
  };
}

/** Oldest first. */
async function messagesOf(access: ReplayDeps["access"], conversation: string): Promise<Message[]> {
  const pages: Message[][] = [];
  let next: string | undefined;
  do {
    const query = new URLSearchParams({ conversation, limit: String(PAGE), ...(next !== undefined && { before: next }) });
    const page: { items: Message[]; next?: string } = await access.request("GET", `/api/messages?${query}`);
    pages.push(page.items);
    next = page.next;
  } while (next !== undefined);
  return pages.flat().reverse();
}
