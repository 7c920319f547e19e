import { statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { dropIndexFile, type IndexFile, isBroken, openIndexFile } from "./index-file.ts";
import { type IsSecret, type PageDoc, readDoc, readText, stampOf, stampText } from "./page-file.ts";
import { createPageIndex, type PageIndex } from "./page-index.ts";
import type { Versions } from "./versions.ts";
import { createWatcher, walk } from "./watch.ts";

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
  root: string;
  file: string;
  versions: Versions;
  isSecret: IsSecret;
  log: Log;
  /** Told when pages were indexed. */
  onIndexed: () => void;
  /** Told of a page that somebody else wrote or removed. */
  onForeign: (path: string, doc: PageDoc | undefined) => void;
}

const DRAIN_DELAY_MS = 250;
const NOTICE_DELAY_MS = 100;
/** How long one slice of indexing may hold up everything else. */
const SLICE_MS = 40;
const BULK_SLICE_MS = 150;
const BULK = 1_000;
/** A file this young may change again within one tick of the file system's clock: its stamp proves nothing yet. */
const RACY_NS = 50_000_000n;
const FOREIGN_AT_ONCE = 200;

export function createIndexer({ root, file, versions, isSecret, log, onIndexed, onForeign }: IndexerDeps): Indexer {
  const fileOf = (path: string) => join(root, path);
  let opened = openFirst(file);
  let index = createPageIndex(opened.db);
  let unswept = true;
  let sweeping: Promise<void> | undefined;
  let draining: Promise<void> | undefined;
  let drainTimer: NodeJS.Timeout | undefined;
  let noticeTimer: NodeJS.Timeout | undefined;
  let viewers = 0;
  let closed = false;
  /** The state of pages that this process wrote or has told about; "" for removed ones. */
  const told = new Map<string, string>();
  /** Changed pages that could not be marked yet, another process being busy with the index. */
  const unmarked = new Set<string>();

  const watcher = createWatcher(join(root, "pages"), () => {
    if (noticeTimer !== undefined || closed) return;
    noticeTimer = setTimeout(() => {
      noticeTimer = undefined;
      softly(notice);
    }, NOTICE_DELAY_MS).unref();
  });

  const reopen = (drop: boolean) => {
    try {
      index.close();
    } catch {
      // A file that broke while it was open may not close cleanly; it is left behind.
    }
    opened = { ...opened, inode: -1 };
    if (drop) dropIndexFile(file);
    opened = openIndexFile(file);
    index = createPageIndex(opened.db);
    unswept = true;
  };
  const sameFile = () => {
    if (statSync(file, { throwIfNoEntry: false })?.ino === opened.inode) return;
    log.info("the wiki's index was replaced; reading the pages again");
    reopen(false);
  };
  const trouble = (error: unknown) => {
    unswept = true;
    log.warn("the wiki's index is in trouble", { error: messageOf(error) });
    if (!isBroken(error)) return;
    try {
      reopen(true);
    } catch (failure) {
      // The next question opens it again; until then pages are saved and read without it.
      log.error("the wiki's index cannot be made anew", { error: messageOf(failure) });
    }
  };
  const softly = (work: (index: PageIndex) => void) => {
    if (closed) return;
    try {
      sameFile();
      work(index);
    } catch (error) {
      trouble(error);
    }
  };

  const remember = (path: string) => {
    const stamp = stampOf(fileOf(path));
    if (told.size > 5_000) told.clear();
    told.set(path, stamp ? stampText(stamp) : "");
  };

  const mark = (paths: Iterable<string>) => {
    for (const path of paths) unmarked.add(path);
    if (unmarked.size === 0) return;
    try {
      index.transaction(() => unmarked.forEach(index.mark));
      unmarked.clear();
    } catch (error) {
      if (isBroken(error)) throw error;
      log.info("the wiki's index is busy; changed pages are read from their files meanwhile", { error: messageOf(error) });
    }
    later();
  };

  /** Marks what the watcher told of, unless the index already knows it so. */
  const notice = () => {
    const { pages, all } = watcher.take();
    if (all) unswept = true;
    const foreign: string[] = [];
    const changed: string[] = [];
    for (const path of pages) {
      const stamp = stampOf(fileOf(path));
      const now = stamp ? stampText(stamp) : "";
      if (told.get(path) !== now) foreign.push(path);
      if ((index.get(path)?.stamp ?? "") !== now) changed.push(path);
    }
    mark(changed);
    if (foreign.length <= FOREIGN_AT_ONCE) {
      for (const path of foreign) {
        remember(path);
        onForeign(path, readDoc(path, fileOf(path), isSecret));
      }
    }
    if (unswept) void sweep().catch(trouble);
  };

  const sweep = () => {
    sweeping ??= sweepOnce().finally(() => {
      sweeping = undefined;
    });
    return sweeping;
  };
  const sweepOnce = async () => {
    unswept = false;
    const known = index.stamps();
    const changed: string[] = [];
    let seen = 0;
    for (const path of walk(join(root, "pages"))) {
      const stamp = stampOf(fileOf(path));
      if (stamp === undefined || known.get(path) !== stampText(stamp)) changed.push(path);
      known.delete(path);
      seen += 1;
      if (seen % 500 === 0) await turn();
    }
    changed.push(...known.keys());
    for (let at = 0; at < changed.length; at += 5_000) {
      mark(changed.slice(at, at + 5_000));
      await turn();
    }
  };

  const absorb = (path: string, copies: boolean) => {
    const doc = readDoc(path, fileOf(path), isSecret);
    if (doc === undefined) index.remove(path);
    else {
      const age = BigInt(Date.now()) * 1_000_000n - doc.stamp.mtimeNs;
      const racy = age < RACY_NS && age > -RACY_NS;
      index.put({ ...doc, stamp: racy ? "" : stampText(doc.stamp) }, doc.text);
    }
    index.unmark(path);
    if (doc === undefined || !copies) return;
    try {
      versions.keepCopy(path, doc.stamp, doc.text);
    } catch (error) {
      log.warn("an earlier version of a page cannot be kept", { path, error: messageOf(error) });
    }
  };
  const drainAll = async () => {
    mark([]);
    const bulk = index.marked(BULK + 1).length > BULK;
    let any = false;
    for (;;) {
      while (viewers > 0) await turn();
      if (closed) return;
      const waiting = index.marked(2_000);
      if (waiting.length === 0) break;
      any = true;
      const until = performance.now() + (waiting.length >= BULK ? BULK_SLICE_MS : SLICE_MS);
      index.transaction(() => {
        for (const path of waiting) {
          absorb(path, !bulk);
          if (performance.now() > until) break;
        }
      });
      await turn();
    }
    const chores = [...(bulk ? [index.tidy()] : []), index.recount()];
    for (const chore of chores) {
      for (const _ of chore) {
        await turn();
        if (closed) return;
      }
    }
    if (any) onIndexed();
  };
  const drain = () => {
    clearTimeout(drainTimer);
    drainTimer = undefined;
    draining ??= drainAll().finally(() => {
      draining = undefined;
    });
    return draining;
  };
  const later = () => {
    if (drainTimer !== undefined || closed) return;
    drainTimer = setTimeout(() => {
      drainTimer = undefined;
      drain().catch(trouble);
    }, DRAIN_DELAY_MS).unref();
  };

  /** Lets the system's news of changes made before now come in: two full turns of the event loop. */
  const settle = async () => {
    await turn();
    await turn();
    sameFile();
    if (!watcher.prompt) unswept = true;
    notice();
    while (unswept || sweeping) await sweep();
  };
  const look = async (): Promise<View> => {
    await settle();
    return {
      index,
      fresh: new Set([...index.marked(), ...unmarked]),
      has: (path) => stampOf(fileOf(path)) !== undefined,
      read: (path) => readDoc(path, fileOf(path), isSecret),
      text: (path) => readText(fileOf(path)),
    };
  };
  const view = async <T>(work: (view: View) => Promise<T>): Promise<T> => {
    viewers += 1;
    try {
      return await work(await look());
    } catch (error) {
      if (!isBroken(error)) throw error;
      trouble(error);
      return await work(await look());
    } finally {
      viewers -= 1;
    }
  };

  return {
    changing(path, work) {
      let outcome: { value: ReturnType<typeof work> } | { error: unknown } | undefined;
      const attempt = () => {
        try {
          return { value: work() };
        } catch (error) {
          return { error };
        }
      };
      try {
        sameFile();
        index.transaction(() => {
          index.mark(path);
          outcome = attempt();
        });
      } catch (error) {
        trouble(error);
      }
      // An index in trouble is no reason not to save.
      const result = outcome ?? attempt();
      remember(path);
      later();
      if ("error" in result) throw result.error;
      return result.value;
    },
    softly,
    view,
    async drain() {
      await settle();
      await drain();
    },
    async rebuild() {
      await draining;
      reopen(true);
      await settle();
      await drain();
    },
    async close() {
      closed = true;
      await sweeping;
      await draining;
      clearTimeout(drainTimer);
      clearTimeout(noticeTimer);
      watcher.close();
      index.close();
    },
  };
}

function openFirst(file: string): IndexFile {
  try {
    return openIndexFile(file);
  } catch (error) {
    throw new UserError(`${file}: ${messageOf(error)}. Check that the folder can be written and that the disk has room.`, {
      cause: error,
    });
  }
}
