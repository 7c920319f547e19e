import { rmSync } from "node:fs";
import { readDaemonFile } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { UserError } from "../lib/errors.ts";
import { takeLock } from "../store/lock.ts";
import type { Closers } from "./closers.ts";

/** One daemon or worker per home. Once it is locked, an existing `daemon.json` is from a dead one. */
export function lockHome(paths: Paths, closers: Closers): void {
  const lock = takeLock(paths.lock);
  if (!lock) {
    const other = readDaemonFile(paths.daemon);
    throw new UserError(
      other
        ? `A daemon already runs on ${paths.home} (pid ${other.pid}, port ${other.port}). Stop it with "io stop", or set IO_HOME to another folder.`
        : `A daemon or a worker already runs on ${paths.home}. Stop it ("io stop"; a worker by Ctrl-C), or set IO_HOME to another folder.`,
    );
  }
  closers.add(lock.release);
  rmSync(paths.daemon, { force: true });
}
