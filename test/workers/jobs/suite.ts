import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openStore, type Store } from "../../../src/store/open.ts";
import type { Dispatcher, JobEvent } from "../../../src/workers/jobs/port.ts";
import { jobOf } from "../../support/dispatch/work.ts";
import { temporaryFolder } from "../../support/home.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

/** What the suite knows about an implementation: how to open one on a database, with room for one job. */
export interface DispatcherUnderTest {
  name: string;
  /** Called once per test. The returned function starts a daemon; the previous one has been closed. */
  prepare(): Promise<(store: Store) => Promise<Dispatcher>>;
}

/** Two seconds are promised; a busy machine gets more. */
const PROMPT_MS = 8_000;

/** The behaviour that every dispatcher must have. */
export function dispatcherSuite({ name, prepare }: DispatcherUnderTest): void {
  const start = async () => {
    const folder = temporaryFolder();
    const notes = join(folder, "notes");
    const open = await prepare();
    const events: JobEvent[] = [];
    const live = async () => {
      const store = openStore(join(folder, "io.db"));
      const dispatcher = await open(store);
      dispatcher.listen((event) => void events.push(event));
      let isOpen = true;
      const end = async () => {
        if (!isOpen) return;
        isOpen = false;
        await dispatcher.close();
        store.close();
      };
      onTestFinished(end);
      return { ...dispatcher, end };
    };
    const noted = () => (existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []);
    const begun = (id: string, times = 1) =>
      until(`${id} to be begun`, () => noted().filter((line) => line.startsWith(`begun ${id} `)).length >= times);
    return { notes, live, noted, begun, events };
  };

  describe(`${name}: a dispatcher`, () => {
    test("has a job done once, though it is submitted twice, and tells its end to all who ask", async () => {
      const { notes, live, noted } = await start();
      const dispatcher = await live();
      const job = jobOf("one", { notes, ms: 50 });
      await Promise.all([dispatcher.submit(job), dispatcher.submit(job)]);
      const ends = await Promise.all([dispatcher.ended("one"), dispatcher.ended("one")]);
      await dispatcher.submit(job);
      expect(await dispatcher.ended("one")).toEqual(ends[0]);
      expect(ends[1]).toEqual(ends[0]);
      expect(ends[0]).toMatchObject({ state: "done", value: { earlier: 0 }, attempts: [{ epoch: 1, attempt: 1, end: "done" }] });
      expect(noted().filter((line) => line.startsWith("begun"))).toHaveLength(1);
      await expect(dispatcher.ended("nobody")).rejects.toThrow(/no job with the id/);
    });

    test("tells why a job failed, and of a result of two megabytes all of it", async () => {
      const { notes, live } = await start();
      const dispatcher = await live();
      await dispatcher.submit(jobOf("bad", { notes, fail: "the disk is full. Free some space." }));
      await dispatcher.submit(jobOf("big", { notes, bytes: 2_000_000 }));
      expect(await dispatcher.ended("bad")).toMatchObject({
        state: "failed",
        error: { message: "the disk is full. Free some space." },
        attempts: [{ attempt: 1, end: "failed" }],
      });
      const big = await dispatcher.ended("big");
      expect(big.state === "done" && JSON.stringify(big.value).length).toBeGreaterThan(2_000_000);
    });

    test("ends work that takes longer than its cap", async () => {
      const { notes, live } = await start();
      const dispatcher = await live();
      await dispatcher.submit(jobOf("long", { notes, ms: 60_000 }, { limits: { capMs: 200 } }));
      expect(await dispatcher.ended("long")).toMatchObject({ state: "failed", error: { code: "too_long" } });
    });

    test("tells intents and outcomes in order and once each, before the end, and deltas as they come", async () => {
      const { notes, live, events } = await start();
      const dispatcher = await live();
      await dispatcher.submit(jobOf("talks", { notes, deltas: ["a", "b"], effects: ["c1", "c2"], ms: 100 }));
      await dispatcher.ended("talks");
      const lasting = events.filter(({ body }) => body.kind !== "delta");
      expect(lasting.map(({ seq, body }) => [seq, body.kind, "call" in body && body.call])).toEqual([
        [1, "intent", "c1"],
        [2, "outcome", "c1"],
        [3, "intent", "c2"],
        [4, "outcome", "c2"],
      ]);
      expect(events.flatMap(({ body }) => (body.kind === "delta" ? [body.data] : []))).toEqual(["a", "b"]);
    });

    test("tells an event again to a listener that could not take it, and not to one that could", async () => {
      const { notes, live, events } = await start();
      const dispatcher = await live();
      let refused = 0;
      const stop = dispatcher.listen(({ body }) => {
        if (body.kind === "intent" && refused++ === 0) throw new Error("database is locked");
      });
      await dispatcher.submit(jobOf("twice", { notes, effects: ["c1"] }));
      await dispatcher.ended("twice");
      stop();
      expect(refused).toBe(2);
      // The first listener was called in a transaction that was then rolled back.
      expect(events.filter(({ body }) => body.kind === "outcome")).toHaveLength(1);
    });

    test("cancels what waits without beginning it, and what runs at once", async () => {
      const { notes, live, begun, noted } = await start();
      const dispatcher = await live();
      await dispatcher.submit(jobOf("runs", { notes, ms: 60_000 }));
      await begun("runs");
      await dispatcher.submit(jobOf("waits", { notes }));
      await until("the second to wait", () => dispatcher.waiting().some(({ id }) => id === "waits"));
      expect(await dispatcher.cancel("waits")).toBe("before start");
      expect(await dispatcher.ended("waits")).toMatchObject({ state: "cancelled", attempts: [] });
      const asked = performance.now();
      expect(await dispatcher.cancel("runs")).toBe("reached");
      expect(await dispatcher.ended("runs")).toMatchObject({ state: "cancelled", attempts: [{ attempt: 1, end: "cancelled" }] });
      expect(performance.now() - asked).toBeLessThan(soon(PROMPT_MS));
      expect(noted().some((line) => line.startsWith("begun waits"))).toBe(false);
      expect(await dispatcher.cancel("runs")).toBe("gone");
    });

    test("knows in its next life how a job ended, and takes up what had not ended if it is still wanted", async () => {
      const { notes, live, noted, begun } = await start();
      const first = await live();
      await first.submit(jobOf("before", { notes }));
      const end = await first.ended("before");
      await first.submit(jobOf("across", { notes, untilFile: `${notes}.go` }));
      await first.submit(jobOf("unwanted", { notes }));
      await begun("across");
      await first.end();
      const second = await live();
      await second.reconcile(["across"]);
      writeFileSync(`${notes}.go`, "");
      expect(await second.ended("before")).toEqual(end);
      expect(await second.ended("unwanted")).toMatchObject({ state: "cancelled" });
      expect(await second.ended("across")).toMatchObject({ state: "done" });
      expect(noted().filter((line) => line.startsWith("ended across"))).toHaveLength(1);
      expect(noted().some((line) => line.startsWith("begun unwanted"))).toBe(false);
    });

    test("answers what its worker asks, once each, however large, late or wrong", async () => {
      const { notes, live } = await start();
      const dispatcher = await live();
      const large = "x".repeat(1_500_000);
      const asked: { attempt: number; data: unknown }[] = [];
      await dispatcher.submit(jobOf("asks", { notes, asks: ["first", large, "wrong", "slow"] }));
      await until("the job to be begun", () => dispatcher.attempts("asks").length > 0);
      dispatcher.serve(({ job, attempt: { attempt }, data }) => {
        if (job.id !== "asks") return undefined;
        asked.push({ attempt, data });
        if (data === "wrong") return Promise.reject(new Error("that cannot be answered"));
        const answer = `answer to ${String(data)}`;
        return data === "slow" ? new Promise((resolve) => setTimeout(() => resolve(answer), 6_000)) : Promise.resolve(answer);
      });
      const end = await dispatcher.ended("asks");
      const answers = ["answer to first", `answer to ${large}`, "that cannot be answered", "answer to slow"];
      expect(end).toMatchObject({ state: "done", value: { answers } });
      // On a busy machine, an attempt may lose its lease; the next one asks all of it, once.
      const last = asked.filter(({ attempt }) => attempt === end.attempts.at(-1)?.attempt);
      expect(last.map(({ data }) => data)).toEqual(["first", large, "wrong", "slow"]);
      expect(new Set(asked.map(({ attempt, data }) => `${attempt} ${String(data)}`)).size).toBe(asked.length);
    });

    test("refuses a job that could not stand in a subject", async () => {
      const { notes, live } = await start();
      const dispatcher = await live();
      await expect(dispatcher.submit(jobOf("a.b", { notes }))).rejects.toThrow();
      await expect(dispatcher.submit(jobOf("ok", { notes }, { pool: "any.>" }))).rejects.toThrow();
    });
  });
}
