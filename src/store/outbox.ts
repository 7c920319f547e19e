import { Owed } from "../protocol/outbox.ts";
import type { Store } from "./open.ts";

/** One thing that is owed, and how often it was tried to deliver it. */
export interface OwedRow extends Owed {
  seq: number;
  attempts: number;
}

export type OutboxState = "owed" | "kept" | "delivered" | "undeliverable";

interface Row {
  seq: number;
  kind: string;
  about: string;
  conversation: string;
  source: string;
  text: string | null;
  key: string;
  attempts: number;
}

/** What is owed to whom, and whether it was delivered. What goes to one lane is delivered in order. */
export function createOutboxRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(
    `INSERT INTO outbox (lane, kind, about, conversation, source, text, key, state, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'owed', ?) ON CONFLICT (key) DO NOTHING`,
  );
  const next = db.prepare("SELECT * FROM outbox WHERE lane = ? AND state = 'owed' ORDER BY seq LIMIT 1");
  const lanes = db.prepare("SELECT DISTINCT lane FROM outbox WHERE state = 'owed'");
  const settle = db.prepare("UPDATE outbox SET state = ?, settled_at = ?, attempts = attempts + 1 WHERE seq = ?");
  const failed = db.prepare("UPDATE outbox SET attempts = attempts + 1 WHERE seq = ?");
  const receive = db.prepare(`UPDATE outbox SET state = 'delivered', settled_at = ? WHERE key = ? AND state IN ('owed','kept')
    AND (? IS NULL OR json_extract(source, '$.channel') IN (SELECT value FROM json_each(?)))`);
  const source = db.prepare("SELECT source FROM outbox WHERE about = ? AND conversation = ? ORDER BY seq DESC LIMIT 1");
  const waiting = db.prepare("SELECT COUNT(*) AS count FROM outbox WHERE state IN ('owed','kept')");
  const state = db.prepare("SELECT state FROM outbox WHERE key = ?");

  const stateOf = (key: string) => (state.get(key) as { state: OutboxState } | undefined)?.state;
  const isWaiting = (found: OutboxState | undefined) => found === "owed" || found === "kept";

  return {
    afterCommit: store.afterCommit,
    /** False if it was owed before. */
    add: (lane: string, { kind, about, conversation, source: to, text, key }: Owed): boolean =>
      Number(insert.run(lane, kind, about, conversation, JSON.stringify(to), text, key, now().toISOString()).changes) > 0,
    next(lane: string): OwedRow | undefined {
      const row = next.get(lane) as Row | undefined;
      return row && { ...Owed.parse({ ...row, source: JSON.parse(row.source) }), seq: row.seq, attempts: row.attempts };
    },
    lanes: (): string[] => (lanes.all() as { lane: string }[]).map(({ lane }) => lane),
    settle: (seq: number, as: OutboxState) => void store.soft(() => settle.run(as, now().toISOString(), seq)),
    failed: (seq: number) => void store.soft(() => failed.run(seq)),
    /** Somebody has it; given channels, only if it is for one of those. */
    receive(key: string, channels?: readonly string[]): void {
      // Read first: a client that looks at old messages must not have to wait for a writer.
      if (isWaiting(stateOf(key))) {
        const only = channels ? JSON.stringify(channels) : null;
        store.soft(() => receive.run(now().toISOString(), key, only, only));
      }
    },
    /** Whom a task or a run was told for in a conversation. */
    sourceOf(about: string, conversation: string): Owed["source"] | undefined {
      const row = source.get(about, conversation) as { source: string } | undefined;
      return row && Owed.shape.source.parse(JSON.parse(row.source));
    },
    stateOf,
    /** How much nobody has yet. */
    waiting: (): number => (waiting.get() as { count: number }).count,
  };
}
export type OutboxRows = ReturnType<typeof createOutboxRows>;
