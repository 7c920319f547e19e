import { setTimeout as sleep } from "node:timers/promises";
import type { DaemonFile } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import { lockHolder } from "../store/lock.ts";

/** How long a daemon may take to start or end, or another command to finish. */
const PATIENCE_MS = 10_000;
/** A shorter wait is not mentioned. */
const QUIET_MS = 1_000;
const AGAIN_MS = 50;

interface DataFolder {
  paths: Pick<Paths, "home" | "lock">;
}

interface Settling extends DataFolder {
  /** The running daemon, if there is one. */
  daemon(): DaemonFile | undefined;
  note(text: string): void;
}

/** Whether a process holds the data folder: a daemon, a worker, or a command at work. */
export const isHeld = ({ paths }: DataFolder): boolean => lockHolder(paths.lock) !== undefined;

/** The running daemon, after waiting for one that is starting or ending. */
export async function settledDaemon(shell: Settling): Promise<DaemonFile | undefined> {
  const began = performance.now();
  let isTold = false;
  for (;;) {
    // In this order: a daemon that starts to serve in between is found in the next round.
    const held = isHeld(shell);
    const found = shell.daemon();
    if (found || !held) return found;
    const waited = performance.now() - began;
    if (waited > PATIENCE_MS) throw occupied(shell);
    if (!isTold && waited > QUIET_MS) {
      isTold = true;
      shell.note("Waiting for IO, which is starting or ending …");
    }
    await sleep(AGAIN_MS);
  }
}

/** The error when a process holds the data folder without serving. */
export function occupied({ paths }: DataFolder): UserError {
  const pid = lockHolder(paths.lock)?.pid;
  return new UserError(
    `A process${pid ? ` (pid ${pid})` : ""} holds ${paths.home} and does not serve: a daemon that is still starting or cannot end, a worker, or another command at work. Try again in a moment, see "io logs", or end it yourself.`,
    { exitCode: ExitCode.unreachable },
  );
}
