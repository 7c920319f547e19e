import { setImmediate as turn } from "node:timers/promises";
import type { Log } from "../lib/log.ts";
import type { SeenPage } from "../store/known-pages.ts";
import { createChangeWatch } from "./change-watch.ts";
import { createChangedPages } from "./changed-pages.ts";
import { isBroken } from "./index-file.ts";
import { createIndexHandle } from "./index-handle.ts";
import { createIndexing } from "./indexing.ts";
import { type IsSecret, type PageDoc, readDoc, readText, stampOf } from "./page-file.ts";
import type { PageIndex } from "./page-index.ts";
import { fileIn } from "./paths.ts";
import type { Versions } from "./versions.ts";

/** The index, plus the pages changed or removed since: those are read from their files. */
export interface View {
  index: PageIndex;
  fresh: ReadonlySet<string>;
  has(path: string): boolean;
  read(path: string): PageDoc | undefined;
  /** Only the text, which is faster. */
  text(path: string): string | undefined;
}

/** Keeps the index in sync with the files, which are the source of truth. */
export interface Indexer {
  /** Changes one page's file while no other process changes any, and marks the page as changed. */
  changing<T>(path: string, work: () => T): T;
  /** Uses the index, or skips the work if the index fails. */
  tryWith(work: (index: PageIndex) => void): void;
  /** Queries the index with every change so far, repairing it first if it is corrupt. */
  view<T>(work: (view: View) => Promise<T>): Promise<T>;
  /** Indexes everything that is waiting, now. */
  drain(): Promise<void>;
  rebuild(): Promise<void>;
  close(): Promise<void>;
}

export interface IndexerDeps {
  /** The real path of the folder of pages. */
  pages: string;
  file: string;
  versions: Versions;
  isSecret: IsSecret;
  log: Log;
  /** Called with each page as it was read; without text if it is gone. */
  onRead: (pages: readonly SeenPage[]) => void;
  /** Called after pages were indexed. */
  onIndexed: () => void;
  /** Called for each page that somebody else wrote or removed. */
  onForeign: (path: string, doc: PageDoc | undefined) => void;
}

export function createIndexer(deps: IndexerDeps): Indexer {
  const { pages, file, versions, isSecret, log, onRead, onIndexed, onForeign } = deps;
  const fileOf = (path: string) => fileIn(pages, path);
  const read = (path: string) => readDoc(path, fileOf(path), isSecret);
  let viewers = 0;
  let closed = false;
  const isClosed = () => closed;

  const handle = createIndexHandle({ file, log, onMaybeStale: () => watch.requireSweep() });
  const index = () => handle.current();
  const changed = createChangedPages({ pages, index, log, onMarked: () => indexing.soon() });
  const indexing = createIndexing({
    index,
    read,
    versions,
    log,
    isBusy: () => viewers > 0,
    isClosed,
    markAll: () => changed.mark([]),
    onRead,
    onIndexed,
    onError: handle.recover,
  });
  const watch = createChangeWatch({ pages, handle, changed, isClosed, onForeign: (path) => onForeign(path, read(path)) });

  const openView = async (): Promise<View> => {
    await watch.settle();
    const fresh = changed.all();
    // Collecting many pages took a while: let others run first.
    await turn();
    return {
      index: index(),
      fresh,
      has: (path) => stampOf(fileOf(path)) !== undefined,
      read,
      text: (path) => readText(fileOf(path), isSecret),
    };
  };

  return {
    changing(path, work) {
      const attempt = () => outcomeOf(work);
      let outcome: Outcome<ReturnType<typeof work>> | undefined;
      try {
        handle.check();
        index().transaction(() => {
          index().mark(path);
          outcome = attempt();
        });
      } catch (error) {
        handle.recover(error);
      }
      // Save even if the index failed.
      const result = outcome ?? attempt();
      watch.remember(path);
      indexing.soon();
      if ("error" in result) throw result.error;
      return result.value;
    },
    tryWith(work) {
      if (closed) return;
      try {
        handle.check();
        work(index());
      } catch (error) {
        handle.recover(error);
      }
    },
    async view(work) {
      viewers += 1;
      try {
        return await work(await openView());
      } catch (error) {
        if (!isBroken(error)) throw error;
        handle.recover(error);
        return await work(await openView());
      } finally {
        viewers -= 1;
      }
    },
    async drain() {
      await watch.settle();
      await indexing.now();
    },
    async rebuild() {
      await indexing.idle();
      handle.renew();
      await watch.settle();
      await indexing.now();
    },
    async close() {
      closed = true;
      await watch.close();
      await indexing.idle();
      indexing.stop();
      handle.close();
    },
  };
}

type Outcome<T> = { value: T } | { error: unknown };

function outcomeOf<T>(work: () => T): Outcome<T> {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}
