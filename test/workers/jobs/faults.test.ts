import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { noUsage } from "../../../src/protocol/usage.ts";
import { openStore } from "../../../src/store/open.ts";
import { createJobs } from "../../../src/workers/jobs/jobs.ts";
import { startCluster, startHosts } from "../../support/dispatch/cluster.ts";
import { jobOf, LEASE_MS } from "../../support/dispatch/work.ts";
import { sleeping } from "../../support/processes.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

/** Two seconds are promised; a busy machine gets more. */
const PROMPT_MS = 8_000;
/** Long enough for a lease to expire and for another worker to take over. */
const OVERTAKEN_MS = LEASE_MS * 2;

describe("a worker", () => {
  test("that is killed loses its job to another, and both times are on record", async () => {
    const { daemon, worker, notes, untilNoted } = await startCluster();
    const dispatcher = await daemon();
    const first = await worker("w1");
    await dispatcher.submit(jobOf("j", { notes, ms: 1_000 }));
    await untilNoted("begun j 1 w1");
    await first.kill();
    await worker("w2");
    expect(await dispatcher.ended("j")).toMatchObject({
      state: "done",
      value: { earlier: 1 },
      attempts: [
        { attempt: 1, worker: "w1", end: "lease_expired" },
        { attempt: 2, worker: "w2", end: "done" },
      ],
    });
  });

  test("that was frozen past its lease is not believed when it thaws, and works on", async () => {
    const { daemon, worker, notes, noted, untilNoted } = await startCluster();
    const dispatcher = await daemon();
    const first = await worker("w1", { capacity: 1 });
    await dispatcher.submit(jobOf("j", { notes, ms: 700 }));
    await untilNoted("begun j 1 w1");
    first.child.kill("SIGSTOP");
    await worker("w2");
    const end = await dispatcher.ended("j");
    expect(end).toMatchObject({ state: "done", attempts: [{ end: "lease_expired" }, { worker: "w2", end: "done" }] });
    first.child.kill("SIGCONT");
    await until("the frozen worker to know", () => /lost to another|refused/.test(first.said()));
    expect(await dispatcher.ended("j")).toEqual(end);
    await dispatcher.submit(jobOf("next", { notes }, { pool: "host-w1" }));
    expect(await dispatcher.ended("next")).toMatchObject({ state: "done" });
    expect(noted("begun").filter((line) => line.includes(" j "))).toHaveLength(2);
  });

  test("that is cut off stops by its own clock, and another does the job", async () => {
    const { host, daemon, worker, notes, untilNoted } = await startHosts();
    const dispatcher = await daemon();
    const first = await worker("w1");
    await dispatcher.submit(jobOf("j", { notes, ms: 3_000 }));
    await untilNoted("begun j 1 w1");
    // It only connects to others: nobody can connect to it.
    expect(host("w1").listening()).toBe(0);
    await host("w1").cut();
    await worker("w2");
    await untilNoted("stopped j 1 w1");
    expect(await dispatcher.ended("j")).toMatchObject({
      state: "done",
      attempts: [{ worker: "w1" }, { worker: "w2", end: "done" }],
    });
    await host("w1").mend();
    await until("the worker to be back", async () =>
      (await dispatcher.workers()).some(({ name, state }) => name === "w1" && state === "ready"),
    );
    expect(first.said()).toMatch(/lost to another/);
  });

  test("whose job is begun too often for it lets it fail, with a sentence", async () => {
    const { daemon, worker, notes, untilNoted } = await startCluster();
    const dispatcher = await daemon();
    await dispatcher.submit(jobOf("j", { notes, ms: 60_000 }, { limits: { maxAttempts: 2 } }));
    for (const [at, name] of ["w1", "w2"].entries()) {
      const each = await worker(name);
      await untilNoted(`begun j ${at + 1} ${name}`);
      await each.kill();
    }
    await worker("w3");
    expect(await dispatcher.ended("j")).toMatchObject({
      state: "failed",
      error: { code: "gave_up", message: expect.stringContaining("begun 2 times") },
      attempts: [{ end: "lease_expired" }, { end: "lease_expired" }],
    });
  });
});

describe("a server", () => {
  test("that is killed and comes back harms nothing that runs, and takes what was submitted meanwhile", async () => {
    const { nats, daemon, worker, notes, untilNoted } = await startCluster();
    const leaseMs = 15_000;
    const dispatcher = await daemon({ leaseMs });
    await worker("w1");
    await dispatcher.submit(jobOf("runs", { notes, ms: 900, effects: ["c1"] }, { limits: { leaseMs } }));
    await untilNoted("begun runs");
    await nats.kill();
    const submitted = dispatcher.submit(jobOf("meanwhile", { notes }));
    await nats.start();
    await submitted;
    expect(await dispatcher.ended("runs")).toMatchObject({ state: "done", attempts: [{ attempt: 1, end: "done" }] });
    expect(await dispatcher.ended("meanwhile")).toMatchObject({ state: "done" });
  });

  test("that comes back empty has lost nothing, since it keeps nothing, and what the old worker says late is refused", async () => {
    const { nats, host, daemon, worker, notes, untilNoted } = await startHosts();
    const dispatcher = await daemon();
    const first = await worker("w1", { capacity: 1 });
    const ids = ["held", "a", "b", "c"];
    for (const id of ids) await dispatcher.submit(jobOf(id, { notes, ms: 400 }));
    await untilNoted("begun held 1 w1");
    await until("the daemon to know who has it", () => dispatcher.attempts("held").length === 1);
    await host("w1").cut();
    // It ends while it cannot tell anybody.
    await untilNoted("ended held 1 w1");
    await nats.kill();
    await nats.start();
    await worker("w2");
    const ends = await Promise.all(ids.map((id) => dispatcher.ended(id)));
    expect(ends.map(({ state }) => state)).toEqual(["done", "done", "done", "done"]);
    expect(ends[0]!.attempts).toMatchObject([
      { epoch: 1, worker: "w1", end: "lease_expired" },
      { epoch: 1, attempt: 2, worker: "w2", end: "done" },
    ]);
    await host("w1").mend();
    await until("the old worker to be refused", () => /refused|lost to another/.test(first.said()));
    expect(await dispatcher.ended("held")).toEqual(ends[0]);
  });
});

describe("a daemon", () => {
  test("that dies before it has written an end down finds it in its next life", async () => {
    const { daemon, worker, notes, untilNoted, noted } = await startCluster();
    const first = await daemon();
    await worker("w1");
    // Without effects, because those wait until a daemon has recorded what is about to happen.
    await first.submit(jobOf("j", { notes, ms: 200 }));
    await untilNoted("begun j");
    await first.die();
    await untilNoted("ended j");
    const second = await daemon();
    await second.reconcile(["j"]);
    expect(await second.ended("j")).toMatchObject({ state: "done", attempts: [{ attempt: 1, end: "done" }] });
    expect(noted("begun")).toHaveLength(1);
  });

  test("that dies after it has written an end down, and before it has cleaned up, does not have it done again", async () => {
    const { daemon, worker, notes, untilNoted, noted, database, events } = await startCluster();
    const first = await daemon();
    const w1 = await worker("w1");
    await first.submit(jobOf("j", { notes, ms: 300, effects: ["c1"] }));
    await untilNoted("begun j");
    await first.die();
    // Its worker dies too.
    await w1.kill();
    const store = openStore(database);
    createJobs(store).end("j", 1, { state: "done", value: "kept", tree: null, commit: null, usage: noUsage() });
    store.close();
    const second = await daemon();
    await second.reconcile([]);
    await worker("w2");
    await sleep(OVERTAKEN_MS);
    expect(await second.ended("j")).toMatchObject({ state: "done", value: "kept" });
    expect(noted("begun")).toHaveLength(1);
    expect(events.filter(({ body }) => body.kind === "intent").length).toBeLessThan(2);
  });
});

describe("cancelling", () => {
  test("ends a job on its worker with every process it started, long before the next beat", async () => {
    const { daemon, worker, notes, untilNoted } = await startCluster();
    // So long that no beat comes in time: the worker has to be told.
    const leaseMs = 60_000;
    const dispatcher = await daemon({ leaseMs });
    await worker("w1");
    const mark = `30${Math.floor(Math.random() * 1e6)}`;
    await dispatcher.submit(
      jobOf("j", { notes, shell: `(sleep ${mark} & sleep ${mark}) & sleep ${mark}` }, { limits: { leaseMs } }),
    );
    await untilNoted("begun j");
    await until("the processes to run", async () => (await sleeping(mark)) >= 3);
    const asked = performance.now();
    expect(await dispatcher.cancel("j")).toBe("reached");
    expect(await dispatcher.ended("j")).toMatchObject({ state: "cancelled" });
    await until("the processes to be gone", async () => (await sleeping(mark)) === 0, PROMPT_MS);
    expect(performance.now() - asked).toBeLessThan(soon(PROMPT_MS));
  });

  test("a job whose worker is away ends it at once; the worker learns of it when it is back", async () => {
    const { host, daemon, worker, notes, untilNoted, noted } = await startHosts();
    const leaseMs = 8_000;
    const dispatcher = await daemon({ leaseMs });
    const first = await worker("w1");
    await dispatcher.submit(jobOf("j", { notes, ms: 60_000 }, { limits: { leaseMs } }));
    await untilNoted("begun j 1 w1");
    await host("w1").cut();
    const asked = performance.now();
    expect(await dispatcher.cancel("j")).toBe("gone");
    expect(await dispatcher.ended("j")).toMatchObject({ state: "cancelled" });
    expect(performance.now() - asked).toBeLessThan(leaseMs / 2);
    await worker("w2");
    await host("w1").mend();
    await untilNoted("stopped j 1 w1");
    await until("it to know", () => /lost|refused/.test(first.said()));
    await dispatcher.submit(jobOf("after", { notes }));
    expect(await dispatcher.ended("after")).toMatchObject({ state: "done" });
    expect(noted("begun").filter((line) => line.includes(" j "))).toHaveLength(1);
  });

  test("while the server is away counts, and nobody begins the job when it is back", async () => {
    const { nats, daemon, worker, notes, noted } = await startCluster();
    const dispatcher = await daemon();
    await dispatcher.submit(jobOf("j", { notes }));
    await nats.kill();
    expect(await dispatcher.cancel("j")).toBe("before start");
    expect(await dispatcher.ended("j")).toMatchObject({ state: "cancelled" });
    await nats.start();
    await dispatcher.submit(jobOf("after", { notes }));
    await worker("w1");
    expect(await dispatcher.ended("after")).toMatchObject({ state: "done" });
    expect(noted("begun").filter((line) => line.includes(" j "))).toEqual([]);
  });
});
