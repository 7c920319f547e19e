import type { Session } from "../engine/port.ts";
import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure, Message, Route, Source } from "../protocol/messages.ts";
import type { TurnEvent, TurnRequest, TurnResult } from "../protocol/turns.ts";
import type { ConversationLog } from "../store/conversation-log.ts";
import type { Messages, Work } from "../store/messages.ts";
import { isBusy, type Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { UsageLog } from "../store/usage.ts";
import type { Conversations } from "./conversations.ts";

export interface Submission {
  text: string;
  conversation: string;
  source: Source;
  idempotencyKey?: string | undefined;
}

/** The one durable queue: first in, first out within a conversation, conversations side by side. */
export interface Inbox {
  /** On disk when this returns. */
  submit(submission: Submission): Message;
  /** Submits it and waits for its end. Nobody is told before that, so it reaches the disk while the model is being asked. */
  ask(submission: Submission): Promise<Message>;
  /** Resolves with the message once it is finished, whatever its end. */
  finished(id: string): Promise<Message>;
  /** Ends a message that waits or runs; false if there is nothing to end. */
  cancel(id: string): boolean;
  /** Ends every running turn and cancels everything that waits; tells how many messages that were. */
  stopAll(): number;
  /** Takes up what an earlier life left, and goes on. */
  start(): void;
  /** Lets go of everything under way, for the next life to finish. */
  close(): Promise<void>;
}

export interface InboxDeps {
  store: Store;
  messages: Messages;
  sessions: SessionRows;
  usage: UsageLog;
  talk: ConversationLog;
  conversations: Conversations;
  config: () => Config;
  emit: Emit;
  log: Log;
  /** What a message set going, for the record of how it was routed. */
  routed?: (messageId: string) => { tools: string[]; tasks: string[]; runs: string[] };
}

/** A message that ends the daemon each time it is taken up must not do so for ever. */
const MAX_LIVES = 5;
/** How long a queue waits that could not go on, for instance because the disk was full. */
const RETRY_MS = 3_000;

export function createInbox({
  store,
  messages,
  sessions,
  usage,
  talk,
  conversations,
  config,
  emit,
  log,
  routed,
}: InboxDeps): Inbox {
  const workers = new Map<string, Promise<void>>();
  const running = new Map<string, AbortController>();
  const waiters = new Map<string, ((message: Message) => void)[]>();
  let open = false;

  function kick(conversation: string): void {
    if (!open || workers.has(conversation)) return;
    const worker = work(conversation)
      .catch((error: unknown) => {
        log.error("a conversation's queue failed and is tried again", { conversation, error });
        setTimeout(() => kick(conversation), RETRY_MS).unref();
      })
      .finally(() => workers.delete(conversation));
    workers.set(conversation, worker);
  }

  async function work(conversation: string): Promise<void> {
    for (let next = messages.next(conversation); open && next; next = messages.next(conversation)) await answer(next);
  }

  async function answer({ message, begun }: Work): Promise<void> {
    const { id, conversation } = message;
    if (message.attempts >= MAX_LIVES) {
      const error = {
        code: "gave_up",
        message: `this message was begun ${message.attempts} times and never finished. Send it again if you want it tried once more.`,
      };
      return end(message, { status: "failed", reply: null, partial: false, error });
    }
    const abort = new AbortController();
    running.set(id, abort);
    try {
      const { session, interrupted } = begin(message, begun);
      emit({ type: "message.started", conversation, data: { id, conversation } });
      const result = await turn(session, message, abort.signal, interrupted);
      if (!open) return;
      end(message, outcomeOf(result), result.tools);
    } catch (error) {
      // The queue goes on with it when the database is free again.
      if (isBusy(error)) throw error;
      log.error("a message could not be answered", { id, error });
      if (open)
        end(message, {
          status: "failed",
          reply: null,
          partial: false,
          error: {
            code: "internal",
            message: `something went wrong inside IO (${messageOf(error)}). The log has the details: io logs.`,
          },
        });
    } finally {
      running.delete(id);
    }
  }

  /** Not waited for on the disk: it is there when the runtime has accepted the prompt, and so before any effect. */
  function begin(
    { id, conversation }: Message,
    begun: Work["begun"],
  ): { session: Session; interrupted: Interrupted | undefined } {
    const work = () => {
      const session = (begun?.sessionId ? conversations.byId(begun.sessionId) : undefined) ?? conversations.current(conversation);
      const previousPromptId = sessions.find(session.id)?.lastPromptId ?? undefined;
      messages.start(id, session.id);
      const isSame = begun?.sessionId === session.id;
      return { session, interrupted: isSame ? { promptId: begun?.promptId ?? undefined, previousPromptId } : undefined };
    };
    return store.soft(() => store.transaction(work));
  }

  function turn(
    session: Session,
    message: Message,
    signal: AbortSignal,
    interrupted: Interrupted | undefined,
  ): Promise<TurnResult> {
    const { id, conversation } = message;
    const { turnSilenceMs, turnCapMs } = config();
    return session.run({
      owner: id,
      prompt: promptOf(message),
      attempt: message.attempts + 1,
      signal,
      silenceMs: turnSilenceMs,
      capMs: turnCapMs,
      ...(interrupted && { interrupted }),
      onAccepted: (promptId) =>
        store.transaction(() => {
          messages.accepted(id, promptId);
          sessions.accepted(session.id, promptId);
        }),
      onEvent: (event) => tell(event, id, conversation),
    });
  }

  function tell(event: TurnEvent, id: string, conversation: string): void {
    if (event.kind === "usage") usage.record(id, "orchestrator", event.call);
    else if (event.kind === "tool")
      emit({ type: "message.tool", conversation, data: { id, tool: event.tool, state: event.state } });
    else
      emit({
        type: "message.delta",
        conversation,
        data: event.kind === "delta" ? { id, text: event.text } : { id, text: "", restarted: true },
      });
  }

  function end(message: Message, outcome: Outcome, tools: string[] = []): void {
    const { id, conversation, source } = message;
    const set = routed?.(id);
    const names = [...new Set([...tools, ...(set?.tools ?? [])])];
    const tasks = set?.tasks ?? [];
    const runs = set?.runs ?? [];
    const answered =
      tasks.length + runs.length > 0
        ? "delegated"
        : names.length > 0
          ? "with tools"
          : outcome.status === "done"
            ? "directly"
            : "not yet";
    const route: Route = { answered, tools: names, tasks, runs };
    const changed = store.transaction(() => {
      if (!messages.finish(id, { ...outcome, route })) return false;
      if (outcome.status === "cancelled" && outcome.reply === null) return true;
      talk.add(conversation, "user", source.channel, message.text);
      if (outcome.reply !== null) talk.add(conversation, "assistant", source.channel, outcome.reply);
      return true;
    });
    if (!changed) return;
    const finished = messages.find(id)!;
    emit({ type: "message.finished", conversation, data: { ...finished } });
    for (const waiter of waiters.get(id) ?? []) waiter(finished);
    waiters.delete(id);
  }

  const cancelled: Outcome = {
    status: "cancelled",
    reply: null,
    partial: false,
    error: { code: "cancelled", message: "it was cancelled before it was answered." },
  };
  const cancel = (message: Message | undefined): boolean => {
    if (!message || (message.status !== "queued" && message.status !== "running")) return false;
    const abort = running.get(message.id);
    if (abort) abort.abort();
    else end(message, cancelled);
    return true;
  };

  function take({ text, conversation, source, idempotencyKey }: Submission, add: Messages["add"]): Message {
    const { message, isNew } = add({ id: newId("m"), conversation, source, text, idempotencyKey });
    if (!isNew) return message;
    emit({ type: "message.queued", conversation, data: { id: message.id, conversation, source, text } });
    kick(conversation);
    return message;
  }

  function finished(id: string): Promise<Message> {
    const message = messages.find(id);
    if (message && message.finishedAt !== null) return Promise.resolve(message);
    return new Promise((resolve) => waiters.set(id, [...(waiters.get(id) ?? []), resolve]));
  }

  return {
    submit: (submission) => take(submission, messages.add),
    ask: (submission) => finished(take(submission, (row) => store.soft(() => messages.add(row))).id),
    finished,
    cancel: (id) => cancel(messages.find(id)),
    stopAll: () => messages.open().filter(cancel).length,
    start() {
      open = true;
      for (const conversation of messages.conversationsWaiting()) kick(conversation);
    },
    async close() {
      open = false;
      for (const abort of running.values()) abort.abort();
      await Promise.all(workers.values());
    },
  };
}

type Interrupted = NonNullable<TurnRequest["interrupted"]>;
type Outcome = { status: "done" | "failed" | "cancelled"; reply: string | null; partial: boolean; error: Failure | null };

function outcomeOf({ outcome, text, error }: TurnResult): Outcome {
  if (outcome === "done") return { status: "done", reply: text, partial: false, error: null };
  const status = outcome === "aborted" ? "cancelled" : "failed";
  return { status, reply: text || null, partial: text !== "", error: error ?? { code: "failed", message: "the turn failed." } };
}

/** What the model reads: where the message came from, then its text. The same for every life of a message. */
export function promptOf({ source, text }: Pick<Message, "source" | "text">): string {
  return `[via ${source.channel}] ${text}`;
}
