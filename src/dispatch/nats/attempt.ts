import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsMsg } from "@nats-io/jetstream";
import type { Log } from "../../lib/log.ts";
import { type Attempt, CANCELLED, gaveUp, type Job, type Outcome } from "../port.ts";
import type { Stop } from "../run-job.ts";
import { type Held, holderOf, type Lease, type Leases } from "./leases.ts";

/** A holder is heard of this often within its lease. */
const BEATS = 4;
/** How much longer than a beat a silence must be before another takes over what was delivered again. */
const OBSERVED_BEATS = 1.5;
const RETRY_MS = 250;

export interface ClaimDeps {
  leases: Leases;
  message: JsMsg;
  job: Job;
  worker: string;
  log: Log;
  /** Whether there is no connection any more, and never will be. */
  isClosed: () => boolean;
}

/** A job that this worker holds, for as long as nobody else does. */
export interface Claim {
  attempt: Attempt;
  earlier: Attempt[];
  /** Aborted with a `Stop` when it is to end. */
  stop: AbortController;
  /** Writes the end down if the job is still ours; only then is the message acknowledged. */
  complete(outcome: Outcome, extra: Partial<Lease>): Promise<"accepted" | "refused">;
  /** Asked for by the daemon, ahead of the next beat. */
  cancel(): void;
  letGo(): void;
  /** Gives the job back, if it is still ours, so that another may begin it at once; nothing of it may be under way here any more. */
  release(): Promise<boolean>;
}

/** Takes a job on; undefined where it is not to be had. */
export async function claim(deps: ClaimDeps): Promise<Claim | undefined> {
  const { leases, message, job, worker } = deps;
  const held = await free(deps);
  if (!held) return undefined;
  const { lease: record } = held;
  const earlier = [...record.past, ...holderOf(record, job.epoch).map((each) => ({ ...each, end: "lease_expired" as const }))];
  const token = tokenOf(message);
  const begun = performance.now();
  if (record.cancel || earlier.length >= job.limits.maxAttempts) {
    const end = record.cancel ? { state: "cancelled" as const, error: CANCELLED } : failed(earlier.length);
    const written = await leases.write(job, { ...record, ...end, past: earlier, lease: "", worker: "", token }, held.revision);
    if (written !== undefined) message.ack();
    return undefined;
  }
  const attempt: Attempt = { epoch: job.epoch, attempt: earlier.length + 1, lease: randomUUID(), worker };
  const mine: Lease = {
    ...{ state: "running", attempt: attempt.attempt, lease: attempt.lease, worker, token },
    ...{ beat: 0, cancel: false, told: 0, past: earlier },
  };
  const revision = await leases.write(job, mine, held.revision);
  if (revision === undefined) return undefined;
  return hold({ ...deps, mine, revision, begun, attempt, earlier });
}

const failed = (attempts: number) => ({ state: "failed" as const, error: gaveUp(attempts) });
const tokenOf = ({ seq, info }: JsMsg): Lease["token"] => ({ seq, delivery: info.deliveryCount });
const isLater = (a: Lease["token"], b: Lease["token"]) => a.seq > b.seq || (a.seq === b.seq && a.delivery > b.delivery);

/** The record, if the delivery is later than the one it was claimed by, and whoever claimed it is silent. */
async function free({ leases, message, job, log }: ClaimDeps): Promise<Held | undefined> {
  const held = await leases.read(job);
  if (!held) {
    // Its record is made before its message and taken away after it: the job is over.
    message.term();
    return undefined;
  }
  const { state, token } = held.lease;
  if (state !== "open" && state !== "running") {
    message.ack();
    return undefined;
  }
  if (!isLater(tokenOf(message), token)) {
    log.info("a delivery came too late and was dropped", { job: job.id });
    return undefined;
  }
  if (state === "open") return held;
  // A server that was killed forgets who is at work: the holder is given the time to be heard of.
  message.working();
  await sleep((job.limits.leaseMs / BEATS) * OBSERVED_BEATS);
  const again = await leases.read(job);
  return again?.revision === held.revision ? held : undefined;
}

interface HoldDeps extends Omit<ClaimDeps, "worker"> {
  mine: Lease;
  revision: number;
  /** When the write that made it ours was begun, by the clock that nobody sets. */
  begun: number;
  attempt: Attempt;
  earlier: Attempt[];
}

function hold({ leases, message, job, mine, revision, begun, attempt, earlier, log, isClosed }: HoldDeps): Claim {
  const { leaseMs } = job.limits;
  const stop = new AbortController();
  const end = (why: Stop) => stop.abort(why);
  let at = revision;
  let beat = 0;
  let lastOk = begun;
  let writing: Promise<unknown> = Promise.resolve();

  /** One write after the other; "lost" when the record is another's by now. What throws is the connection. */
  async function write(lease: Lease): Promise<"ok" | "lost" | "changed"> {
    const started = performance.now();
    const written = await leases.write(job, lease, at);
    if (written !== undefined) {
      at = written;
      lastOk = started;
      return "ok";
    }
    const now = await leases.read(job);
    // An answer that got lost leaves our own write behind: the lease says whose it is, not the revision.
    if (now?.lease.lease !== attempt.lease) return "lost";
    if (now.lease.state !== "running") return now.lease.state === lease.state ? "ok" : "lost";
    if (now.lease.cancel) end("cancelled");
    at = now.revision;
    return "changed";
  }

  /** The record, if it is still ours and has no end. */
  async function ours(): Promise<Held | undefined> {
    const now = await leases.read(job);
    return now?.lease.lease === attempt.lease && now.lease.state === "running" && !now.lease.cancel ? now : undefined;
  }

  async function heartbeat(): Promise<void> {
    message.working();
    beat += 1;
    if ((await write({ ...mine, beat, cancel: stop.signal.reason === "cancelled" })) === "lost") end("lost");
  }

  const beating = setInterval(() => {
    writing = writing.then(() => (stop.signal.reason === "lost" ? undefined : heartbeat())).catch(() => undefined);
  }, leaseMs / BEATS);
  const watchdog = setInterval(
    () => {
      if (performance.now() - lastOk > leaseMs) end("lost");
    },
    Math.max(10, leaseMs / 40),
  );
  const letGo = () => {
    clearInterval(beating);
    clearInterval(watchdog);
  };

  return {
    attempt,
    earlier,
    stop,
    letGo,
    cancel: () => end("cancelled"),
    async release() {
      letGo();
      await writing;
      const past = [...earlier, { ...attempt, end: "lease_expired" as const }];
      const { revision: now } = (await ours()) ?? {};
      if (now === undefined) return false;
      const written = await leases.write(job, { ...mine, state: "open", lease: "", worker: "", past }, now);
      if (written !== undefined) message.nak();
      return written !== undefined;
    },
    async complete(outcome, extra) {
      letGo();
      await writing;
      const { state } = outcome;
      const ended: Lease = { ...mine, beat, ...extra, state, ...(outcome.state !== "done" && { error: outcome.error }) };
      for (;;) {
        if (isClosed()) return "refused";
        try {
          // What changed is the daemon's wish to cancel, or a beat of ours: neither takes the job away.
          const wanted = stop.signal.reason === "cancelled" && state === "done" ? { ...ended, ...cancelledEnd } : ended;
          const result = await write(wanted);
          if (result === "lost") return "refused";
          if (result === "ok") break;
        } catch (error) {
          log.debug("an end could not be written down yet", { job: job.id, error });
          await sleep(RETRY_MS);
        }
      }
      message.ack();
      return "accepted";
    },
  };
}

const cancelledEnd = { state: "cancelled" as const, error: CANCELLED };
