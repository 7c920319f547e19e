import { setImmediate as turn } from "node:timers/promises";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { SeenPage } from "../store/known-pages.ts";
import { type PageDoc, stampText } from "./page-file.ts";
import type { PageIndex } from "./page-index.ts";
import type { Versions } from "./versions.ts";

export interface IndexingDeps {
  index: () => PageIndex;
  read: (path: string) => PageDoc | undefined;
  versions: Versions;
  log: Log;
  /** Whether somebody is reading from the index and must not be delayed. */
  isBusy: () => boolean;
  isClosed: () => boolean;
  /** Marks the pages that could not be marked earlier. */
  markAll: () => void;
  /** Called with each page as it was read, or without text if it is gone, before the page counts as indexed. */
  onRead: (pages: readonly SeenPage[]) => void;
  /** Called after pages were indexed. */
  onIndexed: () => void;
  onError: (error: unknown) => void;
}

const DELAY_MS = 250;
/** How long one slice may block the event loop. */
const SLICE_MS = 20;
const BULK = 1_000;
/** A younger file may change again within one tick of the file system's clock, so its stamp is not reliable yet. */
const RACY_NS = 50_000_000n;

/** Indexes the marked pages in short slices. */
export function createIndexing(deps: IndexingDeps) {
  const { index, read, versions, log, isBusy, isClosed, markAll, onRead, onIndexed, onError } = deps;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const indexPage = (path: string, keepsCopy: boolean): SeenPage => {
    const doc = read(path);
    const seen = { path, text: doc?.text };
    if (doc === undefined) index().remove(path);
    else {
      const age = BigInt(Date.now()) * 1_000_000n - doc.stamp.mtimeNs;
      const racy = age < RACY_NS && age > -RACY_NS;
      index().put({ ...doc, stamp: racy ? "" : stampText(doc.stamp) }, doc.text);
    }
    index().unmark(path);
    if (doc === undefined || !keepsCopy) return seen;
    try {
      versions.keepCopy(path, doc.stamp, doc.text);
    } catch (error) {
      log.warn("cannot keep an earlier version of a page", { path, error: messageOf(error) });
    }
    return seen;
  };

  const indexSlice = (waiting: readonly string[], keepsCopies: boolean) => {
    const until = performance.now() + SLICE_MS;
    index().transaction(() => {
      const seen: SeenPage[] = [];
      for (const path of waiting) {
        seen.push(indexPage(path, keepsCopies));
        if (performance.now() > until) break;
      }
      onRead(seen);
    });
  };

  const indexAll = async () => {
    markAll();
    const isBulk = index().marked(BULK + 1).length > BULK;
    let any = false;
    for (;;) {
      while (isBusy()) await turn();
      if (isClosed()) return;
      const waiting = index().marked(2_000);
      if (waiting.length === 0) break;
      any = true;
      indexSlice(waiting, !isBulk);
      await turn();
    }
    const chores = [...(isBulk ? [index().tidy()] : []), index().recount()];
    for (const chore of chores) {
      for (const _ of chore) {
        await turn();
        if (isClosed()) return;
      }
    }
    if (any) onIndexed();
  };

  const now = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    running ??= indexAll().finally(() => {
      running = undefined;
    });
    return running;
  };

  return {
    /** Indexes everything that is waiting, now. */
    now,
    /** The same after a short delay, to batch changes. */
    soon(): void {
      if (timer !== undefined || isClosed()) return;
      timer = setTimeout(() => {
        timer = undefined;
        now().catch(onError);
      }, DELAY_MS).unref();
    },
    /** Waits until no indexing is running. */
    async idle(): Promise<void> {
      await running;
    },
    stop: () => clearTimeout(timer),
  };
}
