import type { Event, EventType } from "../../../src/protocol/events.ts";
import { createReader } from "./sse.ts";

export type Connection = "connecting" | "connected" | "reconnecting" | "refused";

export interface FeedDeps {
  /** Opens the event stream after the given event, or from now on. */
  open: (lastId: number | undefined, signal: AbortSignal) => Promise<Response>;
  onState: (state: Connection) => void;
  onEvent: (event: Event) => void;
  /** The ID of the last event already known. If missing, the stream starts now. */
  after?: number | undefined;
  /** After this long without data, the stream counts as lost. The daemon sends something every 15 seconds. */
  silenceMs?: number;
  firstWaitMs?: number;
  longestWaitMs?: number;
}

export interface Feed {
  /** Ends a wait and reconnects now. */
  hurry(): void;
  close(): void;
}

/** The page's only event stream. It reconnects after a loss and continues where it stopped. */
export function openFeed(deps: FeedDeps): Feed {
  const { open, onState, onEvent, after, silenceMs = 40_000, firstWaitMs = 250, longestWaitMs = 4_000 } = deps;
  const ended = new AbortController();
  let lastId = after;
  let hurry: () => void = () => {};

  /** Reads one stream until it ends. Returns whether the daemon closed it (`served`), refused it, or it was lost. */
  async function follow(): Promise<"lost" | "refused" | "served"> {
    const watch = new AbortController();
    let timer = setTimeout(() => watch.abort(), silenceMs);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => watch.abort(), silenceMs);
    };
    try {
      const response = await open(lastId, AbortSignal.any([ended.signal, watch.signal]));
      if (response.status === 401) return "refused";
      if (!response.ok || !response.body) return "lost";
      const read = createReader();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "served";
        alive();
        for (const { id, name, data } of read(value)) {
          if (id !== undefined) lastId = id;
          if (name === "") onState("connected");
          else onEvent({ id: id ?? 0, type: name as EventType, data: JSON.parse(data) } as Event);
        }
      }
    } catch {
      // The stream fails when the daemon stops; it is opened again.
      return "lost";
    } finally {
      clearTimeout(timer);
    }
  }

  async function run(): Promise<void> {
    onState("connecting");
    let wait = firstWaitMs;
    while (!ended.signal.aborted) {
      const end = await follow();
      if (ended.signal.aborted) return;
      if (end === "refused") return onState("refused");
      onState("reconnecting");
      wait = end === "served" ? firstWaitMs : Math.min(wait * 1.6, longestWaitMs);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait);
        hurry = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
  void run();
  return {
    hurry: () => hurry(),
    close: () => {
      ended.abort();
      hurry();
    },
  };
}
