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
  /** Told when pages wait to be indexed. */
  onMarked: () => void;
}

const AT_ONCE = 500;

/** The pages that changed since they were indexed, marked in the index so that every process knows of them. */
export function createChangedPages({ pages, index, log, onMarked }: ChangedPagesDeps) {
  /** Changed pages that could not be marked yet, another process being busy with the index. */
  const unmarked = new Set<string>();

  /** Marks these, and what could not be marked before. */
  const mark = (paths: Iterable<string>) => {
    for (const path of paths) unmarked.add(path);
    if (unmarked.size === 0) return;
    try {
      index().transaction(() => unmarked.forEach(index().mark));
      unmarked.clear();
    } catch (error) {
      if (isBroken(error)) throw error;
      log.info("the wiki's index is busy; changed pages are read from their files meanwhile", { error: messageOf(error) });
    }
    onMarked();
  };

  return {
    mark,
    all: (): ReadonlySet<string> => new Set([...index().marked(), ...unmarked]),
    /** Compares every file with the index and marks those that differ, for changes that nobody noticed. */
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
      for (let at = 0; at < changed.length; at += AT_ONCE) {
        mark(changed.slice(at, at + AT_ONCE));
        await turn();
      }
    },
  };
}
export type ChangedPages = ReturnType<typeof createChangedPages>;
