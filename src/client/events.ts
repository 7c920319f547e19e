import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../lib/errors.ts";
import { type Event, readEvent } from "../protocol/events.ts";
import type { Words } from "../protocol/runs.ts";
import type { Connection } from "./connection.ts";
import { readEvents } from "./sse.ts";

export interface FollowOptions {
  conversation?: string;
  signal: AbortSignal;
  /** How long to wait for a lost daemon: as long as a restart takes, or for ever. */
  wait?: "for a restart" | "for ever";
  onOpen?: () => void;
  /** Begins after this event; by default with the next one. */
  after?: number;
  /** Called with the number of the latest event, as soon as the daemon reports it. */
  onPlace?: (id: number) => void;
  /** Called with the output of the agents of runs and plans. */
  onWords?: (words: Words) => void;
  /** Called once each time the daemon is lost. */
  onLost?: () => void;
  /** Called when a lost daemon is back. */
  onBack?: () => void;
}

const RESTART_MS = 12_000;
const AGAIN_MS = 300;
const SELDOM_MS = 1_000;

/** Streams events; after an interruption it resumes after the last event. */
export async function* followEvents({ call }: Connection, options: FollowOptions): AsyncGenerator<Event> {
  const { conversation, signal, wait = "for a restart", onOpen, onPlace, onLost, onBack, onWords, after } = options;
  const query = new URLSearchParams({ ...(conversation !== undefined && { conversation }), ...(onWords && { words: "true" }) });
  let lastId: string | undefined = after === undefined ? undefined : String(after);
  let lostAt: number | undefined;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
      const response = await call(`/api/events?${query}`, { signal, headers, isStream: true });
      if (response.status !== 200) throw new UserError(`The daemon answered ${response.status} to a request for events.`);
      if (lostAt !== undefined) onBack?.();
      lostAt = undefined;
      onOpen?.();
      const seen = (id: string) => {
        if (lastId === undefined) onPlace?.(Number(id));
        lastId = id;
      };
      for await (const { id, event, data } of readEvents(response.body, seen)) {
        if (event === "said") {
          onWords?.(JSON.parse(data) as Words);
          continue;
        }
        const heard = readEvent({ id: Number(id), type: event, data: JSON.parse(data) });
        if (heard) yield heard;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (lostAt === undefined) onLost?.();
      lostAt ??= performance.now();
      const away = performance.now() - lostAt;
      if (wait === "for a restart" && (lastId === undefined || away > RESTART_MS)) throw error;
      await sleep(away > RESTART_MS ? SELDOM_MS : AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
