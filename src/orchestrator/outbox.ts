import { messageOf } from "../lib/errors.ts";
import { createLanes } from "../lib/lanes.ts";
import type { Log } from "../lib/log.ts";
import type { Owed, Receipt } from "../protocol/outbox.ts";
import type { OutboxRows } from "../store/outbox.ts";

/** The durable queue of deliveries, each delivered in order and once. */
export interface Outbox {
  /** Adds an entry. Call it in the transaction that makes it true; it is delivered soon after. */
  owe(owed: Owed): void;
  /** Marks an entry as received, when a client has fetched it from one of these channels; entries for other channels stay. */
  received(key: string, channels?: readonly string[]): void;
  /** Continues the deliveries left by an earlier daemon. */
  start(): void;
  close(): Promise<void>;
}

export interface OutboxDeps {
  rows: OutboxRows;
  /** Delivers an entry. Throws if that is impossible now; it is retried. */
  deliver: (owed: Owed) => Promise<Receipt> | Receipt;
  /** Called for each delivered entry, in the transaction that records it. */
  onSettled?: (owed: Owed, receipt: Receipt) => void;
  log: Log;
  retryMs?: number;
}

export const replyKey = (messageId: string) => `reply:${messageId}`;

export function createOutbox({ rows, deliver, onSettled, log, retryMs }: OutboxDeps): Outbox {
  const lanes = createLanes({
    async work(lane) {
      for (let next = rows.next(lane); next; next = rows.next(lane)) {
        const { seq, kind, about } = next;
        try {
          const receipt = await deliver(next);
          rows.settle(seq, receipt, () => onSettled?.(next, receipt));
          if (receipt === "undeliverable") log.warn("nobody is there any more to be told", { kind, about });
        } catch (error) {
          rows.failed(seq);
          throw error;
        }
      }
    },
    onFailure: (lane, error) => log.warn("a delivery failed and is tried again", { lane, error: messageOf(error) }),
    ...(retryMs !== undefined && { retryMs }),
  });
  return {
    owe(owed) {
      const lane = laneOf(owed);
      if (rows.add(lane, owed)) rows.afterCommit(() => lanes.kick(lane));
    },
    received: rows.receive,
    start() {
      lanes.open();
      for (const lane of rows.lanes()) lanes.kick(lane);
    },
    close: () => lanes.close(),
  };
}

/** Results for a conversation keep that conversation's order; everything else keeps the order of its address. */
function laneOf({ kind, conversation, source }: Owed): string {
  return kind !== "task" && kind !== "run" ? JSON.stringify(source) : `conversation:${conversation}`;
}
