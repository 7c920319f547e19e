import type { NatsConnection } from "@nats-io/transport-node";
import { CANCELLED, type Job } from "../port.ts";
import type { Held, Lease, Leases } from "./leases.ts";
import { cancelSubject } from "./names.ts";

/** How long a worker has to say that it was told. */
const ANSWER_MS = 1_500;
/** A beat may come between a look and a write, and another one after it. */
const TRIES = 20;

export const cancelled = (lease: Lease): Lease => ({ ...lease, state: "cancelled", error: CANCELLED, cancel: true });

/** Ends a job in its record, and tells its holder; "ended": it had an end already, or has no record. */
export async function cancelLease(
  { nc, leases }: { nc: NatsConnection; leases: Leases },
  job: Job,
): Promise<"reached" | "before start" | "gone" | "ended"> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const held = await leases.read(job);
    if (!held || (held.lease.state !== "open" && held.lease.state !== "running")) return "ended";
    if (held.lease.state === "open") {
      if ((await leases.write(job, cancelled(held.lease), held.revision)) !== undefined) return "before start";
      continue;
    }
    if (!held.lease.cancel && (await leases.write(job, { ...held.lease, cancel: true }, held.revision)) === undefined) continue;
    if (await tellHolder(nc, held)) return "reached";
    const now = await leases.read(job);
    if (now?.lease.state === "running" && (await leases.write(job, cancelled(now.lease), now.revision)) !== undefined)
      return "gone";
  }
  return "ended";
}

async function tellHolder(nc: NatsConnection, { lease: { worker, lease } }: Held): Promise<boolean> {
  try {
    const answer = await nc.request(cancelSubject(worker), lease, { timeout: ANSWER_MS });
    return answer.string() === "yes";
  } catch {
    // It is away: what is in the record stops it when it comes back.
    return false;
  }
}
