import { setTimeout as sleep } from "node:timers/promises";
import type { PromptResponse } from "@agentclientprotocol/sdk";
import { newId } from "../../lib/ids.ts";
import type { Message } from "../../protocol/messages.ts";
import { isAway, persistently, segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import type { Given } from "./content.ts";
import { asRequestError, failed } from "./errors.ts";
import type { Feed } from "./feed.ts";

export interface PromptsDeps {
  access: AcpAccess;
  conversation: string;
  feed: Pick<Feed, "hold" | "open" | "isConnected">;
  /** Creates the conversation. */
  keep: () => Promise<void>;
  killedMs?: number;
}

/** A prompt without an answer yet. */
interface Prompt {
  key: string;
  /** The message, once it is sent. */
  id?: string;
  isCancelled: boolean;
  end: (how: Ended) => void;
}

/** How a prompt ended: with its message, by a stop, or without an answer. */
type Ended = Message | "cancelled" | Error;

/** Produces the text for the model; undefined if a command has answered without it. */
type Words = (stopped: AbortSignal) => Promise<string | undefined>;

/** How long a stopping editor waits for the daemon to stop too. */
const CANCEL_MS = 4_000;
/** How long a killed daemon may stay away before it is started here: a service starts it sooner. */
const KILLED_MS = 5_000;
/** How many of these times a stopped daemon may stay away, as in a restart, before its prompts end. */
const STOPPED_TIMES = 4;

/** The prompts of one session as messages: each sent once, answered when it ends, and cancellable. */
export function createPrompts({ access, conversation, feed, keep, killedMs = KILLED_MS }: PromptsDeps) {
  const open: Prompt[] = [];
  /** The messages that the editor itself sent, and therefore already shows. */
  const own = new Set<string>();
  const cancelPath = (message: string) => `/api/messages/${segment(message)}/cancel`;

  /** Repeats the work with a running daemon if this one was lost. */
  async function withDaemon<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isAway(error)) throw error;
      await access.ready();
      return persistently(work);
    }
  }

  async function send(prompt: Prompt, text: string, files: Given["files"]): Promise<void> {
    // Looking for the daemon takes longer than everything else here.
    if (!feed.isConnected()) await access.ready();
    await withDaemon(keep);
    await feed.open();
    const attachments: string[] = [];
    for (const { name, bytes } of files) attachments.push((await withDaemon(() => access.upload(name, bytes))).id);
    await feed.hold(async () => {
      if (prompt.isCancelled) return;
      const attached = attachments.length > 0 ? { attachments } : {};
      const body = { text, conversation, source: "acp", idempotencyKey: prompt.key, ...attached };
      // The idempotency key makes it one message, whether or not it arrived before the daemon was lost.
      const sent = await withDaemon(() => access.request<Message | { id: string }>("POST", "/api/messages", body));
      prompt.id = sent.id;
      own.add(sent.id);
      if (prompt.isCancelled) void stop(prompt);
    });
  }

  /** Cancels a prompt's message; the editor gets its answer in time, even if the daemon is unreachable. */
  async function stop(prompt: Prompt): Promise<void> {
    prompt.isCancelled = true;
    const { id: message } = prompt;
    const stopped = message === undefined ? undefined : persistently(() => access.request("POST", cancelPath(message)));
    // It may have ended by itself.
    stopped?.catch((error: unknown) => {
      if (isAway(error)) access.note(error.message);
    });
    if (message !== undefined) await sleep(CANCEL_MS, undefined, { ref: false });
    prompt.end("cancelled");
  }

  return {
    isOwn: (message: string): boolean => own.has(message),
    /** Ends the prompt of a finished message. */
    finished: (message: Message): void => open.find(({ id }) => id === message.id)?.end(message),
    /** Starts a killed daemon again for the prompts that wait for it; they end without an answer if it was stopped on purpose. */
    async lost(back: AbortSignal): Promise<void> {
      for (let times = 1; ; times += 1) {
        await sleep(killedMs, undefined, { signal: back, ref: false }).catch(() => undefined);
        const waiting = open.filter(({ id }) => id !== undefined);
        if (back.aborted || waiting.length === 0) return;
        const why = access.wasStopped()
          ? times >= STOPPED_TIMES && failed(WAS_STOPPED)
          : await access.ready().then(() => false, asRequestError);
        if (why instanceof Error) for (const prompt of waiting) prompt.end(why);
      }
    },
    /** Sends the text, if there is one, and waits for the answer. */
    async ask(words: Words, files: Given["files"], signal: AbortSignal): Promise<PromptResponse> {
      const prompt: Prompt = { key: newId("acp"), isCancelled: false, end: () => {} };
      const stopped = new AbortController();
      const ended = new Promise<Ended>((resolve) => {
        prompt.end = (how) => {
          resolve(how);
          stopped.abort();
        };
      });
      open.push(prompt);
      const onAbort = () => void stop(prompt);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        const text = await Promise.race([words(stopped.signal), ended.then(() => null)]);
        if (text === null) return answerTo(await ended);
        if (text === undefined) return { stopReason: "end_turn" };
        const sending = send(prompt, text, files);
        sending.catch(() => undefined);
        await Promise.race([sending, ended]);
        return answerTo(await ended);
      } finally {
        signal.removeEventListener("abort", onAbort);
        open.splice(open.indexOf(prompt), 1);
      }
    },
    /** Cancels the running turn. A later prompt is meant to run after the stop. */
    cancel(): void {
      const running = open.find(({ isCancelled }) => !isCancelled);
      if (running) void stop(running);
    },
    /** Cancels everything unfinished that an editor began here. */
    async close(): Promise<void> {
      for (const prompt of open) void stop(prompt);
      const { items } = await access.request<{ items: Message[] }>(
        "GET",
        `/api/messages?conversation=${segment(conversation)}&limit=200`,
      );
      const unfinished = items.filter(({ finishedAt, source }) => finishedAt === null && source.channel === "acp");
      await Promise.all(unfinished.map(({ id }) => access.request("POST", cancelPath(id)).catch(() => undefined)));
      for (const prompt of open) prompt.end("cancelled");
    },
  };
}
export type Prompts = ReturnType<typeof createPrompts>;

const WAS_STOPPED =
  'IO was stopped while it worked on this. The message is kept, and IO goes on with it when it runs again: "io start" in a terminal.';

function answerTo(ended: Ended): PromptResponse {
  if (ended instanceof Error) throw ended;
  if (ended === "cancelled" || ended.status === "cancelled") return { stopReason: "cancelled" };
  if (ended.status === "failed") throw failed(ended.error?.message ?? "The turn failed, and nobody knows why.");
  return { stopReason: "end_turn" };
}
