import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { isBusy } from "./faults.ts";
import type { Store } from "./open.ts";
import { createStaleSessions } from "./stale-sessions.ts";
import { createSweeps, daysBefore, type RetentionLimits } from "./sweeps.ts";

/** The runtime's sessions, as far as retention needs them. */
export interface StoredSessions {
  /** Whether sessions can be deleted now. */
  isReady(): boolean;
  /** The ids of all sessions on disk. */
  names(): Promise<string[]>;
  delete(id: string): Promise<void>;
}

export interface RetentionDeps {
  store: Store;
  limits: () => RetentionLimits;
  sessions: StoredSessions;
  /** Deletes changes set aside in projects by runs that ended before a given time; returns how many. */
  deleteOldRefs?: (before: string) => Promise<number>;
  /** Deletes sent files that no message refers to any more; returns how many. */
  removeUntoldFiles?: () => number;
  log: Log;
  now?: () => Date;
  /** The delay after the start, so that urgent work comes first. */
  firstMs?: number;
  everyMs?: number;
  /** The delay between two steps. */
  pauseMs?: number;
}

export interface RetentionStatus {
  limits: RetentionLimits;
  /** When the last pass ended, in this process. */
  lastAt: string | null;
  /** How much was deleted by this process, by kind. */
  removed: Record<string, number>;
}

/** Deletes expired records in the background, in short steps, but never unfinished work or undelivered messages. */
export interface Retention {
  start(): void;
  /** One pass over everything. */
  pass(): Promise<void>;
  status(): RetentionStatus;
  /** Resolves when nothing is running any more. */
  stop(): Promise<void>;
}

export function createRetention({
  store,
  limits,
  sessions,
  deleteOldRefs = async () => 0,
  removeUntoldFiles = () => 0,
  log,
  now = () => new Date(),
  firstMs = 60_000,
  everyMs = 3_600_000,
  pauseMs = 20,
}: RetentionDeps): Retention {
  const sweeps = createSweeps(store);
  const stale = createStaleSessions(store);
  const removed: Record<string, number> = {};
  let lastAt: string | null = null;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  const count = (what: string, rows: number) => {
    if (rows > 0) removed[what] = (removed[what] ?? 0) + rows;
  };
  /** Leaves failures to the next pass. */
  const guarded = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      const fields = { what, error: messageOf(error) };
      if (isBusy(error)) log.info("the database is busy; deleting expired records later", fields);
      else log.warn("cannot delete all expired records", fields);
    }
  };

  async function passOnce(): Promise<void> {
    const before = { ...removed };
    for (const { what, steps } of sweeps) {
      await guarded(what, async () => {
        for (const rows of steps(limits(), now())) {
          count(what, rows);
          await sleep(pauseMs, undefined, { ref: false });
          if (stopped) return;
        }
      });
    }
    await guarded("sessions", async () => {
      if (stopped || limits().sessionsDays === 0 || !sessions.isReady()) return;
      for (const id of stale.ids(await sessions.names(), limits(), now())) {
        if (stopped) return;
        await sessions.delete(id);
        stale.forget(id);
        count("sessions", 1);
        await sleep(pauseMs, undefined, { ref: false });
      }
    });
    await guarded("refs", async () => {
      if (!stopped && limits().sessionsDays > 0) count("refs", await deleteOldRefs(daysBefore(now(), limits().sessionsDays)));
    });
    await guarded("files", async () => {
      if (!stopped) count("files", removeUntoldFiles());
    });
    if (stopped) return;
    lastAt = now().toISOString();
    const gone = Object.entries(removed).filter(([what, rows]) => rows !== before[what]);
    if (gone.length > 0) log.info("deleted expired records", { since: "the start", ...Object.fromEntries(gone) });
  }
  const pass = () => {
    running ??= passOnce().finally(() => {
      running = undefined;
    });
    return running;
  };
  const schedule = (ms: number) => {
    timer = setTimeout(() => void pass().finally(() => stopped || schedule(everyMs)), ms).unref();
  };

  return {
    start: () => schedule(firstMs),
    pass,
    status: () => ({ limits: limits(), lastAt, removed: { ...removed } }),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
