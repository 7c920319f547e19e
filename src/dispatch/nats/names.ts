import { type Job, PROTOCOL } from "../port.ts";

/** The work queue: a message a job that is to be done. */
export const STEPS = "STEPS";
/** What workers have told and the daemon has not yet written down. */
export const TOLD = "TOLD";
/** The bucket with a record for every epoch of a job: who holds it, and what it came to. */
export const LEASES = "lease";
/** The daemon's own consumer of what is told. */
export const TOLD_CONSUMER = "daemon";

/** The pool that every worker serves. */
export const ANY = "any";

type Named = Pick<Job, "pool" | "id">;
const io = (...tokens: string[]) => [`io.v${PROTOCOL}`, ...tokens].join(".");

export const stepSubject = ({ pool, id }: Named): string => io("step", pool, id);
export const toldSubject = ({ pool, id }: Named): string => io("told", pool, id);
export const deltaSubject = ({ pool, id }: Named): string => io("delta", pool, id);
export const everyDelta = (): string => io("delta", ">");
/** What a worker asks of the daemon about a job. */
export const askSubject = ({ pool, id }: Named): string => io("ask", pool, id);
export const everyQuestion = (): string => io("ask", "*", "*");
/** Where the daemon tells one worker that a job is not wanted any more. */
export const cancelSubject = (worker: string): string => io("worker", worker, "cancel");
/** Where a worker says that it is there; the same in every version, so that a skew can be told. */
export const presenceSubject = (worker: string): string => `io.presence.${worker}`;

export const consumerOf = (pool: string): string => `v${PROTOCOL}-${pool}`;
export const consumerFilter = (pool: string): string => io("step", pool, "*");
export const bucketOf = (pool: string): string => `blobs-${pool}`;

/** No two epochs share a record: what an older one still says can never be taken for the newer. */
export const recordKey = ({ pool, id, epoch }: Pick<Job, "pool" | "id" | "epoch">): string => `${pool}.${id}.${epoch}`;

export function readRecordKey(key: string): Pick<Job, "pool" | "id" | "epoch"> | undefined {
  const [, pool, id, epoch] = /^([\w-]+)\.([\w-]+)\.(\d{1,9})$/.exec(key) ?? [];
  return pool && id && epoch ? { pool, id, epoch: Number(epoch) } : undefined;
}

export const hostPool = (name: string): string => `host-${name}`;

/** The pools that a worker serves: everybody's, one for each of its labels, and its own. */
export const poolsOf = (name: string, labels: readonly string[]): string[] => [...new Set([ANY, ...labels, hostPool(name)])];
