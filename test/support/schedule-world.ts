import { onTestFinished } from "vitest";
import { missing } from "../../src/lib/errors.ts";
import type { Event, News } from "../../src/protocol/events.ts";
import type { NewSchedule, Occurrence, Schedule } from "../../src/protocol/schedules.ts";
import { createSchedules } from "../../src/schedules/schedules.ts";
import { openStore } from "../../src/store/open.ts";
import { createScheduleRows } from "../../src/store/schedules.ts";
import { quietLog } from "./engine.ts";

export const MAKER = { by: "person", source: { channel: "api" }, conversation: "main" } as const;
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Schedules on clocks that the test controls. Messages end when the test says so; started runs are recorded. */
export function scheduleWorld(start = "2026-01-01T00:00:30Z") {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const rows = createScheduleRows(store);
  let wall = Date.parse(start);
  let steady = 0;
  const news: News[] = [];
  const sent: { schedule: string; occurrence: string; message: string; at: string }[] = [];
  const runs: string[] = [];
  const known = new Set<string>();
  const asked: { occurrence: Occurrence; answer: (wanted: boolean | undefined) => void }[] = [];
  const paused: Schedule[] = [];
  let refusal: string | undefined;
  /**
   * State of one daemon process: the error that stops its writes, and how many steps inside transactions it has until it is
   * killed.
   */
  let life = { fault: undefined as Error | undefined, stepsLeft: Number.POSITIVE_INFINITY };
  let messages = 0;
  let failures: number[] = [];
  const step = (current: typeof life) => {
    current.stepsLeft -= 1;
    if (current.stepsLeft <= 0) current.fault ??= new Error("killed");
    if (current.fault) throw current.fault;
  };
  const open = () => {
    const current = { fault: undefined as Error | undefined, stepsLeft: Number.POSITIVE_INFINITY };
    life = current;
    const schedules = createSchedules({
      store: {
        ...store,
        transaction(work) {
          if (current.fault) failures.push(performance.now());
          if (current.fault) throw current.fault;
          return store.transaction(work);
        },
      },
      rows,
      onPaused: (schedule) => void paused.push(schedule),
      actions: {
        check: () => undefined,
        send({ id }, occurrence) {
          step(current);
          if (refusal !== undefined) throw missing(refusal);
          const message = `m_${messages}`;
          messages += 1;
          // Like the inbox, which acts when the surrounding transaction is committed.
          store.afterCommit(() => {
            sent.push({ schedule: id, occurrence, message, at: new Date(wall).toISOString() });
            known.add(message);
          });
          return message;
        },
        delegate: () => "t_1",
        run: async (_, id) => void runs.push(id),
        endOf: (_, id) => (known.has(id) ? undefined : "unknown"),
      },
      askToCatchUp: (_, occurrence) => new Promise((answer) => asked.push({ occurrence, answer })),
      emit(each) {
        step(current);
        news.push(each);
      },
      log: quietLog,
      now: () => new Date(wall),
      steady: () => steady,
    });
    onTestFinished(() => schedules.close());
    return schedules;
  };
  let schedules = open();
  const all = (id: string) => schedules.occurrences(id, { limit: 200_000 }).reverse();
  const end = (message: string, status = "done") => {
    const error = status === "done" ? null : { code: "x", message: "it broke" };
    schedules.heard({ id: 1, type: "message.finished", data: { id: message, status, error } } as unknown as Event);
  };
  async function begin(ms: number) {
    wall += ms;
    steady = 0;
    schedules = open();
    schedules.start();
    await schedules.look();
  }
  return {
    ...{ store, rows, news, sent, runs, asked, known, paused, all, end },
    get schedules() {
      return schedules;
    },
    add: (given: NewSchedule): Schedule => schedules.add(given, MAKER),
    /** Lets time pass, with the machine asleep or awake, then starts what is due. */
    async pass(ms: number, { asleep = false } = {}) {
      wall += ms;
      if (!asleep) steady += ms;
      await schedules.look();
    },
    setClock: (ms: number) => {
      wall += ms;
    },
    /** Stops the daemon and starts it again `ms` later. */
    async restart(ms: number) {
      await schedules.close();
      await begin(ms);
    },
    /**
     * Kills the daemon after this many more steps inside transactions, which are rolled back, and starts it again `whileDown`
     * ms later.
     */
    async kill(steps: number, ms: number, whileDown: number) {
      life.stepsLeft = steps;
      wall += ms;
      steady += ms;
      await schedules.look();
      life.fault ??= new Error("killed");
      await schedules.close();
      await begin(whileDown);
    },
    /** Makes every write fail from now on. Returns a list that grows by the time of each attempt, in ms. */
    breakDisk(): number[] {
      life.fault = Object.assign(new Error("no space is left"), { code: "ENOSPC" });
      failures = [];
      return failures;
    },
    async start() {
      schedules.start();
      await schedules.look();
    },
    refuse(why: string | undefined) {
      refusal = why;
    },
    iso: () => new Date(wall).toISOString(),
  };
}
