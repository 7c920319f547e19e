import type { Event } from "../../protocol/events.ts";
import type { AcpAccess } from "./access.ts";

export interface FeedDeps {
  access: Pick<AcpAccess, "events" | "note">;
  conversation: string;
  onEvent: (event: Event) => Promise<void>;
  /** Called when the daemon is lost, with a signal that aborts when it is back. */
  onLost: (back: AbortSignal) => Promise<void>;
}

/** Follows one conversation and passes its events on one after another, even across restarts of the daemon. */
export function createFeed({ access, conversation, onEvent, onLost: tellLoss }: FeedDeps) {
  const abort = new AbortController();
  let opened: Promise<void> | undefined;
  let holds = 0;
  let goOn: () => void = () => {};
  let isConnected = false;
  let back = new AbortController();

  async function follow(onOpen: () => void): Promise<void> {
    const opens = () => {
      isConnected = true;
      back.abort();
      onOpen();
    };
    const onLost = () => {
      isConnected = false;
      back = new AbortController();
      const signal = AbortSignal.any([back.signal, abort.signal]);
      tellLoss(signal).catch((error: unknown) => access.note(String(error)));
    };
    const following = { conversation, signal: abort.signal, wait: "for ever" as const, onOpen: opens, onLost };
    for await (const event of access.events(following)) {
      while (holds > 0)
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      await onEvent(event).catch((error: unknown) => access.note(`An event could not be told: ${String(error)}`));
    }
  }

  return {
    /** Resolves when every later event will be received. */
    open(): Promise<void> {
      opened ??= new Promise((resolve, reject) => void follow(resolve).then(resolve, reject));
      return opened;
    },
    /** Whether the daemon is certainly reachable. */
    isConnected: () => isConnected,
    /** Delays events until the work is done, because the work determines what they are about. */
    async hold<T>(work: () => Promise<T>): Promise<T> {
      holds += 1;
      try {
        return await work();
      } finally {
        holds -= 1;
        goOn();
      }
    },
    close: (): void => abort.abort(),
  };
}
export type Feed = ReturnType<typeof createFeed>;
