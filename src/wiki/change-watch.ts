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
  /** Called for each page that somebody else wrote or removed. */
  onForeign: (path: string) => void;
}

const NOTICE_DELAY_MS = 100;

/** Detects page changes on disk, by anybody, and marks the pages in the index. */
export function createChangeWatch({ pages, handle, changed, isClosed, onForeign }: ChangeWatchDeps) {
  const fileOf = (path: string) => fileIn(pages, path);
  const foreign = createForeignChanges(fileOf);
  /** Whether the watcher may have missed changes. */
  let needsSweep = true;
  let sweeping: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const watcher = createWatcher(pages, () => {
    if (timer !== undefined || isClosed()) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (!isClosed()) tryToMarkChanges();
    }, NOTICE_DELAY_MS).unref();
  });

  const tryToMarkChanges = () => {
    try {
      handle.check();
      markChanges();
    } catch (error) {
      handle.recover(error);
    }
  };

  /** Marks the pages that the watcher reported, except those indexed in their current state. */
  const markChanges = () => {
    const { pages: reported, all } = watcher.take();
    if (all) needsSweep = true;
    const others: string[] = [];
    const stale: string[] = [];
    for (const path of reported) {
      const state = stateOf(fileOf(path));
      if (foreign.isForeign(path, state)) others.push(path);
      if ((handle.current().get(path)?.stamp ?? "") !== state) stale.push(path);
    }
    changed.mark(stale);
    foreign.report(others, onForeign);
    if (needsSweep) void sweep().catch(handle.recover);
  };

  const sweep = (): Promise<void> => {
    if (sweeping) return sweeping;
    needsSweep = false;
    sweeping = changed.sweep().finally(() => {
      sweeping = undefined;
    });
    return sweeping;
  };

  return {
    /** Compares every page with the index before the next answer. */
    requireSweep: (): void => {
      needsSweep = true;
    },
    /** Records that this process changed a page. */
    remember: foreign.remember,
    /** Waits two turns of the event loop, so that events for earlier changes arrive, then marks those pages. */
    async settle(): Promise<void> {
      await turn();
      await turn();
      handle.check();
      if (!watcher.prompt) needsSweep = true;
      markChanges();
      while (needsSweep || sweeping) await sweep();
    },
    async close(): Promise<void> {
      await sweeping;
      clearTimeout(timer);
      watcher.close();
    },
  };
}
