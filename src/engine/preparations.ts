import type { SessionSpec } from "./port.ts";

/**
 * Makes sessions ready before they are asked, one at a time: a runtime does everything in one thread, and whoever is asked
 * meanwhile should not have to wait for many of them. One that is asked before it was begun is left to its own turn.
 */
export function createPreparations(prepare: (spec: SessionSpec) => Promise<void>) {
  const waiting = new Map<string, { spec: SessionSpec; over: () => void }>();
  let isAtWork = false;

  const leave = (id: string): void => {
    waiting.get(id)?.over();
    waiting.delete(id);
  };

  async function work(): Promise<void> {
    isAtWork = true;
    for (let next = [...waiting.values()][0]; next; next = [...waiting.values()][0]) {
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
  };
}
