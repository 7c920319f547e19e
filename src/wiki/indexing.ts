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
  /** Whether somebody reads from the index just now, and must not be held up. */
  isBusy: () => boolean;
  isClosed: () => boolean;
  /** Marks what could not be marked before. */
  markAll: () => void;
  /** Shown each page as it was read, or that there is none, before it counts as indexed. */
  onRead: (pages: readonly SeenPage[]) => void;
  /** Told when pages were indexed. */
  onIndexed: () => void;
  onError: (error: unknown) => void;
}

const DELAY_MS = 250;
/** How long one slice of indexing may hold up everything else. */
const SLICE_MS = 20;
const BULK = 1_000;
/** A file this young may change again within one tick of the file system's clock: its stamp proves nothing yet. */
const RACY_NS = 50_000_000n;

/** Indexes the pages that are marked, in slices short enough that nobody waits for them. */
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
      log.warn("an earlier version of a page cannot be kept", { path, error: messageOf(error) });
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
    /** Indexes what waits, at once and to the end. */
    now,
    /** The same, in a moment: more may be about to come. */
    soon(): void {
      if (timer !== undefined || isClosed()) return;
      timer = setTimeout(() => {
        timer = undefined;
        now().catch(onError);
      }, DELAY_MS).unref();
    },
    /** Waits for what is being indexed just now. */
    async atRest(): Promise<void> {
      await running;
    },
    stop: () => clearTimeout(timer),
  };
}
