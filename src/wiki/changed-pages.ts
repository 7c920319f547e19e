import { setImmediate as turn } from "node:timers/promises";
import { createBreath } from "../lib/breath.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { isBroken } from "./index-file.ts";
import { stampOf, stampText } from "./page-file.ts";
import type { PageIndex } from "./page-index.ts";
import { fileIn } from "./paths.ts";
import { walk } from "./watch.ts";

export interface ChangedPagesDeps {
  pages: string;
  index: () => PageIndex;
  log: Log;
  /** Called when pages are waiting to be indexed. */
  onMarked: () => void;
}

const BATCH = 500;

/** Pages changed since they were indexed, marked in the index so that every process sees them. */
export function createChangedPages({ pages, index, log, onMarked }: ChangedPagesDeps) {
  /** Changed pages that could not be marked yet because another process has the index locked. */
  const unmarked = new Set<string>();

  /** Marks these pages and any that could not be marked earlier. */
  const mark = (paths: Iterable<string>) => {
    for (const path of paths) unmarked.add(path);
    if (unmarked.size === 0) return;
    try {
      index().transaction(() => unmarked.forEach(index().mark));
      unmarked.clear();
    } catch (error) {
      if (isBroken(error)) throw error;
      log.info("the wiki's index is busy; reading changed pages from their files meanwhile", { error: messageOf(error) });
    }
    onMarked();
  };

  return {
    mark,
    all: (): ReadonlySet<string> => new Set([...index().marked(), ...unmarked]),
    /** Compares every file with the index and marks those that differ, to find missed changes. */
    async sweep(): Promise<void> {
      const known = index().stamps();
      const changed: string[] = [];
      const breathe = createBreath();
      for (const path of walk(pages)) {
        const stamp = stampOf(fileIn(pages, path));
        if (stamp === undefined || known.get(path) !== stampText(stamp)) changed.push(path);
        known.delete(path);
        await breathe();
      }
      changed.push(...known.keys());
      for (let at = 0; at < changed.length; at += BATCH) {
        mark(changed.slice(at, at + BATCH));
        await turn();
      }
    },
  };
}
export type ChangedPages = ReturnType<typeof createChangedPages>;
