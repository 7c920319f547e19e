import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "grammy";
import { calling } from "./bot.ts";
import type { Health } from "./health.ts";
import { troubleOf } from "./trouble.ts";

export interface BotInfoDeps {
  api: Api;
  health: Health;
  signal: AbortSignal;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/** What Telegram reports about the bot itself. */
export function createBotInfo({ api, health, signal }: BotInfoDeps) {
  const known = { name: null as string | null, topics: false };

  async function look(): Promise<void> {
    const { username, has_topics_enabled } = await calling("getMe", () => api.getMe());
    known.name = username;
    known.topics = has_topics_enabled === true;
  }

  /** Retries until Telegram answers; throws only when the channel closes. */
  async function lookUntilAnswered(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      try {
        await look();
        return;
      } catch (error) {
        const trouble = troubleOf(error);
        if (!trouble || signal.aborted) throw error;
        health.failed(trouble);
        await sleep(pauseMs, undefined, { signal });
      }
    }
  }

  return { known, look, lookUntilAnswered };
}
