import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Emit, Event, News } from "../protocol/events.ts";
import type { EventLog } from "./events.ts";
import { isBusy } from "./open.ts";

/** Where news enters and from where it is passed on, to listeners here and, through the store, in other processes. */
export interface Hub {
  emit: Emit;
  subscribe(listener: (event: Event) => void): () => void;
  /** Resolves when everything so far was told, or the database has been held for too long. */
  settled(): Promise<void>;
  close(): void;
}

/** Deltas that follow each other faster than this are told together. */
const DELTA_MS = 15;
/** How long news waits while another process holds the database. */
const BUSY_MS = 100;
/** How long somebody who leaves waits for it. */
const SETTLING_MS = 3_000;

export function createHub({ events, log, pollMs = 250 }: { events: EventLog; log: Log; pollMs?: number }): Hub {
  const listeners = new Set<(event: Event) => void>();
  let pending: News[] = [];
  let timer: NodeJS.Timeout | undefined;
  let flushedAt = 0;
  let isHeld = false;
  let lastId = events.lastId();
  const untold: Event[] = [];
  let telling = false;

  /** In order, also when a listener has news of its own: everybody hears one event before anybody hears the next. */
  const tell = (event: Event) => {
    lastId = event.id;
    untold.push(event);
    if (telling) return;
    telling = true;
    for (let next = untold.shift(); next; next = untold.shift()) {
      for (const listener of listeners) {
        try {
          listener(next);
        } catch (error) {
          log.error("a listener failed", { event: next.type, error });
        }
      }
    }
    telling = false;
  };
  /** Passes on everything up to an event, those of other processes included, in order. */
  const catchUp = (until: number) => {
    while (lastId < until) {
      const missed = events.since(lastId, 500);
      if (missed.upTo === lastId) return;
      for (const event of missed.events) tell(event);
      lastId = missed.upTo;
    }
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    isHeld = false;
    if (pending.length === 0) return;
    const news = pending;
    pending = [];
    flushedAt = performance.now();
    const told = write(news);
    if (told === undefined) {
      pending = news;
      isHeld = true;
      timer = setTimeout(flush, BUSY_MS);
    }
    // News of what a transaction does is part of it, and heard when that is kept.
    events.afterCommit(() => {
      for (const event of told ?? []) {
        if (event.id === lastId + 1) tell(event);
        else catchUp(event.id);
      }
    });
  };
  /** The news with their numbers; undefined while another process holds the database. */
  const write = (news: News[]): Event[] | undefined => {
    try {
      return events.append(news);
    } catch (error) {
      if (isBusy(error)) return undefined;
      log.error("news could not be written down", { error, lost: news.length });
      return [];
    }
  };

  const poll = setInterval(() => {
    try {
      const newest = events.lastId();
      if (newest > lastId) catchUp(newest);
    } catch (error) {
      log.warn("news of other processes could not be read and is asked for again", { error: messageOf(error) });
    }
  }, pollMs);
  poll.unref();

  return {
    emit(news) {
      const last = pending.at(-1);
      const isDelta = news.type === "message.delta";
      if (isDelta && last?.type === "message.delta" && last.data.id === news.data.id && !news.data.restarted) {
        last.data = { ...last.data, text: `${last.data.text}${news.data.text}` };
      } else {
        pending.push({ ...news });
      }
      if (isHeld) return;
      if (!isDelta || performance.now() - flushedAt > DELTA_MS) flush();
      else timer ??= setTimeout(flush, DELTA_MS);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async settled() {
      const end = performance.now() + SETTLING_MS;
      for (flush(); pending.length > 0 && performance.now() < end; flush()) await sleep(BUSY_MS);
    },
    close() {
      flush();
      clearTimeout(timer);
      clearInterval(poll);
      if (pending.length > 0) log.error("news could not be written down: the database was held", { lost: pending.length });
    },
  };
}
