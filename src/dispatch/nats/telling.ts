import { setTimeout as sleep } from "node:timers/promises";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Delta, Job, JobEvent, Lasting } from "../port.ts";
import type { Claim } from "./attempt.ts";
import { deltaSubject, toldSubject } from "./names.ts";

const RETRY_MS = 250;

/** What an attempt tells the daemon: deltas as they come, lasting events in order and on disk. */
export function createTelling({ nc, js }: { nc: NatsConnection; js: JetStreamClient }, job: Job, { attempt, stop }: Claim) {
  const { end: _end, ...from } = attempt;
  let seq = 0;
  let published = 0;
  let last: Promise<unknown> = Promise.resolve();
  const eventOf = (body: JobEvent["body"], number: number): JobEvent => ({ job: job.id, ...from, seq: number, body });

  /** The server knows the same event again, so one whose receipt was lost is not told twice. */
  async function publish(event: JobEvent): Promise<void> {
    for (;;) {
      stop.signal.throwIfAborted();
      try {
        await js.publish(toldSubject(job), JSON.stringify(event), { msgID: `${event.lease}.${event.seq}` });
        published = event.seq;
        break;
      } catch {
        // The connection is away; the watchdog says when that has been too long.
        await sleep(RETRY_MS);
      }
    }
    stop.signal.throwIfAborted();
  }

  return {
    /** How many have arrived: one that was given up with the job is not waited for. */
    told: () => published,
    tell(body: Delta): void {
      if (!nc.isClosed()) nc.publish(deltaSubject(job), JSON.stringify(eventOf(body, seq)));
    },
    record(body: Lasting): Promise<void> {
      seq += 1;
      const event = eventOf(body, seq);
      const now = last.then(() => publish(event));
      last = now.catch(() => undefined);
      return now;
    },
  };
}
