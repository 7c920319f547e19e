import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { startCluster } from "../../support/dispatch/cluster.ts";
import { jobOf } from "../../support/dispatch/work.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

/** Far less than the ten seconds after which a grant expires that nobody has begun. */
const AT_ONCE_MS = 1_500;
const WORKERS = [{ name: "w1" }, { name: "w2" }, { name: "gpu1", labels: ["gpu"] }];

describe("pools", () => {
  test("a job of a pool that nobody serves is shown as waiting, until somebody with the label comes", async () => {
    const { daemon, worker, notes } = await startCluster(WORKERS);
    const dispatcher = await daemon();
    await worker("w1");
    await dispatcher.submit(jobOf("render", { notes }, { pool: "gpu" }));
    await until("w1 to be heard of", async () => (await dispatcher.workers()).some(({ state }) => state === "ready"));
    expect(dispatcher.waiting()).toEqual([{ id: "render", pool: "gpu", served: false }]);
    await worker("gpu1", { labels: ["gpu"] });
    expect(await dispatcher.ended("render")).toMatchObject({ state: "done", attempts: [{ worker: "gpu1" }] });
    expect(dispatcher.waiting()).toEqual([]);
  });

  test("a worker never has more at once than its capacity, and the list tells how much it has", async () => {
    const { daemon, worker, notes, noted, untilNoted } = await startCluster(WORKERS);
    const dispatcher = await daemon();
    await worker("w1", { capacity: 2 });
    for (let n = 0; n < 4; n += 1) await dispatcher.submit(jobOf(`j${n}`, { notes, ms: 700 }));
    await untilNoted("begun", 2);
    await until("it to be shown as busy", async () =>
      (await dispatcher.workers()).some(({ state, running, capacity }) => state === "busy" && running === 2 && capacity === 2),
    );
    if (noted("ended").length === 0) expect(noted("begun")).toHaveLength(2);
    await Promise.all([0, 1, 2, 3].map((n) => dispatcher.ended(`j${n}`)));
  });

  test("a worker that is drained finishes what it has, takes no more, and ends", async () => {
    const { daemon, worker, notes, untilNoted } = await startCluster(WORKERS);
    const dispatcher = await daemon();
    const first = await worker("w1");
    await dispatcher.submit(jobOf("has", { notes, untilFile: `${notes}.go` }));
    await untilNoted("begun has 1 w1");
    const gone = once(first.child, "exit");
    dispatcher.rows.drain("w1");
    await until("it to be told", () => first.said().includes("w1 was drained and takes no more jobs."));
    expect(await dispatcher.workers()).toMatchObject([{ name: "gpu1" }, { name: "w1", state: "draining" }, { name: "w2" }]);
    await dispatcher.submit(jobOf("next", { notes }));
    await worker("w2");
    expect(await dispatcher.ended("next")).toMatchObject({ state: "done", attempts: [{ worker: "w2" }] });
    writeFileSync(`${notes}.go`, "");
    expect(await dispatcher.ended("has")).toMatchObject({ state: "done", attempts: [{ worker: "w1", end: "done" }] });
    await gone;
  });

  test.each([
    ["gives back", "before"],
    ["could have had", "after"],
  ] as const)("a job that a stopped worker %s is begun by the next worker at once", async (_, submitted) => {
    const { daemon, worker, notes, untilNoted } = await startCluster(WORKERS);
    const dispatcher = await daemon();
    const submit = () => dispatcher.submit(jobOf("one", { notes, untilFile: `${notes}.go` }, { limits: { leaseMs: 60_000 } }));
    const { child } = await worker("w1", { capacity: 2 });
    if (submitted === "before") {
      await submit();
      await untilNoted("begun one 1 w1");
    }
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    await gone;
    if (submitted === "after") await submit();
    await worker("w2");
    const since = performance.now();
    await untilNoted(`begun one ${submitted === "before" ? 2 : 1} w2`);
    expect(performance.now() - since).toBeLessThan(soon(AT_ONCE_MS));
    writeFileSync(`${notes}.go`, "");
    expect(await dispatcher.ended("one")).toMatchObject({ state: "done" });
  });
});
