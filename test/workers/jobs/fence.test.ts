import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { noUsage } from "../../../src/protocol/usage.ts";
import { openStore } from "../../../src/store/open.ts";
import { createJobs } from "../../../src/workers/jobs/jobs.ts";
import { connectTo } from "../../../src/workers/jobs/nats/connection.ts";
import { createDesk } from "../../../src/workers/jobs/nats/desk.ts";
import { createNatsDispatcher } from "../../../src/workers/jobs/nats/dispatcher.ts";
import { createLink } from "../../../src/workers/jobs/nats/link.ts";
import type { AnswerTo } from "../../../src/workers/jobs/nats/messages.ts";
import type { Outcome } from "../../../src/workers/jobs/port.ts";
import { jobOf, LEASE_MS } from "../../support/dispatch/work.ts";
import { quietLog } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { startNats, workerInfo } from "../../support/nats.ts";
import { until } from "../../support/until.ts";

const done = (value: string): Outcome => ({ state: "done", value, tree: null, commit: null, usage: noUsage() });
const LOST = { state: "lost" };

/** The daemon's side, and two clients with workers' keys that can do in any order what a worker does in sequence. */
async function start() {
  const nats = await startNats([{ name: "w1" }, { name: "w2" }]);
  const store = openStore(join(temporaryFolder(), "io.db"));
  const workers = () => [workerInfo("w1"), workerInfo("w2")];
  const folder = join(temporaryFolder(), "blobs");
  const dispatcher = createNatsDispatcher({ store, workers, folder, log: quietLog, leaseMs: LEASE_MS });
  const access = nats.accessTo("daemon");
  const boss = await connectTo(access);
  dispatcher.attend(boss, createDesk({ seed: access.nkeySeed, keyOf: nats.publicKey }));
  await dispatcher.reconcile([]);
  onTestFinished(async () => {
    await dispatcher.close();
    await boss.close();
    store.close();
  });

  async function hands(name: string) {
    const connection = await connectTo(nats.accessTo(name));
    onTestFinished(() => connection.close());
    const link = createLink({ connection, access: nats.accessTo(name), daemon: nats.publicKey("daemon") });
    const ask = async (kind: string, data: object) => {
      const answered = await link.ask(kind, data, { timeoutMs: 5_000 });
      return typeof answered === "string" ? answered : answered.data;
    };
    const held: string[] = [];
    return {
      ask,
      /** Waits for the next job and accepts it. */
      async take() {
        const grant = await until("a job", async () => ((await ask("next", { held })) as AnswerTo<"next">).grant ?? undefined);
        const { attempt } = grant;
        held.push(attempt.lease);
        expect(await ask("beat", { lease: attempt.lease })).toEqual({ state: "held" });
        return { ...grant, lease: attempt.lease };
      },
      end: (lease: string, value: string) => ask("end", { lease, outcome: { value: done(value) } }),
    };
  }
  return { dispatcher, w1: await hands("w1"), w2: await hands("w2") };
}

test("a worker that was overtaken cannot complete its job; the one that overtook it can", async () => {
  const { dispatcher, w1, w2 } = await start();
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const first = await w1.take();
  // As if the worker were frozen: nothing is heard from it any more.
  const second = await w2.take();
  expect(second.attempt).toMatchObject({ attempt: 2, worker: "w2" });
  expect(second.earlier).toMatchObject([{ attempt: 1, worker: "w1", end: "lease_expired" }]);
  expect(await w1.end(first.lease, "stale")).toEqual({ state: "refused" });
  expect(await w2.end(second.lease, "fresh")).toEqual({ state: "accepted" });
  expect(await w2.end(second.lease, "again")).toEqual({ state: "refused" });
  expect(await dispatcher.ended("j")).toMatchObject({
    state: "done",
    value: "fresh",
    attempts: [{ end: "lease_expired" }, { end: "done" }],
  });
});

test("a question is answered to who holds the job, and to nobody who was overtaken, makes up a lease, or has another's", async () => {
  const { dispatcher, w1, w2 } = await start();
  dispatcher.serve(async ({ data }) => `answer to ${String(data)}`);
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const first = await w1.take();
  let number = 0;
  const ask = (by: typeof w1, lease: string) => {
    number += 1;
    return by.ask("ask", { lease, number, data: { value: "this" } });
  };
  const answered = { state: "answered", data: { value: "answer to this" } };
  expect(await ask(w1, first.lease)).toEqual(answered);
  expect(await ask(w2, first.lease)).toEqual(LOST);
  expect(await ask(w1, "00000000-0000-0000-0000-000000000000")).toEqual(LOST);
  const second = await w2.take();
  expect(await ask(w1, first.lease)).toEqual(LOST);
  expect(await ask(w2, second.lease)).toEqual(answered);
  expect(await w2.end(second.lease, "fresh")).toEqual({ state: "accepted" });
  expect(await ask(w2, second.lease)).toEqual(LOST);
});

test("a holder that is heard of is not overtaken, and what was given and never taken on is no attempt", async () => {
  const { dispatcher, w1, w2 } = await start();
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  // The answer is lost on its way: the worker asks again without the job.
  expect(await w1.ask("next", { held: [] })).toMatchObject({ grant: { attempt: { attempt: 1 } } });
  const first = await w1.take();
  expect(first.attempt.attempt).toBe(1);
  // The other worker waits for longer than two leases.
  let isWaiting = true;
  const other = w2.ask("next", { held: [] }).finally(() => {
    isWaiting = false;
  });
  while (isWaiting) expect(await w1.ask("beat", { lease: first.lease })).toEqual({ state: "held" });
  expect(await other).toEqual({ grant: null });
  expect(await w1.end(first.lease, "kept")).toEqual({ state: "accepted" });
  expect(await dispatcher.ended("j")).toMatchObject({ value: "kept", attempts: [{ attempt: 1, worker: "w1", end: "done" }] });
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
  const tell = (seq: number) => jobs.publish({ job: "j", ...attempt, seq, body: { kind: "intent", call: "c", data: null } });
  expect(() => tell(1)).toThrow("busy");
  isDeaf = false;
  for (const seq of [1, 1, 2, 1]) tell(seq);
  expect(heard).toEqual([1, 2]);
});
