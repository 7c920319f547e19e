import type { ApprovalRecord } from "../../store/approvals.ts";

export type Waited = ApprovalRecord | "let go";

interface Waiter {
  attempt: number;
  isShared: boolean;
  settle: (waited: Waited) => void;
}

interface WaitOptions {
  attempt: number;
  signal: AbortSignal;
  /** Whether others may wait for the same approval. */
  isShared: boolean;
}

export interface WaitersDeps {
  everyMs: number;
  /** Checks whether the time for an answer is over; called repeatedly while anybody waits. */
  look: () => void;
}

/** The calls that wait for a person, by the approval they wait for. */
export function createWaiters({ everyMs, look }: WaitersDeps) {
  const waiting = new Map<string, Set<Waiter>>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  const settle = (id: string, waited: Waited, which: (waiter: Waiter) => boolean = () => true) => {
    for (const waiter of [...(waiting.get(id) ?? [])]) if (which(waiter)) waiter.settle(waited);
  };

  return {
    /** Whether nobody from this attempt, or a later one, waits for it. */
    isFree: (id: string, attempt: number) => [...(waiting.get(id) ?? [])].every((waiter) => waiter.attempt < attempt),
    /** Whether somebody waits for it who may not be the only one. */
    isShared: (id: string) => [...(waiting.get(id) ?? [])].some((waiter) => waiter.isShared),
    /** Waits for an approval to end. Unless it is shared, those who wait from an earlier attempt are let go. */
    wait(id: string, { attempt, signal, isShared }: WaitOptions): Promise<Waited> {
      if (!isShared) settle(id, "let go", (waiter) => waiter.attempt < attempt);
      if (isOver) return Promise.resolve("let go");
      return new Promise((resolve) => {
        const onAbort = () => waiter.settle("let go");
        const waiter: Waiter = {
          attempt,
          isShared,
          settle(waited) {
            signal.removeEventListener("abort", onAbort);
            const all = waiting.get(id);
            all?.delete(waiter);
            if (all?.size === 0) waiting.delete(id);
            if (waiting.size === 0) {
              clearInterval(timer);
              timer = undefined;
            }
            resolve(waited);
          },
        };
        waiting.set(id, (waiting.get(id) ?? new Set()).add(waiter));
        timer ??= setInterval(look, everyMs);
        if (signal.aborted) onAbort();
        else signal.addEventListener("abort", onAbort, { once: true });
      });
    },
    tell: (record: ApprovalRecord) => settle(record.id, record),
    /** Lets everybody go who waits here, now or later. */
    letGo() {
      isOver = true;
      for (const id of [...waiting.keys()]) settle(id, "let go");
    },
  };
}
