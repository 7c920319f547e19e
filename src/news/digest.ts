import type { NewsConfig } from "../home/news-config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { formatDigest, isNothing } from "../protocol/digest-text.ts";
import type { Source } from "../protocol/messages.ts";
import type { Digest } from "../protocol/news.ts";
import type { Owed } from "../protocol/outbox.ts";
import type { DigestRows } from "../store/digest.ts";
import type { Store } from "../store/open.ts";
import type { OutboxRows } from "../store/outbox.ts";
import type { State } from "../store/state.ts";
import { costOf, type Prices } from "../tools/budgets/money.ts";
import type { NewsDesk } from "./news.ts";
import { isQuiet, lastAt } from "./quiet-hours.ts";

export interface DigestDeps {
  rows: DigestRows;
  outbox: Pick<OutboxRows, "held" | "heldCount" | "lastHeld" | "named">;
  news: Pick<NewsDesk, "heldOf">;
  prices: () => Prices;
}

/** How many held-back items a digest lists. */
const MAX_LISTED = 20;

/** Builds a digest of a period from stored records. */
export function createDigest({ rows, outbox, news, prices }: DigestDeps) {
  return async (since: string, until: string): Promise<Digest> => {
    const period = { since, until };
    const { done, failed, unproven, used } = await rows.count(period);
    const { calls, inputTokens, outputTokens, money, partial } = costOf(used, prices());
    const held = outbox.held(MAX_LISTED).flatMap((owed) => news.heldOf(owed) ?? []);
    return {
      ...{ since, until, done, failed, unproven },
      waiting: { approvals: rows.approvalsWaiting() },
      cost: { calls, inputTokens, outputTokens, money, partial },
      held,
      heldCount: held.length < MAX_LISTED ? held.length : outbox.heldCount(),
    };
  };
}
export type MakeDigest = ReturnType<typeof createDigest>;

export interface DailyDigestDeps extends Pick<DigestDeps, "outbox"> {
  store: Pick<Store, "transaction">;
  state: State;
  digest: MakeDigest;
  config: () => NewsConfig;
  owe: (owed: Owed) => void;
  /** Where to send news that belongs to no conversation. */
  personalSource: () => Source;
  log: Log;
  now?: () => Date;
}

const LAST = "digest:last";
const DAY_MS = 86_400_000;
/** Polled, because the clock may be changed and the machine may sleep. */
const POLL_MS = 30_000;

/**
 * Sends one digest a day at the configured time or, without one, at the end of quiet hours if something was held back. A
 * missed digest is sent once, late; a day with nothing to report is skipped.
 */
export function createDailyDigest(deps: DailyDigestDeps) {
  const { store, state, digest, config, outbox, owe, personalSource, log, now = () => new Date() } = deps;
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;
  let checking: Promise<void> | undefined;

  /** The time of day at which a digest is due; undefined if never. */
  function timeOfDay(): string | undefined {
    const { digest: time, quietHours } = config();
    return time ?? (quietHours !== undefined && outbox.lastHeld() > 0 ? quietHours.slice(6) : undefined);
  }

  async function check(): Promise<void> {
    const time = timeOfDay();
    const at = now();
    if (time === undefined || isQuiet(config().quietHours, at)) return;
    const due = lastAt(time, at);
    const last = state.get(LAST);
    if (last === undefined && config().digest !== undefined && at.getTime() - due.getTime() >= 60_000) {
      // Enabled after today's time: send the first one tomorrow.
      store.transaction(() => state.set(LAST, at.toISOString()));
      return;
    }
    if (last !== undefined && last >= due.toISOString()) return;
    const upTo = outbox.lastHeld();
    const until = at.toISOString();
    const made = await digest(last ?? new Date(at.getTime() - DAY_MS).toISOString(), until);
    store.transaction(() => {
      state.set(LAST, until);
      outbox.named(upTo);
      if (isNothing(made)) return;
      const text = formatDigest(made);
      const about = `digest:${until}`;
      owe({ kind: "news", about, conversation: "main", source: personalSource(), text, level: "normal", key: about });
    });
  }

  function arm(): void {
    clearTimeout(timer);
    const { digest: time, quietHours } = config();
    if (!isOpen || (time === undefined && quietHours === undefined)) return;
    timer = setTimeout(() => void checkOnce(), POLL_MS).unref();
  }

  function checkOnce(): Promise<void> {
    checking ??= check()
      .catch((error: unknown) => log.warn("cannot build the digest; trying again", { error: messageOf(error) }))
      .finally(() => {
        checking = undefined;
        arm();
      });
    return checking;
  }

  return {
    look: checkOnce,
    start(): void {
      isOpen = true;
      void checkOnce();
    },
    async close(): Promise<void> {
      isOpen = false;
      clearTimeout(timer);
      await checking;
    },
  };
}
export type DailyDigest = ReturnType<typeof createDailyDigest>;
