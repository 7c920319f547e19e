import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { type Emit, type Event, type News, UNNUMBERED } from "../protocol/events.ts";
import type { EventLog } from "./events.ts";
import { isBusy, isTemporary } from "./faults.ts";

/** Receives events, stores them, and passes them to subscribers. */
export interface Hub {
  /** Inside a transaction it throws if the event cannot be stored, which fails the transaction; elsewhere it never throws. */
  emit: Emit;
  /** Passes an event to subscribers in this process without storing it. */
  announce: Emit;
  subscribe(listener: (event: Event) => void): () => void;
  close(): void;
}

/** Deltas within this time are combined. */
const DELTA_MS = 15;
/** The retry delay while another program holds the database. */
const BUSY_MS = 100;
/** The retry delay while the disk cannot be written. */
const FULL_MS = 1_000;
/** How many events are kept in memory meanwhile; beyond that the oldest are lost. */
const MAX_HELD = 10_000;

export function createHub({ events, log }: { events: EventLog; log: Log }): Hub {
  const listeners = new Set<(event: Event) => void>();
  let pending: News[] = [];
  let timer: NodeJS.Timeout | undefined;
  let flushedAt = 0;
  let isHeld = false;
  /** Stored but not yet published; inside a transaction not even committed. */
  let written: Event[] = [];
  const untold: Event[] = [];
  let telling = false;

  /** In order, also when a listener emits: everybody receives one event before anybody receives the next. */
  const tell = (event: Event) => {
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
  /**
   * Publishes everything committed, in order. Other callbacks after a commit may emit before the transaction's own events
   * were published, and a subscriber that saw the later event would assume that it had seen the earlier one.
   */
  const tellWritten = () => {
    const committed = written;
    written = [];
    committed.forEach(tell);
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    isHeld = false;
    if (pending.length === 0) return;
    const news = pending;
    pending = [];
    flushedAt = performance.now();
    try {
      written.push(...events.append(news));
      events.afterCommit(tellWritten);
    } catch (error) {
      if (isTemporary(error)) hold(news, error);
      else log.error("cannot store events", { error, lost: news.length });
    }
  };
  /** Keeps what cannot be stored now, and retries. */
  const hold = (news: News[], error: unknown) => {
    const lost = Math.max(0, news.length - MAX_HELD);
    if (lost > 0) log.error("cannot store events", { error: messageOf(error), lost });
    pending = [...news.slice(lost), ...pending];
    isHeld = true;
    timer = setTimeout(flush, isBusy(error) ? BUSY_MS : FULL_MS);
  };
  /** Events are inserted in the same transaction as the change and published after commit. */
  const writeInTransaction = (news: News) => {
    const before = pending;
    pending = [];
    let told: Event[] = [];
    events.afterRollback(() => {
      written = written.filter((event) => !told.includes(event));
      pending = [...before, ...pending];
      if (pending.length > 0) timer ??= setTimeout(flush, DELTA_MS);
    });
    told = events.append([...before, news]);
    written.push(...told);
    events.afterCommit(tellWritten);
  };

  return {
    emit(news) {
      if (events.isInTransaction()) return writeInTransaction({ ...news });
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
    announce: (news) => tell({ ...news, id: UNNUMBERED }),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      flush();
      clearTimeout(timer);
      if (pending.length > 0) log.error("cannot store events: another program has the database locked", { lost: pending.length });
    },
  };
}
