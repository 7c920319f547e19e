import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLog } from "../src/lib/log.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { noUsage } from "../src/protocol/usage.ts";
import { openStore } from "../src/store/open.ts";
import { connectTo } from "../src/workers/jobs/nats/connection.ts";
import { createDesk } from "../src/workers/jobs/nats/desk.ts";
import { createNatsDispatcher } from "../src/workers/jobs/nats/dispatcher.ts";
import { createLink } from "../src/workers/jobs/nats/link.ts";
import { openWorker } from "../src/workers/jobs/nats/worker.ts";
import { type Blobs, type Dispatcher, type Job, PROTOCOL, type Worker } from "../src/workers/jobs/port.ts";
import type { AtTheEnd } from "../test/support/home.ts";
import { startNats, type TestNats, workerInfo } from "../test/support/nats.ts";
import { fifty } from "./fifty.ts";
import { build, describe, judge, median, temporaryFolder } from "./support.ts";

const LEASE_MS = 5_000;
const MEGABYTE = 1024 * 1024;
/** When each attempt at a job began, and on which worker. */
type Begun = Map<string, { at: number; worker: string }>;
const log = createLog({ redactor: createRedactor() });

/** Measures the time from submit to start on workers, the take-over of a job from a lost worker, and 50 MB there and back. */
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
    const store = openStore(join(folder.path, "nats.db"));
    atTheEnd(store.close);
    const remote = createNatsDispatcher({
      ...{ store, folder: join(folder.path, "blobs"), log, leaseMs: LEASE_MS },
      workers: () => [workerInfo("w1"), workerInfo("w2")],
    });
    const access = nats.accessTo("daemon");
    const connection = await connectTo(access);
    atTheEnd(connection.close.bind(connection));
    atTheEnd(remote.close);
    remote.attend(connection, createDesk({ seed: access.nkeySeed, keyOf: nats.publicKey }));
    const hosts = new Map<string, { die(): Promise<void> }>();
    for (const name of ["w1", "w2"]) hosts.set(name, await hostOf(nats, name, timed(begun), atTheEnd));
    await starts(remote, begun, jobs);
    await carriage(remote);
    await takeOver(remote, hosts, begun);
    await fifty(atTheEnd);
  } catch (error) {
    // The cleanup below may fail because of it.
    console.error(error);
    throw error;
  } finally {
    for (const close of closers) await close();
  }
}

/** A worker whose jobs record when they begin, and take as long as specified. */
function timed(begun: Begun): Worker {
  return {
    async run({ id, spec }, { signal, attempt, blobs }) {
      begun.set(`${id}.${attempt.attempt}`, { at: performance.now(), worker: attempt.worker });
      if (spec.bytes) return { value: await carried(blobs, Number(spec.bytes)), tree: null, commit: null, usage: noUsage() };
      await sleep(Number(spec.ms), undefined, { signal }).catch(() => undefined);
      return { value: null, tree: null, commit: null, usage: noUsage() };
    },
  };
}

async function hostOf(nats: TestNats, name: string, worker: Worker, atTheEnd: AtTheEnd) {
  const access = nats.accessTo(name);
  const connection = await connectTo(access);
  const link = createLink({ connection, access, daemon: nats.publicKey("daemon") });
  const host = openWorker({ link, capacity: 4, worker, log });
  // Closes without notice, so its jobs are not given back.
  const die = () => connection.close().then(host.close);
  atTheEnd(die);
  return { die };
}

const jobOf = (id: string, ms: number): Job => ({
  ...{ id, epoch: 1, pool: "any", kind: "checks", spec: { ms }, protocol: PROTOCOL },
  limits: { leaseMs: LEASE_MS, silenceMs: 60_000, capMs: 600_000, maxAttempts: 5 },
});

async function starts(remote: Dispatcher, begun: Begun, jobs: number): Promise<void> {
  const times: number[] = [];
  for (let n = -5; n < jobs; n += 1) {
    const id = `job${n + 5}`;
    const from = performance.now();
    await remote.submit(jobOf(id, 0));
    await remote.ended(id);
    if (n >= 0) times.push(begun.get(`${id}.1`)!.at - from);
  }
  console.log(describe("submit to start, workers", times));
  judge("submit to start, workers", median(times), 100, " ms");
}

async function carriage(remote: Dispatcher): Promise<void> {
  await remote.submit({ ...jobOf("carries", 0), spec: { bytes: 50 * MEGABYTE } });
  const end = await remote.ended("carries");
  const { sentMs, backMs } = (end.state === "done" ? end.value : {}) as { sentMs: number; backMs: number };
  console.log(`50 MB: sent in ${Math.round(sentMs)} ms, fetched and checked in ${Math.round(backMs)} ms`);
  judge("50 MB there and back", (sentMs + backMs) / 1000, 30, " s");
}

/** On a worker: stores bytes at the daemon and fetches them back. */
async function carried(blobs: Blobs, size: number): Promise<{ sentMs: number; backMs: number }> {
  const bytes = randomBytes(size);
  const from = performance.now();
  const ref = await blobs.put("bench", bytes);
  const sent = performance.now();
  await blobs.get(ref);
  return { sentMs: sent - from, backMs: performance.now() - sent };
}

/** Measures the take-over from a worker that is lost without notice, as one that is killed: its lease has to expire. */
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
