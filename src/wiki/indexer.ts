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

/** The index together with the pages that changed, or went, since they were indexed: those are read from their files. */
export interface View {
  index: PageIndex;
  fresh: ReadonlySet<string>;
  has(path: string): boolean;
  read(path: string): PageDoc | undefined;
  /** The text alone, which is quicker. */
  text(path: string): string | undefined;
}

/** Keeps the index true to the files, which stay the truth. */
export interface Indexer {
  /** Runs a change of one page's file while no other process changes one, and remembers that the page changed. */
  changing<T>(path: string, work: () => T): T;
  /** Asks the index something that may go unanswered when it is in trouble. */
  softly(work: (index: PageIndex) => void): void;
  /** Answers from an index that knows of every change up to now, mended first if it is broken. */
  view<T>(work: (view: View) => Promise<T>): Promise<T>;
  /** Indexes what waits, at once and to the end. */
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
  /** Shown each page as it was read, or that there is none. */
  onRead: (pages: readonly SeenPage[]) => void;
  /** Told when pages were indexed. */
  onIndexed: () => void;
  /** Told of a page that somebody else wrote or removed. */
  onForeign: (path: string, doc: PageDoc | undefined) => void;
}

export function createIndexer(deps: IndexerDeps): Indexer {
  const { pages, file, versions, isSecret, log, onRead, onIndexed, onForeign } = deps;
  const fileOf = (path: string) => fileIn(pages, path);
  const read = (path: string) => readDoc(path, fileOf(path), isSecret);
  let viewers = 0;
  let closed = false;
  const isClosed = () => closed;

  const handle = createIndexHandle({ file, log, onDoubt: () => watch.doubt() });
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

  const look = async (): Promise<View> => {
    await watch.settle();
    const fresh = changed.all();
    // Many of them have taken their time already.
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
      // An index in trouble is no reason not to save.
      const result = outcome ?? attempt();
      watch.remember(path);
      indexing.soon();
      if ("error" in result) throw result.error;
      return result.value;
    },
    softly(work) {
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
        return await work(await look());
      } catch (error) {
        if (!isBroken(error)) throw error;
        handle.recover(error);
        return await work(await look());
      } finally {
        viewers -= 1;
      }
    },
    async drain() {
      await watch.settle();
      await indexing.now();
    },
    async rebuild() {
      await indexing.atRest();
      handle.renew();
      await watch.settle();
      await indexing.now();
    },
    async close() {
      closed = true;
      await watch.close();
      await indexing.atRest();
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
