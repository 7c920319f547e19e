import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { TakenHome } from "../daemon/own-home.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { Shell } from "./output.ts";
import { occupied } from "./settled.ts";

/** How long a daemon may take to start or end, or another command to finish. */
const PATIENCE_MS = 10_000;
const AGAIN_MS = 50;

export interface Ways<T> {
  /** Through the running daemon. */
  ask: (client: Client) => Promise<T>;
  /** In this process, while no daemon can start. */
  here: (home: TakenHome) => Promise<T> | T;
}

/** Runs work as the owner of the data folder: in the running daemon, else in this process. */
export async function throughOwner<T>(shell: Shell, { ask, here }: Ways<T>): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    if (shell.daemon()) {
      try {
        return await ask(shell.client());
      } catch (error) {
        // A daemon that just ended leaves the data folder to this command.
        if (!isUnreachable(error) || shell.daemon()) throw error;
      }
    }
    const { takeHome } = await import("../daemon/own-home.ts");
    const home = takeHome(shell.env);
    if (home) {
      try {
        return await here(home);
      } finally {
        await home.close();
      }
    }
    if (performance.now() > until) throw occupied(shell);
    await sleep(AGAIN_MS);
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof UserError && error.exitCode === ExitCode.unreachable;
}
