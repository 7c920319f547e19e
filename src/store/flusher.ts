import { closeSync, fdatasync, openSync } from "node:fs";
import { codeOf, messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";

export interface FlusherDeps {
  /** Brings everything to the disk by other means, and waits for it. */
  checkpoint: () => void;
  log?: Pick<Log, "warn" | "error"> | undefined;
}

/** How long to wait before what could not be brought to the disk is tried again. */
const RETRY_MS = 1_000;

/**
 * Brings what was written so far to the disk, without keeping this thread from its work. After a flush that failed the
 * system may take what it held for written, so another flush proves nothing: the log is copied into the database instead,
 * until that succeeds.
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
      log?.error("what was written is not on the disk yet and is tried again", { error: messageOf(error) });
      retry = setTimeout(makeUp, RETRY_MS).unref();
    }
  };
  const failed = (error: unknown): void => {
    log?.warn("a flush of the database failed; it is brought to the disk by a checkpoint", { error: messageOf(error) });
    if (retry === undefined) makeUp();
  };
  const flush = (): void => {
    isWanted = true;
    if (isAtWork || isClosed || path === ":memory:") return;
    isWanted = false;
    try {
      file ??= openSync(`${path}-wal`, "r");
    } catch (error) {
      // Without the file there is nothing in it.
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
    /** Whether something that was to be flushed is not on the disk. */
    isBehind: () => retry !== undefined,
    close(): void {
      isClosed = true;
      clearTimeout(retry);
      if (file !== undefined && !isAtWork) closeSync(file);
    },
  };
}
