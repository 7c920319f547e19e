import { PROTOCOL } from "../port.ts";

/** The pool that every worker serves. */
export const ANY = "any";

/** Where a worker talks to the daemon; only that worker can publish there. */
export const fromWorker = (worker: string): string => `io.v${PROTOCOL}.from.${worker}`;
/** Where the daemon wakes a worker. The message contains no order: the worker then asks. */
export const wakeSubject = (worker: string): string => `io.v${PROTOCOL}.wake.${worker}`;
/** Where a worker reports that it is alive; the same in every version, so that the daemon can detect a version mismatch. */
export const presenceSubject = (worker: string): string => `io.presence.${worker}`;

export const hostPool = (name: string): string => `host-${name}`;

/** The pools that a worker serves: "any", one for each of its labels, and its own. */
export const poolsOf = (name: string, labels: readonly string[]): string[] => [...new Set([ANY, ...labels, hostPool(name)])];
