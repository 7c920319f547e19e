import { readFileSync } from "node:fs";
import { z } from "zod";
import { isAlive } from "../lib/alive.ts";
import type { Paths } from "./paths.ts";

/** The content of `daemon.json`. */
export const DaemonFile = z.object({
  pid: z.number().int(),
  host: z.string(),
  port: z.number().int(),
  version: z.string(),
  startedAt: z.string(),
});
export type DaemonFile = z.infer<typeof DaemonFile>;

/** The holder of a lock: undefined if nobody, without a pid if the system does not tell. */
export type LockHolder = (path: string) => { pid?: number } | undefined;

/** The running daemon, if any. A dead daemon's file does not count, even if its pid is reused. */
export function findDaemon({ daemon, lock }: Pick<Paths, "daemon" | "lock">, lockHolder: LockHolder): DaemonFile | undefined {
  const named = readDaemonFile(daemon);
  const holder = named && lockHolder(lock);
  return holder && (holder.pid ?? named.pid) === named.pid ? named : undefined;
}

/** The content of the file, if its pid is alive. Only the lock proves that it is a daemon: see `findDaemon`. */
export function readDaemonFile(path: string): DaemonFile | undefined {
  try {
    const daemon = DaemonFile.parse(JSON.parse(readFileSync(path, "utf8")));
    return isAlive(daemon.pid) ? daemon : undefined;
  } catch {
    // Missing, or only partly written.
    return undefined;
  }
}
