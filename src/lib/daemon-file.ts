import { readFileSync } from "node:fs";
import { z } from "zod";
import { isAlive } from "./alive.ts";

/** What `daemon.json` says while a daemon serves. */
export const DaemonFile = z.object({
  pid: z.number().int(),
  host: z.string(),
  port: z.number().int(),
  version: z.string(),
  startedAt: z.string(),
});
export type DaemonFile = z.infer<typeof DaemonFile>;

/** The daemon that runs, or nothing: a file that a dead one left does not count. */
export function readDaemonFile(path: string): DaemonFile | undefined {
  try {
    const daemon = DaemonFile.parse(JSON.parse(readFileSync(path, "utf8")));
    return isAlive(daemon.pid) ? daemon : undefined;
  } catch {
    // There is none, or it is half of one.
    return undefined;
  }
}
