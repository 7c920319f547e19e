import { setImmediate as turn } from "node:timers/promises";
import type { ChangedPages } from "./changed-pages.ts";
import { createForeignChanges, stateOf } from "./foreign-changes.ts";
import type { IndexHandle } from "./index-handle.ts";
import { fileIn } from "./paths.ts";
import { createWatcher } from "./watch.ts";

export interface ChangeWatchDeps {
  pages: string;
  handle: IndexHandle;
  changed: ChangedPages;
  isClosed: () => boolean;
  /** Told of a page that somebody else wrote or removed. */
  onForeign: (path: string) => void;
}

const NOTICE_DELAY_MS = 100;

/** Notices which pages change on disk, whoever changes them, and marks them in the index. */
export function createChangeWatch({ pages, handle, changed, isClosed, onForeign }: ChangeWatchDeps) {
  const fileOf = (path: string) => fileIn(pages, path);
  const foreign = createForeignChanges(fileOf);
  /** Whether there may be changes that nobody noticed. */
  let unswept = true;
  let sweeping: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const watcher = createWatcher(pages, () => {
    if (timer !== undefined || isClosed()) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (!isClosed()) noticeSoftly();
    }, NOTICE_DELAY_MS).unref();
  });

  const noticeSoftly = () => {
    try {
      handle.check();
      notice();
    } catch (error) {
      handle.recover(error);
    }
  };

  /** Marks the pages that the watcher reported, except those that the index already knows in their present state. */
  const notice = () => {
    const { pages: reported, all } = watcher.take();
    if (all) unswept = true;
    const others: string[] = [];
    const stale: string[] = [];
    for (const path of reported) {
      const state = stateOf(fileOf(path));
      if (foreign.isForeign(path, state)) others.push(path);
      if ((handle.current().get(path)?.stamp ?? "") !== state) stale.push(path);
    }
    changed.mark(stale);
    foreign.tell(others, onForeign);
    if (unswept) void sweep().catch(handle.recover);
  };

  const sweep = (): Promise<void> => {
    if (sweeping) return sweeping;
    unswept = false;
    sweeping = changed.sweep().finally(() => {
      sweeping = undefined;
    });
    return sweeping;
  };

  return {
    /** Has every page compared with the index before the next answer. */
    doubt: (): void => {
      unswept = true;
    },
    /** Notes that this process changed a page. */
    remember: foreign.remember,
    /** Lets the system's news of changes made before now come in: two full turns of the event loop. */
    async settle(): Promise<void> {
      await turn();
      await turn();
      handle.check();
      if (!watcher.prompt) unswept = true;
      notice();
      while (unswept || sweeping) await sweep();
    },
    async close(): Promise<void> {
      await sweeping;
      clearTimeout(timer);
      watcher.close();
    },
  };
}
