import { statSync } from "node:fs";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { dropIndexFile, type IndexFile, isBroken, openIndexFile } from "./index-file.ts";
import { createPageIndex, type PageIndex } from "./page-index.ts";

export interface IndexHandleDeps {
  file: string;
  log: Log;
  /** Called when the index may be behind the files. */
  onMaybeStale: () => void;
}

/** Keeps the index open: reopens it when its file is replaced, recreates it when it is corrupt. */
export interface IndexHandle {
  current(): PageIndex;
  /** Reopens the index if another process replaced the file. */
  check(): void;
  /** Handles a failed query. */
  recover(error: unknown): void;
  /** Deletes the file and starts with an empty one. */
  renew(): void;
  close(): void;
}

export function createIndexHandle({ file, log, onMaybeStale }: IndexHandleDeps): IndexHandle {
  let opened = openFirst(file);
  let index = createPageIndex(opened.db);

  const reopen = (drop: boolean) => {
    try {
      index.close();
    } catch {
      // A file that became corrupt while open may not close cleanly.
    }
    opened = { ...opened, inode: -1 };
    if (drop) dropIndexFile(file);
    opened = openIndexFile(file);
    index = createPageIndex(opened.db);
    onMaybeStale();
  };

  return {
    current: () => index,
    check() {
      if (statSync(file, { throwIfNoEntry: false })?.ino === opened.inode) return;
      log.info("the wiki's index was replaced; reading the pages again");
      reopen(false);
    },
    recover(error) {
      onMaybeStale();
      log.warn("the wiki's index failed", { error: messageOf(error) });
      if (!isBroken(error)) return;
      try {
        reopen(true);
      } catch (failure) {
        // The next query opens it again; until then pages are saved and read without it.
        log.error("cannot recreate the wiki's index", { error: messageOf(failure) });
      }
    },
    renew: () => reopen(true),
    close: () => index.close(),
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
