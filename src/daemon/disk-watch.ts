import { hasRoom } from "../lib/disk-room.ts";
import type { DiskInfo } from "../protocol/api.ts";

export interface DiskWatchDeps {
  /** The data folder. */
  folder: string;
  onChange: (disk: DiskInfo) => void;
  lookMs?: number;
  quotaMs?: number;
}

export interface DiskWatch {
  info(): DiskInfo;
  /** Call this when a write failed for lack of room: under a quota the disk itself may have plenty. */
  refused(): void;
  close(): void;
}

const LOOK_MS = 500;
/** Everything that waits for room retries more often than this: under a quota, no failed write for this long means room. */
const QUOTA_MS = 5_000;

/** Announces when the data folder's disk becomes full, since work then waits, and when there is room again. */
export function watchDisk({ folder, onChange, lookMs = LOOK_MS, quotaMs = QUOTA_MS }: DiskWatchDeps): DiskWatch {
  const full = `The disk that holds ${folder} is full: work waits until there is room. Free some space and it goes on by itself.`;
  let refusedAt = Number.NEGATIVE_INFINITY;
  let current: DiskInfo = { state: "ok", since: new Date().toISOString(), detail: null };
  const look = (): DiskInfo => {
    const isFull = !hasRoom(folder) || performance.now() - refusedAt < quotaMs;
    if (isFull === (current.state === "full")) return current;
    const since = new Date().toISOString();
    current = isFull ? { state: "full", since, detail: full } : { state: "ok", since, detail: null };
    onChange(current);
    return current;
  };
  const timer = setInterval(look, lookMs).unref();
  return {
    info: look,
    refused() {
      if (hasRoom(folder)) refusedAt = performance.now();
      look();
    },
    close: () => clearInterval(timer),
  };
}
