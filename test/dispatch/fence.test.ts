import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createJobs } from "../../src/dispatch/jobs.ts";
import { claim } from "../../src/dispatch/nats/attempt.ts";
import { connectTo } from "../../src/dispatch/nats/connection.ts";
import { createNatsDispatcher } from "../../src/dispatch/nats/dispatcher.ts";
import { createLeases } from "../../src/dispatch/nats/leases.ts";
import { askSubject, consumerOf, hostPool, STEPS } from "../../src/dispatch/nats/names.ts";
import { bindCluster } from "../../src/dispatch/nats/streams.ts";
import { Job, type Outcome } from "../../src/dispatch/port.ts";
import { noUsage } from "../../src/protocol/usage.ts";
import { openStore } from "../../src/store/open.ts";
import { jobOf, LEASE_MS } from "../support/dispatch/work.ts";
import { quietLog } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { startNats } from "../support/nats.ts";
import { until } from "../support/until.ts";

const done = (value: string): Outcome => ({ state: "done", value, tree: null, commit: null, usage: noUsage() });
const resultOf = (value: string) => ({ result: { value, tree: null, commit: null, usage: noUsage() } });

/** The daemon's side, and a worker's hands: what a worker does in order can be done here in any. */
async function start() {
  const nats = await startNats([{ name: "w1" }, { name: "w2" }]);
  const store = openStore(join(temporaryFolder(), "io.db"));
  const dispatcher = createNatsDispatcher({ store, workers: () => [], log: quietLog, leaseMs: LEASE_MS });
  const boss = await connectTo(nats.accessTo("daemon"));
  await dispatcher.attend(boss);
  await dispatcher.reconcile([]);
  const nc = await connectTo(nats.accessTo("w1"));
  const cluster = await bindCluster(nc, 2_000);
  const leases = createLeases(cluster.leases, 2_000);
  onTestFinished(async () => {
    await dispatcher.close();
    await Promise.all([nc.close(), boss.close()]);
    store.close();
  });
  const consumer = await cluster.js.consumers.get(STEPS, consumerOf("any"));
  const next = () => until("a delivery", async () => (await consumer.next({ expires: 1_000 })) ?? undefined);
  const take = async (message: Awaited<ReturnType<typeof next>>, worker: string) => {
    const job = Job.parse(message.json());
    return claim({ leases, message, job, worker, log: quietLog, isClosed: () => nc.isClosed() });
  };
  /** How many messages the server still has for jobs and their records. */
  const left = async () => {
    const { jsm } = await bindCluster(boss, 2_000);
    const states = await Promise.all([STEPS, "KV_lease"].map((name) => jsm.streams.info(name)));
    return states.reduce((sum, { state }) => sum + state.messages, 0);
  };
  return { dispatcher, next, take, leases, left, nc };
}

test("a worker that was overtaken cannot complete its job, whatever it acknowledges; the one that overtook it can", async () => {
  const { dispatcher, next, take } = await start();
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const delivered = await next();
  const first = await take(delivered, "w1");
  // As if it were frozen: no beat, no watchdog.
  first!.letGo();
  const again = await next();
  const second = await take(again, "w2");
  expect(second!.attempt).toMatchObject({ attempt: 2, worker: "w2" });
  expect(second!.earlier).toMatchObject([{ attempt: 1, worker: "w1", end: "lease_expired" }]);
  expect(await first!.complete(done("stale"), resultOf("stale"))).toBe("refused");
  // A late acknowledgement is accepted by the server, and changes nothing.
  delivered.ack();
  expect(await second!.complete(done("fresh"), resultOf("fresh"))).toBe("accepted");
  expect(await dispatcher.ended("j")).toMatchObject({
    state: "done",
    value: "fresh",
    attempts: [{ end: "lease_expired" }, { end: "done" }],
  });
});

test("a question is answered to who holds the job, and to nobody who is overtaken, makes up a hold, or asks as of another pool", async () => {
  const { dispatcher, next, take, nc } = await start();
  dispatcher.serve(async ({ data }) => `answer to ${String(data)}`);
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const first = (await take(await next(), "w1"))!;
  let number = 0;
  const ask = async (attempt: object, pool = "any", id = "j") => {
    number += 1;
    const asked = JSON.stringify({ attempt, number, data: { value: "this" } });
    return (await nc.request(askSubject({ pool, id }), asked, { timeout: 5_000 })).json();
  };
  const lost = { state: "lost" };
  expect(await ask(first.attempt)).toEqual({ state: "answered", data: { value: "answer to this" } });
  expect(await ask(first.attempt, hostPool("w1"))).toEqual(lost);
  expect(await ask(first.attempt, "any", "other")).toEqual(lost);
  expect(await ask({ ...first.attempt, lease: "made-up" })).toEqual(lost);
  expect(await ask({ ...first.attempt, epoch: first.attempt.epoch + 1 })).toEqual(lost);
  expect(await ask({})).toEqual(lost);
  first.letGo();
  const second = (await take(await next(), "w2"))!;
  expect(await ask(first.attempt)).toEqual(lost);
  expect(await ask(second.attempt)).toMatchObject({ state: "answered" });
  expect(await second.complete(done("fresh"), resultOf("fresh"))).toBe("accepted");
  expect(await ask(second.attempt)).toEqual(lost);
});

test("a delivery that was overtaken by another is not a claim any more", async () => {
  const { dispatcher, next, take } = await start();
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const delivered = await next();
  const again = await next();
  const second = await take(again, "w2");
  // Though nobody is heard of, an older delivery takes nothing from a later one.
  second!.letGo();
  expect(await take(delivered, "w1")).toBeUndefined();
  expect(await second!.complete(done("fresh"), resultOf("fresh"))).toBe("accepted");
  expect(await dispatcher.ended("j")).toMatchObject({ value: "fresh", attempts: [{ attempt: 1, worker: "w2" }] });
});

test("a holder that is heard of is not overtaken, though its job is delivered again", async () => {
  const { dispatcher, next, take, leases } = await start();
  const job = jobOf("j", { notes: "none" });
  await dispatcher.submit(job);
  const delivered = await next();
  const first = await take(delivered, "w1");
  // It beats, but its message is not kept back: as after a server that forgot who is at work.
  delivered.nak();
  const again = await next();
  expect(await take(again, "w2")).toBeUndefined();
  expect((await leases.read(job))?.lease).toMatchObject({ worker: "w1", state: "running" });
  expect(await first!.complete(done("kept"), resultOf("kept"))).toBe("accepted");
  expect(await dispatcher.ended("j")).toMatchObject({ value: "kept", attempts: [{ worker: "w1", end: "done" }] });
});

test("a worker whose wish to write is answered by silence takes its own record for its own", async () => {
  const { dispatcher, next, take, leases } = await start();
  const job = jobOf("j", { notes: "none" });
  await dispatcher.submit(job);
  const first = await take(await next(), "w1");
  // A write of its own whose receipt never came: the revision is another, the lease the same.
  const held = (await leases.read(job))!;
  await leases.write(job, { ...held.lease, beat: 99 }, held.revision);
  expect(await first!.complete(done("mine"), resultOf("mine"))).toBe("accepted");
  expect(await dispatcher.ended("j")).toMatchObject({ value: "mine" });
});

test("nothing is left on the server of a job that has ended, also where its end was never acknowledged", async () => {
  const { dispatcher, next, take, leases, left } = await start();
  const job = jobOf("j", { notes: "none" });
  await dispatcher.submit(job);
  const message = await next();
  const held = (await take(message, "w1"))!;
  held.letGo();
  const now = (await leases.read(job))!;
  // As a worker that dies between its completion and its acknowledgement.
  await leases.write(job, { ...now.lease, state: "done", ...resultOf("kept") }, now.revision);
  expect(await dispatcher.ended("j")).toMatchObject({ value: "kept" });
  await until("everything to be taken away", async () => (await left()) === 0);
  expect(await leases.read(job)).toBeUndefined();
});

test("the table takes one end, and only of the epoch that is open", () => {
  const store = openStore(":memory:");
  onTestFinished(store.close);
  const jobs = createJobs(store);
  jobs.add(jobOf("j", { notes: "none" }));
  expect(jobs.raise("j")?.job.epoch).toBe(2);
  expect(jobs.end("j", 1, done("older"))).toBe(false);
  expect(jobs.end("j", 2, done("first"))).toBe(true);
  expect(jobs.end("j", 2, done("second"))).toBe(false);
  expect(jobs.raise("j")).toBeUndefined();
  expect(jobs.add(jobOf("j", { notes: "none" }, { epoch: 9 }))).toBeUndefined();
  return expect(jobs.ended("j")).resolves.toMatchObject({ state: "done", value: "first" });
});

test("an event that comes twice is told once, and one that its listener could not take is told again", () => {
  const store = openStore(":memory:");
  onTestFinished(store.close);
  const jobs = createJobs(store);
  jobs.add(jobOf("j", { notes: "none" }));
  const heard: number[] = [];
  let isDeaf = true;
  jobs.listen(({ seq }) => {
    if (isDeaf) throw new Error("busy");
    heard.push(seq);
  });
  const attempt = { epoch: 1, attempt: 1, lease: "one", worker: "w1" };
  const tell = (seq: number) => jobs.tell({ job: "j", ...attempt, seq, body: { kind: "intent", call: "c", data: null } });
  expect(() => tell(1)).toThrow("busy");
  isDeaf = false;
  for (const seq of [1, 1, 2, 1]) tell(seq);
  expect(heard).toEqual([1, 2]);
});
