import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startHosts, type TestWorker } from "../../support/dispatch/cluster.ts";
import { jobOf, LEASE_MS } from "../../support/dispatch/work.ts";

const JOBS = 300;
const SEED = 16;

test("300 jobs end once each, whatever happens to workers, cables, the server and the daemon, and every beginning is on record", async () => {
  const { nats, host, daemon, worker, notes, noted } = await startHosts();
  const random = createRandom(SEED);
  let dispatcher = await daemon();
  const hosts = await Promise.all(
    ["w1", "w2", "w3"].map(async (name) => {
      const start = () => worker(name, { capacity: 4 });
      return { cable: host(name), start, now: (await start()) as TestWorker };
    }),
  );
  const faults = [
    async () => {
      const one = hosts[Math.floor(random() * hosts.length)]!;
      await one.now.kill();
      one.now = await one.start();
    },
    async () => {
      const { child } = hosts[Math.floor(random() * hosts.length)]!.now;
      child.kill("SIGSTOP");
      await sleep(LEASE_MS * 1.5);
      child.kill("SIGCONT");
    },
    async () => {
      const { cable } = hosts[Math.floor(random() * hosts.length)]!;
      await cable.cut();
      await sleep(LEASE_MS * 1.5);
      await cable.mend();
    },
    async () => {
      await nats.kill();
      await nats.start();
    },
    async () => {
      await dispatcher.die();
      dispatcher = await daemon();
      await dispatcher.reconcile(ids);
    },
  ];
  const ids = Array.from({ length: JOBS }, (_, n) => `j${n}`);
  let submitted = 0;
  const submitting = (async () => {
    for (const id of ids) {
      // A daemon that has just ended accepts nothing any more.
      while (
        !(await dispatcher
          .submit(jobOf(id, { notes, ms: Math.floor(random() * 600), effects: ["c"] }, { limits: { maxAttempts: 50 } }))
          .then(
            () => true,
            () => false,
          ))
      )
        await sleep(20);
      submitted += 1;
      await sleep(20);
    }
  })();
  for (let n = 0; submitted < JOBS; n += 1) {
    await faults[n % faults.length]!();
    await sleep(100);
  }
  await submitting;
  const ends = await Promise.all(ids.map((id) => dispatcher.ended(id)));
  expect(ends.filter(({ state }) => state !== "done")).toEqual([]);
  for (const { attempts } of ends) expect(attempts.filter(({ end }) => end === "done")).toHaveLength(1);
  const known = new Set(
    ends.flatMap(({ attempts }, at) => attempts.map(({ attempt, worker: by }) => `begun ${ids[at]} ${attempt} ${by}`)),
  );
  // The faults must have had an effect.
  expect(ends.filter(({ attempts }) => attempts.length > 1).length).toBeGreaterThan(3);
  expect(noted("begun").filter((line) => !known.has(line))).toEqual([]);
}, 180_000);

/** Pseudo-random numbers, the same each time (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
