import { closeSync, fdatasync, openSync } from "node:fs";
import { codeOf, messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";

export interface FlusherDeps {
  /** Writes everything to disk with a checkpoint, and waits for it. */
  checkpoint: () => void;
  log?: Pick<Log, "warn" | "error"> | undefined;
}

/** The delay before a failed flush is retried. */
const RETRY_MS = 1_000;

/**
 * Flushes writes to disk without blocking this thread. After a failed fsync the system may consider its buffers clean, so a
 * second fsync proves nothing: checkpoint the write-ahead log instead, until that succeeds.
 */
export function createFlusher(path: string, { checkpoint, log }: FlusherDeps) {
  let file: number | undefined;
  let isAtWork = false;
  let isWanted = false;
  let isClosed = false;
  let retry: NodeJS.Timeout | undefined;

  const makeUp = (): void => {
    retry = undefined;
    try {
      checkpoint();
    } catch (error) {
      log?.error("recent writes are not on disk yet; trying again", { error: messageOf(error) });
      retry = setTimeout(makeUp, RETRY_MS).unref();
    }
  };
  const failed = (error: unknown): void => {
    log?.warn("flushing the database failed; checkpointing instead", { error: messageOf(error) });
    if (retry === undefined) makeUp();
  };
  const flush = (): void => {
    isWanted = true;
    if (isAtWork || isClosed || path === ":memory:") return;
    isWanted = false;
    try {
      file ??= openSync(`${path}-wal`, "r");
    } catch (error) {
      // Without a file there is nothing to flush.
      if (codeOf(error) !== "ENOENT") failed(error);
      return;
    }
    isAtWork = true;
    fdatasync(file, (error) => {
      isAtWork = false;
      if (isClosed) closeSync(file!);
      else if (error) failed(error);
      else if (isWanted) flush();
    });
  };
  return {
    flush,
    /** Whether a requested flush has not reached the disk. */
    isBehind: () => retry !== undefined,
    close(): void {
      isClosed = true;
      clearTimeout(retry);
      if (file !== undefined && !isAtWork) closeSync(file);
    },
  };
}
