import type { Event } from "../../protocol/events.ts";
import type { AcpAccess } from "./access.ts";

export interface FeedDeps {
  access: Pick<AcpAccess, "events" | "note">;
  conversation: string;
  onEvent: (event: Event) => Promise<void>;
}

/** Follows one conversation and passes its events on one after another, even across restarts of the daemon. */
export function createFeed({ access, conversation, onEvent }: FeedDeps) {
  const abort = new AbortController();
  let opened: Promise<void> | undefined;
  let holds = 0;
  let goOn: () => void = () => {};
  let isConnected = false;

  async function follow(onOpen: () => void): Promise<void> {
    const opens = () => {
      isConnected = true;
      onOpen();
    };
    const onLost = () => {
      isConnected = false;
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
