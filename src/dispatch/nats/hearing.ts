import { setTimeout as sleep } from "node:timers/promises";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { KvWatchEntry } from "@nats-io/kv";
import type { QueuedIterator, Subscription } from "@nats-io/transport-node";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import { JobEvent } from "../port.ts";
import { jsonOf } from "./connection.ts";
import type { Endings } from "./endings.ts";
import { readLease } from "./leases.ts";
import { everyDelta, TOLD, TOLD_CONSUMER } from "./names.ts";
import type { Cluster } from "./streams.ts";

export interface HearingDeps {
  cluster: Cluster;
  jobs: Jobs;
  endings: Endings;
  log: Log;
}

const RETRY_MS = 250;

/** What the daemon hears of jobs: records that change, and what workers tell. */
export function createHearing({ cluster: { nc, js, leases }, jobs, endings, log }: HearingDeps) {
  let open: { stop(): void }[] = [];
  let deltas: Subscription | undefined;

  const follow = async <T>(iterator: AsyncIterable<T>, each: (item: T) => void | Promise<void>): Promise<void> => {
    try {
      for await (const item of iterator) await each(item);
    } catch (error) {
      // The next sync begins anew.
      log.debug("a stream of the cluster ended", { error: messageOf(error) });
    }
  };

  async function watchRecords(): Promise<void> {
    const entries: QueuedIterator<KvWatchEntry> = await leases.watch({ key: ">" });
    open.push(entries);
    void follow(entries, (entry) => {
      const held = readLease(entry);
      if (held) endings.take(entry.key, held);
    });
  }

  /** In order, and again until it is on disk: nothing after it may overtake it. */
  async function hearEvent(message: JsMsg): Promise<void> {
    const event = JobEvent.safeParse(jsonOf(message)).data;
    // Whose job it is stands in the subject, which the server holds workers to.
    const ofSubject = message.subject.split(".");
    while (event && event.job === ofSubject.at(-1) && jobs.find(event.job)?.job.pool === ofSubject.at(-2)) {
      try {
        // A daemon that has just started has nobody yet who could write it down.
        if (!jobs.isHeard()) throw new Error("nobody listens yet");
        jobs.tell(event);
        break;
      } catch (error) {
        log.warn("an event of a job could not be written down; trying again", { job: event.job, error: messageOf(error) });
        if (nc.isClosed()) return;
        await sleep(RETRY_MS);
      }
    }
    message.ack();
  }

  const stop = () => {
    for (const each of open) each.stop();
    open = [];
  };

  return {
    async restart(): Promise<void> {
      stop();
      await watchRecords();
      const told: ConsumerMessages = await (await js.consumers.get(TOLD, TOLD_CONSUMER)).consume({ expires: 5_000 });
      open.push({ stop: () => void told.close().catch(() => undefined) });
      void follow(told, hearEvent);
      deltas ??= nc.subscribe(everyDelta(), {
        callback: (error, message) => {
          const event = error ? undefined : JobEvent.safeParse(jsonOf(message)).data;
          if (event?.body.kind === "delta" && message.subject.endsWith(`.${event.job}`)) jobs.tell(event);
        },
      });
    },
    async close(): Promise<void> {
      stop();
      deltas?.unsubscribe();
    },
  };
}
