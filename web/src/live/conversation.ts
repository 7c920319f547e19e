import type { Event } from "../../../src/protocol/events.ts";
import type { Message, MessageProgress, ToolUse } from "../../../src/protocol/messages.ts";
import { formatRetry } from "../../../src/protocol/shown-state.ts";
import { addToolNews } from "../../../src/protocol/tool-news.ts";

/** A message, with the events of its turn while it is running. */
export interface Entry {
  /** Replaced by a new object whenever something in it changes. */
  message: Message;
  /** The reply so far. */
  text: string;
  tools: ToolUse[];
  /** The model's last failed attempt, until the turn makes progress again. */
  retry?: string | undefined;
  /** The ID of the last event included in this entry. */
  upTo: number;
  /** Whether everything said before this page was opened is loaded. */
  whole: boolean;
}

const RANK: Record<Message["status"], number> = { queued: 0, running: 1, done: 2, failed: 2, cancelled: 2 };

/**
 * The messages of one conversation, from lists and events. A list requested before an event never undoes it: a message's status
 * only moves forward.
 */
export function createConversation(name: string, now: () => Date = () => new Date()) {
  const entries = new Map<string, Entry>();
  /** Events of turns whose earlier progress is still being loaded. */
  const waiting = new Map<string, Event[]>();

  const put = (message: Message): Entry => {
    const known = entries.get(message.id);
    if (!known) {
      const whole = message.status !== "running";
      const entry: Entry = { message, text: message.reply ?? "", tools: [], upTo: 0, whole };
      entries.set(message.id, entry);
      return entry;
    }
    if (RANK[message.status] >= RANK[known.message.status]) known.message = { ...message, steered: longer(known, message) };
    if (known.message.finishedAt !== null) known.text = known.message.reply ?? "";
    return known;
  };

  const longer = ({ message: known }: Entry, { steered }: Message) =>
    known.steered.length > steered.length ? known.steered : steered;

  const hear = (entry: Entry | undefined, id: number, change: (entry: Entry) => void) => {
    if (!entry || entry.message.finishedAt !== null || id <= entry.upTo) return;
    change(entry);
    entry.upTo = Math.max(entry.upTo, id);
  };

  return {
    name,
    load: (messages: readonly Message[]): void => {
      for (const message of messages) put(message);
    },
    /** Adds what was said before this page was opened. */
    catchUp({ id, text, tools, upTo }: MessageProgress): void {
      const entry = entries.get(id);
      if (!entry || entry.message.finishedAt !== null || entry.whole) return;
      const later = waiting.get(id) ?? [];
      waiting.delete(id);
      Object.assign(entry, { text, tools, upTo, whole: true });
      for (const event of later) this.apply(event);
    },
    /** Returns true if the event was about this conversation. */
    apply(event: Event): boolean {
      switch (event.type) {
        case "message.queued": {
          if (event.data.conversation !== name) return false;
          const known = entries.get(event.data.id);
          if (!known) put(fresh(event.data, now()));
          else if (known.message.status === "queued") known.message = { ...known.message, text: event.data.text };
          return true;
        }
        case "message.started": {
          const entry = entries.get(event.data.id);
          if (!entry || entry.message.finishedAt !== null) return entry !== undefined;
          entry.message = { ...entry.message, status: "running", startedAt: entry.message.startedAt ?? now().toISOString() };
          Object.assign(entry, { text: "", tools: [], upTo: event.id, whole: true });
          return true;
        }
        case "message.retried": {
          const entry = entries.get(event.data.id);
          const { data } = event;
          hear(entry, event.id, (each) => {
            each.retry = formatRetry(data);
          });
          return entry !== undefined;
        }
        case "message.delta":
        case "message.tool": {
          const entry = entries.get(event.data.id);
          if (entry && !entry.whole) waiting.set(event.data.id, [...(waiting.get(event.data.id) ?? []), event]);
          else if (event.type === "message.delta") {
            const { text, restarted } = event.data;
            hear(entry, event.id, (each) => {
              each.retry = undefined;
              each.text = (restarted ? "" : each.text) + text;
            });
          } else {
            const news = event.data;
            hear(entry, event.id, (each) => {
              each.retry = undefined;
              each.tools = addToolNews(each.tools, news);
            });
          }
          return entry !== undefined;
        }
        case "message.steered": {
          const entry = entries.get(event.data.id);
          const { text } = event.data;
          if (entry) {
            const steered = [...entry.message.steered, { text, createdAt: now().toISOString() }];
            entry.message = { ...entry.message, steered };
          }
          return entry !== undefined;
        }
        case "message.finished":
          if (event.data.conversation !== name) return false;
          put(event.data);
          return true;
        default:
          return false;
      }
    },
    find: (id: string): Entry | undefined => entries.get(id),
    /** Oldest first. */
    list: (): Entry[] =>
      [...entries.values()].sort((a, b) =>
        a.message.createdAt < b.message.createdAt ? -1 : a.message.createdAt > b.message.createdAt ? 1 : 0,
      ),
    running: (): Entry | undefined => [...entries.values()].find(({ message }) => message.status === "running"),
  };
}
export type ConversationState = ReturnType<typeof createConversation>;

type Queued = Pick<Message, "id" | "conversation" | "source" | "text"> & { attachments?: Message["attachments"] | undefined };

function fresh({ id, conversation, source, text, attachments = [] }: Queued, now: Date): Message {
  return {
    ...{
      id,
      conversation,
      source,
      text,
      attachments,
      steered: [],
      status: "queued",
      reply: null,
      partial: false,
      error: null,
      attempts: 0,
    },
    route: { answered: "not yet", tools: [], tasks: [], runs: [] },
    ...{ createdAt: now.toISOString(), startedAt: null, finishedAt: null },
    usage: { calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0 },
  };
}
