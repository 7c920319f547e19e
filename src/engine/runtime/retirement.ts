import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { endRuntime, type RuntimeProcess } from "./process.ts";

/** Runtimes that were replaced while turns ran in them: each ends after its last turn. */
export function createRetirement(log: Log) {
  const retiring = new Set<RuntimeProcess>();
  const endings = new Set<Promise<void>>();
  return {
    add: (life: RuntimeProcess): void => void retiring.add(life),
    has: (life: RuntimeProcess): boolean => retiring.has(life),
    remove: (life: RuntimeProcess): void => void retiring.delete(life),
    all: (): RuntimeProcess[] => [...retiring],
    /** Called when a turn of a runtime has ended. */
    released(life: RuntimeProcess): void {
      if (!retiring.has(life) || life.turns > 0) return;
      retiring.delete(life);
      const ending = endRuntime(life)
        .catch((error: unknown) => log.warn("an old runtime did not end cleanly", { error: messageOf(error) }))
        .finally(() => endings.delete(ending));
      endings.add(ending);
    },
    /** Waits for those that are ending now. */
    async settled(): Promise<void> {
      await Promise.all(endings);
    },
  };
}
