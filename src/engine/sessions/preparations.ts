import { setTimeout as sleep } from "node:timers/promises";
import type { SessionSpec } from "../port.ts";

/** A session is prepared only after no turn has started or ended for this long. */
const CALM_MS = 150;

/**
 * Prepares sessions before their first prompt, one at a time and when idle: a runtime has a single thread, and running turns
 * should not wait for it. A session that is prompted before its preparation began is opened by its turn.
 */
export function createPreparations(prepare: (spec: SessionSpec) => Promise<void>, calmMs = CALM_MS) {
  const waiting = new Map<string, { spec: SessionSpec; over: () => void }>();
  let isAtWork = false;
  let stirredAt = Number.NEGATIVE_INFINITY;

  const leave = (id: string): void => {
    waiting.get(id)?.over();
    waiting.delete(id);
  };

  async function work(): Promise<void> {
    isAtWork = true;
    while (waiting.size > 0) {
      const calmIn = stirredAt + calmMs - performance.now();
      if (calmIn > 0) {
        await sleep(calmIn, undefined, { ref: false });
        continue;
      }
      const next = [...waiting.values()][0]!;
      waiting.delete(next.spec.id);
      await prepare(next.spec);
      next.over();
    }
    isAtWork = false;
  }

  return {
    /** Resolves when the session is ready, or left to its turn. */
    add(spec: SessionSpec): Promise<void> {
      leave(spec.id);
      const done = new Promise<void>((over) => waiting.set(spec.id, { spec, over }));
      if (!isAtWork) void work();
      return done;
    },
    leave,
    leaveAll(): void {
      for (const id of [...waiting.keys()]) leave(id);
    },
    /** A turn started or ended. */
    stir(): void {
      stirredAt = performance.now();
    },
  };
}
