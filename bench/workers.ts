import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocalDispatcher } from "../src/dispatch/local.ts";
import { type ClusterAccess, connectTo } from "../src/dispatch/nats/connection.ts";
import { createNatsDispatcher } from "../src/dispatch/nats/dispatcher.ts";
import { openWorker } from "../src/dispatch/nats/worker.ts";
import { type Dispatcher, type Job, PROTOCOL, type Worker } from "../src/dispatch/port.ts";
import { createLog } from "../src/lib/log.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { noUsage } from "../src/protocol/usage.ts";
import { openStore } from "../src/store/open.ts";
import type { AtTheEnd } from "../test/support/home.ts";
import { startNats } from "../test/support/nats.ts";
import { fifty } from "./fifty.ts";
import { build, describe, judge, median, temporaryFolder } from "./support.ts";

const LEASE_MS = 5_000;
const MEGABYTE = 1024 * 1024;
/** Which job was begun when, and by whom, with the number of the attempt. */
type Begun = Map<string, { at: number; worker: string }>;
const log = createLog({ redactor: createRedactor() });

/** From submit to start, here and by workers; a job taken over from a worker that is gone; 50 MB there and back. */
export async function run(args: string[]): Promise<void> {
  build();
  const jobs = Number(args[0] ?? 200);
  const folder = temporaryFolder();
  const closers: (() => void | Promise<void>)[] = [];
  const atTheEnd: AtTheEnd = (work) => void closers.unshift(work);
  atTheEnd(folder.remove);
  try {
    const nats = await startNats([{ name: "w1" }, { name: "w2" }], atTheEnd);
    const begun: Begun = new Map();
    const store = (name: string) => {
      const opened = openStore(join(folder.path, name));
      atTheEnd(opened.close);
      return opened;
    };
    const local = createLocalDispatcher({ store: store("local.db"), worker: timed(begun), log });
    const remote = createNatsDispatcher({ store: store("nats.db"), workers: () => [], log, leaseMs: LEASE_MS });
    const connection = await connectTo(nats.accessTo("daemon"));
    atTheEnd(connection.close.bind(connection));
    atTheEnd(remote.close);
    await remote.attend(connection);
    const hosts = new Map<string, { die(): Promise<void> }>();
    for (const name of ["w1", "w2"]) hosts.set(name, await hostOf(nats.accessTo(name), timed(begun), atTheEnd));
    await starts({ local, remote }, begun, jobs);
    await carriage(remote);
    await takeOver(remote, hosts, begun);
    await fifty(atTheEnd);
  } catch (error) {
    // What is put away below may fail over it.
    console.error(error);
    throw error;
  } finally {
    for (const close of closers) await close();
  }
}

/** A job that notes when it was begun, and takes as long as it is told. */
function timed(begun: Begun): Worker {
  return {
    async run({ id, spec }, { signal, attempt }) {
      begun.set(`${id}.${attempt.attempt}`, { at: performance.now(), worker: attempt.worker });
      await sleep(Number(spec.ms), undefined, { signal }).catch(() => undefined);
      return { value: null, tree: null, commit: null, usage: noUsage() };
    },
  };
}

async function hostOf(access: ClusterAccess, worker: Worker, atTheEnd: AtTheEnd) {
  const connection = await connectTo(access);
  const host = await openWorker({ connection, name: access.name, labels: [], capacity: 4, worker, log });
  // Without a word: what it has is not given back.
  const die = () => connection.close().then(host.close);
  atTheEnd(die);
  return { die };
}

const jobOf = (id: string, ms: number): Job => ({
  ...{ id, epoch: 1, pool: "any", kind: "checks", spec: { ms }, protocol: PROTOCOL },
  limits: { leaseMs: LEASE_MS, silenceMs: 60_000, capMs: 600_000, maxAttempts: 5 },
});

/** One after the other in turn, so that whatever else the machine does meets both alike. */
async function starts(by: Record<"local" | "remote", Dispatcher>, begun: Begun, jobs: number): Promise<void> {
  const times = { local: [] as number[], remote: [] as number[] };
  for (let n = -5; n < jobs; n += 1) {
    for (const kind of ["local", "remote"] as const) {
      const id = `${kind}${n + 5}`;
      const from = performance.now();
      await by[kind].submit(jobOf(id, 0));
      await by[kind].ended(id);
      if (n >= 0) times[kind].push(begun.get(`${id}.1`)!.at - from);
    }
  }
  console.log(describe("submit to start, local", times.local));
  console.log(describe("submit to start, workers", times.remote));
  judge("submit to start, workers", median(times.remote), 100, " ms");
}

async function carriage(remote: Dispatcher): Promise<void> {
  const bytes = randomBytes(50 * MEGABYTE);
  const blobs = remote.blobs("any");
  const from = performance.now();
  const ref = await blobs.put("bench", bytes);
  const sent = performance.now();
  await blobs.get(ref);
  const back = performance.now();
  console.log(`50 MB: sent in ${Math.round(sent - from)} ms, fetched and checked in ${Math.round(back - sent)} ms`);
  judge("50 MB there and back", (back - from) / 1000, 30, " s");
}

/** A worker that goes without a word, as one that is killed does: its lease has to run out. */
async function takeOver(remote: Dispatcher, hosts: ReadonlyMap<string, { die(): Promise<void> }>, begun: Begun): Promise<void> {
  await remote.submit(jobOf("taken", 1_000));
  while (!begun.has("taken.1")) await sleep(5);
  const from = performance.now();
  await hosts.get(begun.get("taken.1")!.worker)!.die();
  await remote.ended("taken");
  const tookMs = begun.get("taken.2")!.at - from;
  console.log(`taken over after ${Math.round(tookMs)} ms, with a lease of ${LEASE_MS} ms`);
  judge("take-over", tookMs / LEASE_MS, 3, " leases");
}
