import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { endLife, type Life } from "./life.ts";

/** Runtimes that were replaced while turns ran in them: each ends when its last turn has. */
export function createRetirement(log: Log) {
  const retiring = new Set<Life>();
  const endings = new Set<Promise<void>>();
  return {
    add: (life: Life): void => void retiring.add(life),
    has: (life: Life): boolean => retiring.has(life),
    remove: (life: Life): void => void retiring.delete(life),
    all: (): Life[] => [...retiring],
    /** Called when a turn of a life has ended. */
    released(life: Life): void {
      if (!retiring.has(life) || life.turns > 0) return;
      retiring.delete(life);
      const ending = endLife(life)
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
