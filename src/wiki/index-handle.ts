import { statSync } from "node:fs";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { dropIndexFile, type IndexFile, isBroken, openIndexFile } from "./index-file.ts";
import { createPageIndex, type PageIndex } from "./page-index.ts";

export interface IndexHandleDeps {
  file: string;
  log: Log;
  /** Told when the index may no longer hold everything that the files say. */
  onDoubt: () => void;
}

/** The index, kept open: opened again when its file was replaced, and made anew when it is broken. */
export interface IndexHandle {
  current(): PageIndex;
  /** Makes sure that the open file is the one that other processes see. */
  check(): void;
  /** Deals with a question that failed. */
  recover(error: unknown): void;
  /** Throws the file away and begins an empty one. */
  renew(): void;
  close(): void;
}

export function createIndexHandle({ file, log, onDoubt }: IndexHandleDeps): IndexHandle {
  let opened = openFirst(file);
  let index = createPageIndex(opened.db);

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
    onDoubt();
  };

  return {
    current: () => index,
    check() {
      if (statSync(file, { throwIfNoEntry: false })?.ino === opened.inode) return;
      log.info("the wiki's index was replaced; reading the pages again");
      reopen(false);
    },
    recover(error) {
      onDoubt();
      log.warn("the wiki's index is in trouble", { error: messageOf(error) });
      if (!isBroken(error)) return;
      try {
        reopen(true);
      } catch (failure) {
        // The next question opens it again; until then pages are saved and read without it.
        log.error("the wiki's index cannot be made anew", { error: messageOf(failure) });
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
