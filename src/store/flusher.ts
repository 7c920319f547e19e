import { closeSync, fdatasync, openSync } from "node:fs";

/** Brings what was written so far to the disk, without keeping this thread from its work. */
export function createFlusher(path: string) {
  let file: number | undefined;
  let isAtWork = false;
  let isWanted = false;
  let isClosed = false;
  const flush = (): void => {
    isWanted = true;
    if (isAtWork || isClosed || path === ":memory:") return;
    try {
      file ??= openSync(`${path}-wal`, "r");
    } catch {
      // Without the file there is nothing in it; what was written waits for the next write that waits for the disk.
      return;
    }
    [isAtWork, isWanted] = [true, false];
    fdatasync(file, () => {
      isAtWork = false;
      if (isClosed) closeSync(file!);
      else if (isWanted) flush();
    });
  };
  return {
    flush,
    close(): void {
      isClosed = true;
      if (file !== undefined && !isAtWork) closeSync(file);
    },
  };
}
