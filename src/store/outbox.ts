import { Owed } from "../protocol/outbox.ts";
import type { Store } from "./open.ts";

/** Something to deliver, and the number of attempts. */
export interface OwedRow extends Owed {
  seq: number;
  attempts: number;
}

export type OutboxState = "owed" | "kept" | "held" | "delivered" | "undeliverable";

interface Row {
  seq: number;
  kind: string;
  about: string;
  conversation: string;
  source: string;
  text: string | null;
  level: string | null;
  key: string;
  attempts: number;
}

/** Everything to deliver, to whom, and whether it arrived. Deliveries of one lane are in order. */
export function createOutboxRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(
    `INSERT INTO outbox (lane, kind, about, conversation, source, text, key, level, state, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'owed', ?) ON CONFLICT (key) DO NOTHING`,
  );
  const next = db.prepare("SELECT * FROM outbox WHERE lane = ? AND state = 'owed' ORDER BY seq LIMIT 1");
  const lanes = db.prepare("SELECT DISTINCT lane FROM outbox WHERE state = 'owed'");
  const settle = db.prepare("UPDATE outbox SET state = ?, settled_at = ?, attempts = attempts + 1 WHERE seq = ?");
  const failed = db.prepare("UPDATE outbox SET attempts = attempts + 1 WHERE seq = ?");
  const receive =
    db.prepare(`UPDATE outbox SET state = 'delivered', settled_at = ? WHERE key = ? AND state IN ('owed','kept','held')
    AND (? IS NULL OR json_extract(source, '$.channel') IN (SELECT value FROM json_each(?)))`);
  const source = db.prepare("SELECT source FROM outbox WHERE about = ? AND conversation = ? ORDER BY seq DESC LIMIT 1");
  const waiting = db.prepare("SELECT COUNT(*) AS count FROM outbox WHERE state IN ('owed','kept')");
  const held = db.prepare("SELECT * FROM outbox WHERE state = 'held' ORDER BY seq LIMIT ?");
  const heldCount = db.prepare("SELECT COUNT(*) AS count FROM outbox WHERE state = 'held'");
  const named = db.prepare("UPDATE outbox SET state = 'delivered', settled_at = ? WHERE state = 'held' AND seq <= ?");
  const lastHeld = db.prepare("SELECT max(seq) AS seq FROM outbox WHERE state = 'held'");
  const state = db.prepare("SELECT state FROM outbox WHERE key = ?");

  const stateOf = (key: string) => (state.get(key) as { state: OutboxState } | undefined)?.state;
  const isWaiting = (found: OutboxState | undefined) => found === "owed" || found === "kept" || found === "held";

  return {
    afterCommit: store.afterCommit,
    /** False if it was already in the outbox. */
    add: (lane: string, { kind, about, conversation, source: to, text, key, level }: Owed): boolean =>
      Number(
        insert.run(lane, kind, about, conversation, JSON.stringify(to), text, key, level ?? null, now().toISOString()).changes,
      ) > 0,
    next(lane: string): OwedRow | undefined {
      const row = next.get(lane) as Row | undefined;
      return row && { ...Owed.parse({ ...row, source: JSON.parse(row.source) }), seq: row.seq, attempts: row.attempts };
    },
    lanes: (): string[] => (lanes.all() as { lane: string }[]).map(({ lane }) => lane),
    settle: (seq: number, as: OutboxState, also: () => void = () => undefined) =>
      store.soft(() => {
        settle.run(as, now().toISOString(), seq);
        also();
      }),
    failed: (seq: number) => void store.soft(() => failed.run(seq)),
    /** Marks an entry as received; with channels, only if it is for one of them. */
    receive(key: string, channels?: readonly string[]): void {
      // Read first: a client that reads old messages must not wait for a writer.
      if (isWaiting(stateOf(key))) {
        const only = channels ? JSON.stringify(channels) : null;
        store.soft(() => receive.run(now().toISOString(), key, only, only));
      }
    },
    /** Where news about a task or run was sent, for a conversation. */
    sourceOf(about: string, conversation: string): Owed["source"] | undefined {
      const row = source.get(about, conversation) as { source: string } | undefined;
      return row && Owed.shape.source.parse(JSON.parse(row.source));
    },
    stateOf,
    /** Entries held back for the next digest, oldest first. */
    held: (limit: number): (Owed & { at: string })[] =>
      (held.all(limit) as unknown as (Row & { created_at: string })[]).map((row) => ({
        ...Owed.parse({ ...row, source: JSON.parse(row.source) }),
        at: row.created_at,
      })),
    heldCount: (): number => (heldCount.get() as { count: number }).count,
    /** The newest held-back entry; 0 if there is none. */
    lastHeld: (): number => (lastHeld.get() as { seq: number | null }).seq ?? 0,
    /** Marks all held-back entries up to this one as included in a digest. */
    named: (upTo: number) => void named.run(now().toISOString(), upTo),
    /** How much is undelivered. */
    waiting: (): number => (waiting.get() as { count: number }).count,
  };
}
export type OutboxRows = ReturnType<typeof createOutboxRows>;
