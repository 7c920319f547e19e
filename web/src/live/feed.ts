import type { Event, EventType } from "../../../src/protocol/events.ts";
import { createReader } from "./sse.ts";

export type Connection = "connecting" | "connected" | "reconnecting" | "refused";

export interface FeedDeps {
  /** Opens the stream after an event, or from now on. */
  open: (lastId: number | undefined, signal: AbortSignal) => Promise<Response>;
  onState: (state: Connection) => void;
  onEvent: (event: Event) => void;
  /** The last event that is known already; without it, news begins now. */
  after?: number | undefined;
  /** How long nothing may be heard: the daemon says something every 15 seconds. */
  silenceMs?: number;
  firstWaitMs?: number;
  longestWaitMs?: number;
}

export interface Feed {
  /** Tries again now, where it waits. */
  hurry(): void;
  close(): void;
}

/** The one stream of news: it comes back by itself after a loss, and goes on where it was. */
export function openFeed(deps: FeedDeps): Feed {
  const { open, onState, onEvent, after, silenceMs = 40_000, firstWaitMs = 250, longestWaitMs = 4_000 } = deps;
  const ended = new AbortController();
  let lastId = after;
  let hurry: () => void = () => {};

  /** Reads one stream to its end, however it ends. True if the daemon answered at all. */
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
      // A stream ends by an error when the daemon does; it is opened again.
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
