import { createHash, type Hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { pictureId } from "../../engine/sessions/pictures.ts";
import { newId } from "../../lib/ids.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import { holdsUp } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { Event } from "../../protocol/events.ts";
import { Conversation, type Message } from "../../protocol/messages.ts";
import { RULE, restOf } from "../../protocol/turn-text.ts";
import type { Attachments } from "../../store/attachments.ts";
import type { ConversationLog } from "../../store/conversation-log.ts";
import type { EventLog } from "../../store/events.ts";
import type { Hub } from "../../store/hub.ts";
import type { Messages } from "../../store/messages.ts";
import type { Store } from "../../store/open.ts";
import type { OpenAiRequests } from "../../store/openai-requests.ts";
import { withSteps } from "./client-tools.ts";
import { badRequest, OpenAiError } from "./errors.ts";
import type { Said, Wanted } from "./request.ts";

export interface TurnsDeps {
  store: Pick<Store, "transaction">;
  inbox: Pick<Inbox, "submit" | "cancel" | "finished">;
  messages: Pick<Messages, "find" | "findByKey" | "list">;
  requests: OpenAiRequests;
  attachments: Pick<Attachments, "add">;
  talk: Pick<ConversationLog, "begin">;
  hub: Pick<Hub, "subscribe">;
  events: Pick<EventLog, "turnSoFar">;
  approvals: { waiting(): Approval[] };
  /** Whether the daemon is shutting down, so that a lost connection is not the client's decision. */
  isClosing: () => boolean;
}

/** What a client's headers say about its request. */
export interface Hints {
  /** IO's own header. */
  conversation: string | undefined;
  /** Open WebUI's id of the chat. */
  chat: string | undefined;
  idempotencyKey: string | undefined;
}

/** Receives a turn's text and notes as they arrive. */
export interface TurnListener {
  onText(text: string): void;
  /** A line about what IO is doing or waiting for. */
  onNote(text: string): void;
}

/** How long a lost answer is kept for a repeated request. */
const RETRY_MS = 3_600_000;
/** The most letters of a client's history that begin a conversation. */
const MOST_HISTORY = 1_000_000;
/** How many letters are digested without a pause, which takes a few milliseconds. */
const PAUSE_EVERY = 500_000;

/** Maps requests to messages of conversations: starts or joins, follows, and cancels them when their clients disconnect. */
export function createTurns(deps: TurnsDeps) {
  const { store, inbox, messages, requests, attachments, talk, hub, events, approvals, isClosing } = deps;
  const followers = new Map<string, number>();
  /** Messages that are being cancelled because their clients left. */
  const abandoned = new Set<string>();

  /** The message of the same request, if it is unfinished or its answer never arrived. */
  function joinable(id: string | undefined): Message | undefined {
    const message = id === undefined ? undefined : messages.find(id);
    // A client that gives up and asks again wants an answer, not the end of what it gave up.
    if (!message || abandoned.has(message.id)) return undefined;
    if (message.finishedAt === null) return message;
    const isFresh = Date.now() - Date.parse(message.finishedAt) < RETRY_MS;
    return message.status === "done" && isFresh && !requests.isAnswered(message.id) ? message : undefined;
  }

  function conversationFor(
    { previous, history }: Wanted,
    { conversation, chat }: Hints,
    before: string,
  ): { name: string; isNew: boolean } {
    if (conversation !== undefined && !Conversation.safeParse(conversation).success)
      throw badRequest("X-IO-Conversation", "is not a conversation's name.");
    const given = conversation ?? (chat ? nameOfChat(chat) : undefined);
    if (given !== undefined) return { name: given, isNew: messages.list(given, 1).length === 0 };
    if (previous !== undefined) return { name: responseOf(messages, previous).conversation, isNew: false };
    const known = knownBy(deps, history, before);
    return known === undefined ? { name: newId("oa").replace("_", "-"), isNew: true } : { name: known, isNew: false };
  }

  function abandon(id: string): void {
    abandoned.add(id);
    inbox.cancel(id);
    void inbox.finished(id).then(() => abandoned.delete(id));
  }

  return {
    /** On disk when this resolves. A repeated request joins the earlier message. */
    async begin(wanted: Wanted, hints: Hints): Promise<Message> {
      const { prompt, pictures, history, system, model, previous, background, metadata } = wanted;
      const key = hints.idempotencyKey === undefined ? undefined : `openai:${hints.idempotencyKey}`;
      const earlier = key === undefined ? undefined : byKey(messages, key, prompt);
      if (earlier) return earlier;
      const { before, said } = await digestsOf(history, prompt);
      const fingerprint = sha256([model, hints, previous ?? null, system, said, pictures.map(pictureId)]);
      const same = joinable(requests.sameAs(fingerprint));
      if (same && key === undefined) return same;
      const files = pictures.map((bytes, index) => attachments.add(`picture-${index + 1}`, bytes).id);
      return store.transaction(() => {
        const { name, isNew } = conversationFor(wanted, hints, before);
        // A new conversation starts with the client's history, which its first session gets.
        if (isNew) talk.begin(name, "openai", newestOf(history));
        const given = { text: prompt, conversation: name, source: { channel: "openai" as const }, attachments: files };
        const message = inbox.submit({ ...given, ...(key && { idempotencyKey: key }) });
        requests.add({ messageId: message.id, fingerprint, said, system, fields: { previous, background, metadata } });
        return message;
      });
    },

    /** Streams a turn from its beginning; resolves with the finished message. */
    async follow({ id, conversation }: Message, { onText, onNote }: TurnListener): Promise<Message> {
      let said = "";
      const noted = new Set<string>();
      const note = (key: string, text: string) => {
        if (!noted.has(key)) onNote(text);
        noted.add(key);
      };
      const handleEvent = (event: Event) => {
        if (event.type === "message.delta" && event.data.id === id) {
          if (event.data.restarted && said !== "") onText(RULE);
          said = (event.data.restarted ? "" : said) + event.data.text;
          if (event.data.text !== "") onText(event.data.text);
        } else if (event.type === "message.tool" && event.data.id === id) {
          const { tool, args, callId = tool } = event.data;
          if (args !== undefined) note(callId, `${tool}: ${args}\n`);
        } else if (event.type === "approval.asked" && blocks(event.data, id, conversation)) {
          note(event.data.id, waitingLine(event.data));
        }
      };
      let after = Number.MAX_SAFE_INTEGER;
      const unsubscribe = hub.subscribe((event) => void (event.id > after && handleEvent(event)));
      try {
        const { events: soFar, upTo } = events.turnSoFar(conversation, id);
        after = upTo;
        for (const event of soFar) handleEvent(event);
        for (const approval of approvals.waiting())
          if (blocks(approval, id, conversation)) note(approval.id, waitingLine(approval));
        const message = await inbox.finished(id);
        const rest = message.status === "done" ? restOf(message.reply ?? "", said) : "";
        if (rest !== "") onText(rest);
        return message;
      } finally {
        unsubscribe();
      }
    },

    /** A client waits for a message until it calls the returned function; `hasLeft` says that it left without an answer. */
    hold({ id, conversation }: Message): (hasLeft: boolean) => void {
      followers.set(id, (followers.get(id) ?? 0) + 1);
      return (hasLeft) => {
        const left = (followers.get(id) ?? 1) - 1;
        if (left > 0) followers.set(id, left);
        else followers.delete(id);
        if (!hasLeft || left > 0 || isClosing()) return;
        // The person being asked may still want the work done.
        if (!approvals.waiting().some((approval) => blocks(approval, id, conversation))) abandon(id);
      };
    },
    answered: (id: string) => requests.answered(id),
    replyOf: (item: string) => replyOf(messages, item),
    /** What a response's request said of it. */
    fieldsOf: (id: string) => requests.fieldsOf(id),
  };
}
export type Turns = ReturnType<typeof createTurns>;

/** The message of an earlier request with the same key. */
function byKey(messages: Pick<Messages, "findByKey">, key: string, prompt: string): Message | undefined {
  const earlier = messages.findByKey(key);
  if (earlier && earlier.text !== prompt)
    throw new OpenAiError(409, "This Idempotency-Key was used for another request.", "idempotency_key_reused");
  return earlier;
}

/** The conversation that has exactly this history, and nothing after it. */
function knownBy({ messages, requests }: TurnsDeps, history: readonly Said[], before: string): string | undefined {
  const last = history.at(-1);
  if (last?.role !== "assistant") return undefined;
  const said = last.text.trim();
  const isItsEnd = ({ id, conversation, reply }: Message) =>
    // A stream also contained text before tool calls; the reply is only its end.
    Boolean(reply?.trim()) && said.endsWith(reply!.trim()) && messages.list(conversation, 1)[0]?.id === id;
  for (const id of requests.endingWith(before)) {
    const message = messages.find(id);
    if (message && isItsEnd(message)) return message.conversation;
  }
  return undefined;
}

/** Finds the message by its response id. */
export function responseOf(messages: Pick<Messages, "find">, responseId: string): Message {
  const message = responseId.startsWith("resp_") ? messages.find(responseId.slice("resp_".length)) : undefined;
  if (message?.source.channel === "openai") return message;
  throw new OpenAiError(
    400,
    `There is no response ${JSON.stringify(responseId.slice(0, 100))}.`,
    "previous_response_not_found",
    "previous_response_id",
  );
}

/** The text of an answer, by the id of its item in a response. */
function replyOf(messages: Pick<Messages, "find">, item: string): string | undefined {
  const message = item.startsWith("msg_") ? messages.find(item.slice("msg_".length)) : undefined;
  return message?.source.channel === "openai" ? (message.reply ?? undefined) : undefined;
}

const blocks = (approval: Approval, id: string, conversation: string) => holdsUp(approval, { id, conversation, squad: null });

const waitingLine = ({ id, summary }: Approval): string =>
  `A person is asked: ${summary}\nTo decide: io approval allow ${id}, or io approval deny ${id}\n`;

/** Other programs use ids of their own format. */
function nameOfChat(chat: string): string {
  const plain = chat.replace(/[^A-Za-z0-9._-]/g, "-");
  return plain === chat && plain.length <= 58 ? `webui-${plain}` : `webui-${plain.slice(0, 40)}-${sha256([chat]).slice(0, 12)}`;
}

/** As much of a history as a hand-over holds. */
function newestOf(history: readonly Said[]): { role: Said["role"]; content: string }[] {
  let length = 0;
  const newest: { role: Said["role"]; content: string }[] = [];
  for (const said of history.toReversed()) {
    const content = withSteps(said);
    length += content.length;
    if (length > MOST_HISTORY) break;
    newest.push({ role: said.role, content });
  }
  return newest.reverse();
}

/** Digests of everything said before the last answer, and of everything up to the prompt. Pauses in a long history. */
async function digestsOf(history: readonly Said[], prompt: string): Promise<{ before: string; said: string }> {
  let sincePause = 0;
  const hash = createHash("sha256").update("[");
  const end = (of: Hash) => of.copy().update("]").digest("hex");
  let before = end(hash);
  for (const [index, { role, text, steps }] of [...history, { role: "user", text: prompt, steps: [] }].entries()) {
    if (index === history.length - 1) before = end(hash);
    const told = JSON.stringify([role, text.trim(), ...(steps.length > 0 ? [steps] : [])]);
    hash.update(`${index > 0 ? "," : ""}${told}`);
    sincePause += told.length;
    if (sincePause < PAUSE_EVERY) continue;
    sincePause = 0;
    await setImmediate();
  }
  return { before, said: end(hash) };
}
const sha256 = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");
