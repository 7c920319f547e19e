import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import type { KV, KvEntry } from "@nats-io/kv";
import { z } from "zod";
import { Failure } from "../../protocol/messages.ts";
import { Attempt, BlobRef, type Job, JobValue } from "../port.ts";
import { LEASES, recordKey } from "./names.ts";

/** Who holds one epoch of a job, and what it came to. Changed only by compare-and-set. */
export const Lease = z.object({
  state: z.enum(["open", "running", "done", "failed", "cancelled"]),
  attempt: z.number().int(),
  lease: z.string(),
  worker: z.string(),
  /** The delivery that the holder claimed it by; only a later one may take it over. */
  token: z.object({ seq: z.number().int(), delivery: z.number().int() }),
  beat: z.number().int(),
  /** Set by the daemon: whoever holds the job, or takes it over, is to end it. */
  cancel: z.boolean(),
  /** How many lasting events its holder has told. */
  told: z.number().int(),
  past: z.array(Attempt),
  result: JobValue.optional(),
  /** Where the result lies if it is too large for a record. */
  resultBlob: BlobRef.optional(),
  error: Failure.optional(),
});
export type Lease = z.infer<typeof Lease>;

export interface Held {
  lease: Lease;
  revision: number;
}

const WRONG_SEQUENCE = [10071, 10164];
export const isConflict = (error: unknown): boolean => error instanceof JetStreamApiError && WRONG_SEQUENCE.includes(error.code);

/** A record that nobody holds yet. */
export const unclaimed = (past: Attempt[]): Lease => ({
  ...{ state: "open", attempt: 0, lease: "", worker: "", token: { seq: 0, delivery: 0 } },
  ...{ beat: 0, cancel: false, told: 0, past },
});

/** The attempt that holds a record, as it would be told. */
export function holderOf({ state, attempt, lease, worker }: Lease, epoch: number): Attempt[] {
  if (lease === "") return [];
  return [{ epoch, attempt, lease, worker, ...(state !== "open" && state !== "running" && { end: state }) }];
}

/** A record as another version or a stranger may have written it. */
export function readLease(entry: Pick<KvEntry, "operation" | "value" | "revision">): Held | undefined {
  if (entry.operation !== "PUT") return undefined;
  try {
    const { data } = Lease.safeParse(JSON.parse(new TextDecoder().decode(entry.value)));
    return data && { lease: data, revision: entry.revision };
  } catch {
    // Not JSON: as good as no record, and the daemon begins anew.
    return undefined;
  }
}

type Key = Pick<Job, "pool" | "id" | "epoch">;

/** The records, read and changed by their revisions. What throws is the connection. */
export function createLeases(kv: KV, timeoutMs: number) {
  return {
    async read(key: Key): Promise<Held | undefined> {
      const entry = await kv.get(recordKey(key));
      return entry ? readLease(entry) : undefined;
    },
    /** Its new revision; undefined if somebody else has changed it since. */
    async write(key: Key, lease: Lease, revision: number): Promise<number | undefined> {
      try {
        return await kv.put(recordKey(key), JSON.stringify(lease), { previousSeq: revision, timeout: timeoutMs });
      } catch (error) {
        if (isConflict(error)) return undefined;
        throw error;
      }
    },
    /** Makes a record where there is none. */
    async create(key: Key, lease: Lease): Promise<void> {
      try {
        await kv.create(recordKey(key), JSON.stringify(lease));
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
    },
  };
}
export type Leases = ReturnType<typeof createLeases>;

/** Takes a record away without a trace: what its holder still writes is refused. */
export const dropLease = (jsm: JetStreamManager, key: string): Promise<void> =>
  dropSubject(jsm, `KV_${LEASES}`, `$KV.${LEASES}.${key}`);

/** Its holder may write once more between a look and the deletion. */
const DROPS = 5;

/** One message after the other: a purge of one subject makes consumers of servers before 2.10 skip others. */
export async function dropSubject(jsm: JetStreamManager, stream: string, subject: string): Promise<void> {
  for (let n = 0; n < DROPS; n += 1) {
    const last = await jsm.streams.getMessage(stream, { last_by_subj: subject });
    if (!last) return;
    try {
      await jsm.streams.deleteMessage(stream, last.seq, false);
    } catch (error) {
      // Acknowledged, and so gone, while we looked.
      if (!(error instanceof JetStreamApiError && /no message found/.test(error.message))) throw error;
    }
  }
}
