import { readFileSync } from "node:fs";
import { z } from "zod";
import { isAlive } from "./alive.ts";
import type { Paths } from "./paths.ts";

/** What `daemon.json` says while a daemon serves. */
export const DaemonFile = z.object({
  pid: z.number().int(),
  host: z.string(),
  port: z.number().int(),
  version: z.string(),
  startedAt: z.string(),
});
export type DaemonFile = z.infer<typeof DaemonFile>;

/** Who holds a lock: undefined for nobody, without a pid where the system does not tell. */
export type LockHolder = (path: string) => { pid?: number } | undefined;

/** The daemon that serves, or nothing. A file that a dead one left does not count, even if its pid lives again as another program. */
export function findDaemon({ daemon, lock }: Pick<Paths, "daemon" | "lock">, lockHolder: LockHolder): DaemonFile | undefined {
  const named = readDaemonFile(daemon);
  const holder = named && lockHolder(lock);
  return holder && (holder.pid ?? named.pid) === named.pid ? named : undefined;
}

/** What the file says, if its pid lives. Only who holds the lock can say whether that is a daemon: see `findDaemon`. */
export function readDaemonFile(path: string): DaemonFile | undefined {
  try {
    const daemon = DaemonFile.parse(JSON.parse(readFileSync(path, "utf8")));
    return isAlive(daemon.pid) ? daemon : undefined;
  } catch {
    // There is none, or it is half of one.
    return undefined;
  }
}
