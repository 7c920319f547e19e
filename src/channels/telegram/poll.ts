import { setTimeout as sleep } from "node:timers/promises";
import { createRunner, createSequentialSink, createSource } from "@grammyjs/runner";
import type { Api } from "grammy";
import type { Update } from "grammy/types";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { calling } from "./bot.ts";
import type { Health } from "./health.ts";
import { troubleOf } from "./trouble.ts";

export interface PollingDeps {
  api: Api;
  health: Health;
  /** Stores updates on disk; they are confirmed once it has returned. */
  keep: (updates: readonly Update[]) => void;
  /** Called when updates were stored. */
  onKept: () => void;
  log: Log;
}

const ASKED = ["message", "edited_message", "callback_query"] as const;
/** How long Telegram holds a poll open, in seconds. */
const HOLD_SECONDS = 25;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** How long no other poller may be seen before the bot counts as IO's alone again. */
const CONFLICT_MS = 30_000;

/** Polls Telegram as long as it runs, through all network failures. */
export function createPolling({ api, health, keep, onKept, log }: PollingDeps) {
  let offset = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let isWell = false;
  let conflictAt = Number.NEGATIVE_INFINITY;

  async function ask(signal: AbortSignal): Promise<Update[]> {
    const updates = await calling("getUpdates", () =>
      api.getUpdates(
        { offset, limit: 100, timeout: isWell ? HOLD_SECONDS : 0, allowed_updates: ASKED },
        signal as Parameters<typeof api.getUpdates>[1],
      ),
    );
    keep(updates);
    for (const { update_id } of updates) offset = Math.max(offset, update_id + 1);
    isWell = true;
    pauseMs = FIRST_PAUSE_MS;
    // Of two pollers that displace each other, each succeeds now and then.
    if (performance.now() - conflictAt > CONFLICT_MS) health.set("connected");
    return updates;
  }

  async function supply(_size: number, signal: AbortSignal): Promise<Update[]> {
    for (;;) {
      try {
        return await ask(signal);
      } catch (error) {
        if (signal.aborted) throw error;
        isWell = false;
        const trouble = troubleOf(error);
        if (trouble?.kind === "refused" && trouble.code === 409) conflictAt = performance.now();
        if (trouble) health.failed(trouble);
        else log.error("news of Telegram could not be kept and is asked for again", { error: messageOf(error) });
        const wait = trouble?.kind === "flood" ? trouble.seconds * 1_000 : pauseMs;
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
        await sleep(wait, undefined, { signal });
      }
    }
  }

  const source = createSource<Update>({ supply: (size, signal) => supply(size, signal as AbortSignal) });
  const sink = createSequentialSink<Update>({ consume: async () => onKept() }, async (error) =>
    log.error("an update could not be passed on", { error: messageOf(error) }),
  );
  const runner = createRunner(source, sink);
  return { start: () => runner.start(), stop: () => (runner.isRunning() ? runner.stop() : Promise.resolve()) };
}
