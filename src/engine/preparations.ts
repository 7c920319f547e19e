import { setTimeout as sleep } from "node:timers/promises";
import type { SessionSpec } from "./port.ts";

/** So long nobody was asked and nobody has answered when a session is made ready. */
const CALM_MS = 150;

/**
 * Makes sessions ready before they are asked, one at a time and when there is nothing else to do: a runtime does everything in
 * one thread, and whoever is asked meanwhile should not have to wait. One that is asked before it was begun is left to its turn.
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
    /** Resolves when the session is ready, or is left to its turn. */
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
    /** Somebody is asked, or has answered. */
    stir(): void {
      stirredAt = performance.now();
    },
  };
}
