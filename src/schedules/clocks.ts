import { createBreath } from "../lib/breath.ts";
import type { Store } from "../store/open.ts";
import type { ScheduleRows } from "../store/schedules.ts";
import { readDuration } from "./when.ts";

export interface ClocksDeps {
  store: Pick<Store, "transaction">;
  rows: Pick<ScheduleRows, "intervalsAfter" | "anchor">;
  /** A monotonic clock in milliseconds that stops while the machine sleeps. */
  steady: () => number;
}

const SET_MS = 30_000;
const BATCH = 500;

/** Compares the wall clock with a monotonic clock at each check. */
export function createClocks({ store, rows, steady }: ClocksDeps) {
  let before: { wall: number; steady: number } | undefined;

  /** Restarts intervals after the clock was set back: otherwise they would wait until it catches up. */
  async function restartIntervals(at: Date): Promise<void> {
    const breathe = createBreath();
    for (let after = ""; ; ) {
      const batch = rows.intervalsAfter(at.toISOString(), { after, limit: BATCH });
      if (batch.length === 0) return;
      store.transaction(() => {
        for (const { id, when, nextAt } of batch) {
          const next = at.getTime() + (readDuration(when.slice("every ".length)) ?? Number.NaN);
          if (Date.parse(nextAt!) > next) rows.anchor(id, at.toISOString(), new Date(next).toISOString());
        }
      });
      after = batch.at(-1)!.id;
      await breathe();
    }
  }

  return {
    /** The reason to report if something that is due now is late. */
    async whyLate(at: Date): Promise<string> {
      const last = before;
      before = { wall: at.getTime(), steady: steady() };
      if (!last) return "IO was not running";
      const moved = before.wall - last.wall - (before.steady - last.steady);
      if (moved < -SET_MS) await restartIntervals(at);
      return moved > SET_MS ? "the machine slept, or its clock was set forward" : "IO was busy";
    },
  };
}
