import { conflict, messageOf } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { createLanes } from "../lib/lanes.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure, Message, Route, Source } from "../protocol/messages.ts";
import type { ConversationLog } from "../store/conversation-log.ts";
import { isTemporary } from "../store/faults.ts";
import type { Messages, Work } from "../store/messages.ts";
import { type Store, whenNotHeld } from "../store/open.ts";
import type { Answer, Answered } from "./answer.ts";
import type { ConversationSettings } from "./conversation-settings.ts";
import { type Outbox, replyKey } from "./outbox.ts";
import type { Steering } from "./steering.ts";

export interface Submission {
  text: string;
  conversation: string;
  source: Source;
  idempotencyKey?: string | undefined;
  /** Ids of files. */
  attachments?: readonly string[] | undefined;
}

/** The durable queue of messages: first in, first out within a conversation; conversations run in parallel. */
export interface Inbox {
  /** On disk when this returns. */
  submit(submission: Submission): Message;
  /**
   * Submits a message and waits for its end. Nobody gets an answer earlier, so it may reach the disk while the model is working.
   */
  ask(submission: Submission): Promise<Message>;
  /** Changes the text of a waiting message; false if it no longer waits. */
  rewrite(id: string, text: string): boolean;
  /** Resolves with the message once it has ended, in whatever way. */
  finished(id: string): Promise<Message>;
  /** Cancels a waiting or running message; false if it is neither. */
  cancel(id: string): boolean;
  /**
   * Cancels everything that waits or runs in a conversation, then runs `work` while new messages there have to wait. It gets the
   * number of cancelled messages.
   */
  clear<T>(conversation: string, work: (cancelled: number) => Promise<T>): Promise<T>;
  /** Stops every running turn and cancels all waiting messages; returns how many messages that were. */
  stopAll(): number;
  /** Continues the messages left by an earlier daemon, and begins to work. */
  start(): void;
  /** Stops working; the next start finishes what is unfinished. */
  close(): Promise<void>;
}

/** What a message started. */
export interface StartedWork {
  tools: string[];
  tasks: string[];
  runs: string[];
}

export interface InboxDeps {
  store: Store;
  messages: Messages;
  talk: ConversationLog;
  steering: Pick<Steering, "forget">;
  answer: Answer;
  outbox: Pick<Outbox, "owe">;
  conversations: Pick<ConversationSettings, "answered">;
  /** Who gets the reply to a message: its sender, or whoever asked for the work that it reports. */
  addressOf: (message: Message) => Source;
  /** What a message started, for the record of its route. */
  startedBy: (messageId: string) => StartedWork;
  emit: Emit;
  log: Log;
  /** The delay before a failed queue continues. */
  retryMs?: number;
}

/** A message that crashes the daemon each time must not do so for ever. */
const MAX_ATTEMPTS = 5;

export function createInbox(deps: InboxDeps): Inbox {
  const { store, messages, talk, steering, outbox, conversations, addressOf, startedBy, emit, log, retryMs } = deps;
  const running = new Map<string, AbortController>();
  const waiters = new Map<string, ((message: Message) => void)[]>();
  /** Conversations whose messages must wait. */
  const held = new Set<string>();
  const nextOf = (conversation: string) => (held.has(conversation) ? undefined : messages.next(conversation));
  const lanes = createLanes({
    async work(conversation) {
      for (let next = nextOf(conversation); lanes.isOpen() && next; next = nextOf(conversation)) await handle(next);
    },
    onFailure: (conversation, error) =>
      log.error("a conversation's queue failed and is tried again", {
        conversation,
        error: isTemporary(error) ? messageOf(error) : error,
      }),
    ...(retryMs !== undefined && { retryMs }),
  });

  async function handle(work: Work): Promise<void> {
    const { id } = work.message;
    const abort = new AbortController();
    running.set(id, abort);
    const isClosed = () => !lanes.isOpen();
    try {
      const [outcome, result] = await outcomeFor(work, deps, abort.signal);
      // An answer waits for another program that holds the database.
      if (!isClosed()) await whenNotHeld(() => end(work.message, outcome, result), isClosed);
    } finally {
      running.delete(id);
    }
  }

  function end(message: Message, outcome: Outcome, result: Done = { tools: [], served: [] }): void {
    const { id, conversation, source } = message;
    const route = routeOf(outcome, result, startedBy(id));
    const finished = store.transaction(() => {
      if (!messages.finish(id, { ...outcome, route })) return undefined;
      const ended = messages.find(id)!;
      emit({ type: "message.finished", conversation, data: { ...ended } });
      // A message cancelled before its answer needs no reply.
      if (outcome.status === "cancelled" && outcome.reply === null) return ended;
      talk.add(conversation, "user", source.channel, withNames(message));
      for (const { text } of ended.steered) talk.add(conversation, "user", source.channel, text);
      if (outcome.reply !== null) talk.add(conversation, "assistant", source.channel, outcome.reply);
      const to = addressOf(message);
      outbox.owe({ kind: "reply", about: id, conversation, source: to, text: null, key: replyKey(id) });
      // Telegram shows the answer to the person; other answers are unread until somebody looks.
      if (to.channel !== "telegram") conversations.answered(conversation);
      return ended;
    });
    steering.forget(id);
    if (!finished) return;
    for (const waiter of waiters.get(id) ?? []) waiter(finished);
    waiters.delete(id);
  }

  function cancel(message: Message | undefined): boolean {
    if (!message || (message.status !== "queued" && message.status !== "running")) return false;
    const abort = running.get(message.id);
    if (abort) abort.abort();
    else end(message, CANCELLED);
    return true;
  }

  function enqueue(submission: Submission): Message {
    const { message, isNew } = messages.add({ id: newId("m"), ...submission });
    if (!isNew) return message;
    emit(queuedOf(message));
    store.afterCommit(() => lanes.kick(message.conversation));
    return message;
  }

  function finished(id: string): Promise<Message> {
    const message = messages.find(id);
    if (message && message.finishedAt !== null) return Promise.resolve(message);
    return new Promise((resolve) => waiters.set(id, [...(waiters.get(id) ?? []), resolve]));
  }

  return {
    submit: (submission) => store.transaction(() => enqueue(submission)),
    ask: (submission) => finished(store.soft(() => enqueue(submission)).id),
    rewrite: (id, text) =>
      store.transaction(() => {
        if (!messages.rewrite(id, text)) return false;
        emit(queuedOf(messages.find(id)!));
        return true;
      }),
    finished,
    cancel: (id) => cancel(messages.find(id)),
    async clear(conversation, work) {
      if (held.has(conversation)) throw conflict("This conversation is being deleted already.");
      held.add(conversation);
      try {
        const cancelAll = () => messages.open().filter((message) => message.conversation === conversation && cancel(message));
        const cancelled = cancelAll();
        await Promise.all(cancelled.map(({ id }) => finished(id)));
        // Messages that arrived while the turn was ending are still waiting; cancel them too.
        return await work(cancelled.length + cancelAll().length);
      } finally {
        held.delete(conversation);
        lanes.kick(conversation);
      }
    },
    stopAll() {
      // What runs ends even if the end of what waits cannot be recorded.
      for (const abort of running.values()) abort.abort();
      return messages.open().filter(cancel).length;
    },
    start() {
      lanes.open();
      for (const conversation of messages.conversationsWaiting()) lanes.kick(conversation);
    },
    async close() {
      const closed = lanes.close();
      for (const abort of running.values()) abort.abort();
      await closed;
    },
  };
}

function queuedOf({ id, conversation, source, text, attachments }: Message): Parameters<Emit>[0] {
  const data = { id, conversation, source, text, ...(attachments.length > 0 && { attachments }) };
  return { type: "message.queued", conversation, data };
}

/** For a record without files: mentions that there were some. */
function withNames({ text, attachments }: Message): string {
  return attachments.length === 0 ? text : `${text}\n[attached: ${attachments.map(({ name }) => name).join(", ")}]`;
}

type Outcome = { status: "done" | "failed" | "cancelled"; reply: string | null; partial: boolean; error: Failure | null };

const CANCELLED: Outcome = {
  status: "cancelled",
  reply: null,
  partial: false,
  error: { code: "cancelled", message: "it was cancelled before it was answered." },
};

function failed(code: string, message: string): Outcome {
  return { status: "failed", reply: null, partial: false, error: { code, message } };
}

/** Runs a message's turn. Rejects if the database cannot be written: the queue retries it when it can. */
async function outcomeFor(
  work: Work,
  { answer, log }: Pick<InboxDeps, "answer" | "log">,
  signal: AbortSignal,
): Promise<[Outcome, Done?]> {
  const { id, attempts } = work.message;
  if (attempts >= MAX_ATTEMPTS) return [gaveUp(attempts)];
  try {
    const result = await answer(work, signal);
    return [outcomeOf(result), result];
  } catch (error) {
    if (isTemporary(error)) throw error;
    log.error("a message could not be answered", { id, error });
    return [internalFailure(error)];
  }
}

function gaveUp(attempts: number): Outcome {
  const why = `this message was begun ${attempts} times and never finished. Send it again if you want it tried once more.`;
  return failed("gave_up", why);
}

function internalFailure(error: unknown): Outcome {
  return failed(
    "internal",
    `something went wrong inside IO (${oneLine(messageOf(error), 500)}). The log has the details: io logs.`,
  );
}

function outcomeOf({ outcome, text, error }: Answered): Outcome {
  if (outcome === "done") return { status: "done", reply: text, partial: false, error: null };
  const status = outcome === "aborted" ? "cancelled" : "failed";
  return { status, reply: text || null, partial: text !== "", error: error ?? { code: "failed", message: "the turn failed." } };
}

type Done = Pick<Answered, "tools" | "served" | "reason">;

function routeOf({ status }: Outcome, { tools: called, served, reason }: Done, { tools, tasks, runs }: StartedWork): Route {
  const names = [...new Set([...called, ...tools])];
  const delegated = tasks.length + runs.length > 0;
  const directly = status === "done" ? "directly" : "not yet";
  const answered = delegated ? "delegated" : names.length > 0 ? "with tools" : directly;
  return { answered, tools: names, tasks, runs, models: served, ...(reason !== undefined && { modelReason: reason }) };
}
