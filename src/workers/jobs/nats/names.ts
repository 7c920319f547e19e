import { PROTOCOL } from "../port.ts";

/** The pool that every worker serves. */
export const ANY = "any";

/** Where a worker speaks to the daemon; nobody else can publish there. */
export const fromWorker = (worker: string): string => `io.v${PROTOCOL}.from.${worker}`;
/** Where the daemon wakes a worker up. What comes there holds no order: the worker then asks. */
export const wakeSubject = (worker: string): string => `io.v${PROTOCOL}.wake.${worker}`;
/** Where a worker says that it is there; the same in every version, so that a skew can be told. */
export const presenceSubject = (worker: string): string => `io.presence.${worker}`;

export const hostPool = (name: string): string => `host-${name}`;

/** The pools that a worker serves: everybody's, one for each of its labels, and its own. */
export const poolsOf = (name: string, labels: readonly string[]): string[] => [...new Set([ANY, ...labels, hostPool(name)])];
