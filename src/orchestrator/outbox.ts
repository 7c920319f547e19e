import { messageOf } from "../lib/errors.ts";
import { createLanes } from "../lib/lanes.ts";
import type { Log } from "../lib/log.ts";
import type { Owed, Receipt } from "../protocol/outbox.ts";
import type { OutboxRows } from "../store/outbox.ts";

/** Everything that is owed to somebody, delivered in order and once. */
export interface Outbox {
  /** To be called in the transaction that makes it true; delivered soon after. */
  owe(owed: Owed): void;
  /** A channel that keeps things for whoever fetches them says that somebody has; what is for other channels is still owed there. */
  received(key: string, channels?: readonly string[]): void;
  /** Takes up what an earlier life left. */
  start(): void;
  close(): Promise<void>;
}

export interface OutboxDeps {
  rows: OutboxRows;
  /** Hands something over. Throws when that cannot be done just now: it is tried again. */
  deliver: (owed: Owed) => Promise<Receipt> | Receipt;
  /** Told of each thing that was handed over, in the transaction that writes it down. */
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

/** What is told to a conversation goes in its order; what goes out, in the order of its address. */
function laneOf({ kind, conversation, source }: Owed): string {
  return kind !== "task" && kind !== "run" ? JSON.stringify(source) : `conversation:${conversation}`;
}
