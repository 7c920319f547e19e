import { ExitCode, UserError } from "../lib/errors.ts";
import type { DiskInfo } from "../protocol/api.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Event, EventData } from "../protocol/events.ts";
import type { Message, NewMessage } from "../protocol/messages.ts";
import type { Retry } from "../protocol/turns.ts";
import type { FollowOptions } from "./events.ts";

interface AskDeps {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  events(options: FollowOptions): AsyncGenerator<Event>;
}

export interface AskOptions {
  onId?: (id: string) => void;
  onDelta?: (text: string) => void;
  onTool?: (news: EventData<"message.tool">) => void;
  /** Called for each failed model request. */
  onRetry?: (retry: Retry) => void;
  /** Called for questions that are open when the message is sent, and whenever one opens or closes later. */
  onApproval?: (approval: Approval) => void;
  /** Called when work waits because the disk is full, and when it continues. */
  onDisk?: (disk: DiskInfo) => void;
  /** Stops following, without cancelling the message. */
  signal?: AbortSignal;
  wait?: FollowOptions["wait"];
}

/** Sends a message and follows it to its end. Subscribes to events before sending, so that none is missed. */
export async function ask(
  { request, events }: AskDeps,
  message: NewMessage,
  { onId, onDelta, onTool, onRetry, onApproval, onDisk, signal, wait }: AskOptions = {},
): Promise<Message> {
  const follow = new AbortController();
  const leave = () => follow.abort();
  signal?.addEventListener("abort", leave, { once: true });
  const news = collect((onOpen) =>
    events({
      conversation: message.conversation ?? "main",
      signal: follow.signal,
      onOpen,
      ...(wait && { wait }),
    }),
  );
  try {
    await news.opened;
    if (follow.signal.aborted) throw interrupted("It was not sent.");
    const { id } = await request<{ id: string }>("POST", "/api/messages", message);
    onId?.(id);
    const early = await request<Message>("GET", `/api/messages/${id}`);
    if (early.finishedAt !== null && !news.any()) return early;
    if (onApproval) {
      const waiting = await request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
      for (const approval of waiting.items.reverse()) onApproval(approval);
    }
    for (let event = await news.next(); event; event = await news.next()) {
      if (event.type === "approval.asked" || event.type === "approval.decided") onApproval?.(event.data);
      if (event.type === "disk.changed") onDisk?.(event.data);
      if (event.type === "message.delta" && event.data.id === id) onDelta?.(event.data.text);
      if (event.type === "message.tool" && event.data.id === id) onTool?.(event.data);
      if (event.type === "message.retried" && event.data.id === id) onRetry?.(event.data);
      if (event.type === "message.finished" && event.data.id === id) return event.data;
    }
    throw interrupted("IO goes on with the message; its answer will be in the conversation.");
  } finally {
    signal?.removeEventListener("abort", leave);
    follow.abort();
    await news.ended;
  }
}

/** Buffers events until they are read. */
function collect(follow: (onOpen: () => void) => AsyncGenerator<Event>) {
  const buffered: Event[] = [];
  let failed: { error: unknown } | undefined;
  let over = false;
  let wake: () => void = () => {};
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const read = async () => {
    for await (const event of follow(() => open())) {
      buffered.push(event);
      wake();
    }
  };
  const ended = read()
    .catch((error: unknown) => {
      failed = { error };
    })
    .finally(() => {
      over = true;
      open();
      wake();
    });
  return {
    /** Resolves when the subscription is open, or has failed. */
    opened,
    ended,
    any: () => buffered.length > 0,
    /** The next event; undefined once there are no more. */
    async next(): Promise<Event | undefined> {
      while (buffered.length === 0) {
        if (failed) throw failed.error;
        if (over) return undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return buffered.shift();
    },
  };
}

function interrupted(rest: string): UserError {
  return new UserError(`Interrupted. ${rest}`, { exitCode: ExitCode.interrupted });
}
