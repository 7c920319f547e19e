import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { WatchRow } from "../store/watches.ts";
import type { WatchTurns } from "./watch-turns.ts";

export interface RenamedWatchesDeps {
  turns: Pick<WatchTurns, "nameOf">;
  inTurn: (host: string, work: () => Promise<void>) => Promise<void>;
  log: Log;
}

/** An organization's webhook reports events of all its repositories, so unknown names are remembered for this long. */
const STRANGER_MS = 10 * 60_000;
const MOST_STRANGERS = 1_000;

/** Finds a repository's watch by a name that the repository got after the watch was set up. */
export function createRenamedWatches({ turns, inTurn, log }: RenamedWatchesDeps) {
  /** The current repository name of each watch. */
  const names = new Map<string, string>();
  /** Names that no watched repository has, and until when they are not looked up again. */
  const strangers = new Map<string, number>();
  const asking = new Set<Promise<void>>();

  return {
    known: (there: readonly WatchRow[], name: string): WatchRow | undefined => there.find(({ id }) => names.get(id) === name),
    /** Asks the forge whether one of its watched repositories now has this name. */
    ask(there: readonly WatchRow[], name: string, found: (watch: WatchRow) => void): void {
      const host = there[0]?.host ?? "";
      const stranger = `${host}/${name}`;
      if ((strangers.get(stranger) ?? 0) > Date.now()) return;
      if (strangers.size >= MOST_STRANGERS) strangers.clear();
      strangers.set(stranger, Date.now() + STRANGER_MS);
      const turn = inTurn(host, async () => {
        for (const watch of there) {
          const now = (await turns.nameOf(watch.id))?.toLowerCase();
          if (now !== undefined) names.set(watch.id, now);
          if (now !== name) continue;
          strangers.delete(stranger);
          return found(watch);
        }
      })
        .catch((error: unknown) => log.warn("the name of a delivery could not be looked up", { error: messageOf(error) }))
        .finally(() => asking.delete(turn));
      asking.add(turn);
    },
    close: () => Promise.all(asking),
  };
}
