import { setTimeout as sleep } from "node:timers/promises";
import type { Consumer, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../../lib/log.ts";
import { Job, type Worker } from "../port.ts";
import { type Claim, claim } from "./attempt.ts";
import { createLeases } from "./leases.ts";
import { cancelSubject, consumerOf, poolsOf, STEPS } from "./names.ts";
import { perform } from "./perform.ts";
import { bindCluster } from "./streams.ts";

export interface WorkerHostDeps {
  /** Stays open when the host is closed. */
  connection: NatsConnection;
  name: string;
  labels: readonly string[];
  capacity: number;
  worker: Worker;
  log: Log;
  /** Told when it has more or less to do than before. */
  onChange?: () => void;
}

/** A worker that takes jobs from the cluster, for as long as it is open. */
export interface WorkerHost {
  /** How many jobs are under way. */
  running(): number;
  /** Takes no more, and resolves when what it has is finished. */
  drain(): Promise<void>;
  /** Lets go of what it has, which goes to another; resolves when everything that it started has ended. */
  close(): Promise<void>;
}

const PULL_MS = 3_000;
const RETRY_MS = 250;
const TIMEOUT_MS = 2_000;

export async function openWorker(deps: WorkerHostDeps): Promise<WorkerHost> {
  const { connection: nc, name, labels, capacity, worker, log, onChange = () => undefined } = deps;
  const cluster = await bindCluster(nc, TIMEOUT_MS);
  const leases = createLeases(cluster.leases, TIMEOUT_MS);
  const running = new Map<string, Claim | undefined>();
  const works = new Set<Promise<void>>();
  const free = createSignal();
  let draining = false;
  let closed = false;
  let released = false;
  const isClosed = () => closed || nc.isClosed();

  async function work(message: JsMsg): Promise<void> {
    const parsed = Job.safeParse(readJsonOf(message));
    if (!parsed.success) {
      log.error("a job could not be read and is left to the daemon", { subject: message.subject });
      return message.term();
    }
    const job = parsed.data;
    const key = `${job.id}.${job.epoch}.${message.info.deliveryCount}`;
    running.set(key, undefined);
    try {
      const claimed = await claim({ leases, message, job, worker: name, log, isClosed });
      if (!claimed) return;
      running.set(key, claimed);
      if (closed) claimed.stop.abort("lost");
      onChange();
      await perform({ cluster, worker, log }, job, claimed);
      if (closed && !nc.isClosed() && (await claimed.release())) released = true;
    } catch (error) {
      log.warn("a job could not be taken on; it will be delivered again", { job: job.id, error });
    } finally {
      running.get(key)?.letGo();
      running.delete(key);
      free.tell();
      onChange();
    }
  }

  async function pull(pool: string): Promise<void> {
    let consumer: Consumer | undefined;
    while (!draining && !isClosed()) {
      if (running.size >= capacity) {
        await free.wait();
        continue;
      }
      try {
        consumer ??= await cluster.js.consumers.get(STEPS, consumerOf(pool));
        const message = await consumer.next({ expires: PULL_MS });
        if (!message) continue;
        if (draining || running.size >= capacity) message.nak();
        else {
          const one: Promise<void> = work(message).finally(() => works.delete(one));
          works.add(one);
        }
      } catch {
        // The server is away, or the pool is not made yet.
        consumer = undefined;
        if (!isClosed()) await sleep(RETRY_MS);
      }
    }
  }

  const orders = nc.subscribe(cancelSubject(name), {
    callback: (error, message) => {
      if (error) return;
      const found = [...running.values()].find((each) => each?.attempt.lease === message.string());
      found?.cancel();
      message.respond(found ? "yes" : "no");
    },
  });
  const pulls = poolsOf(name, labels).map(pull);

  return {
    running: () => running.size,
    async drain() {
      draining = true;
      free.tell();
      // What a pull that was under way still brings is begun, or given back.
      await Promise.all(pulls);
      await Promise.all(works);
      if (!nc.isClosed()) await nc.flush();
    },
    async close() {
      closed = true;
      draining = true;
      free.tell();
      for (const claimed of running.values()) claimed?.stop.abort("lost");
      if (!nc.isClosed()) orders.unsubscribe();
      await Promise.all(works);
      // A pull of our own that is still pending may be handed what was given back; it passes it on.
      if (released) await Promise.all(pulls);
      if (released && !nc.isClosed()) await nc.flush();
    },
  };
}

function readJsonOf(message: JsMsg): unknown {
  try {
    return message.json();
  } catch {
    // Not JSON: refused by the schema.
    return undefined;
  }
}

/** Lets several wait for the next time that something changes. */
function createSignal() {
  let waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => void waiting.push(resolve)),
    tell(): void {
      const all = waiting;
      waiting = [];
      for (const each of all) each();
    },
  };
}
