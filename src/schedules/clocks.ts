import { createBreath } from "../lib/breath.ts";
import type { Store } from "../store/open.ts";
import type { ScheduleRows } from "../store/schedules.ts";
import { readDuration } from "./when.ts";

export interface ClocksDeps {
  store: Pick<Store, "transaction">;
  rows: Pick<ScheduleRows, "intervalsAfter" | "anchor">;
  /** Milliseconds of a clock that nobody sets, and that stands still while the machine sleeps. */
  steady: () => number;
}

const SET_MS = 30_000;
const AT_ONCE = 500;

/** Compares the clock that people set with one that nobody sets, from look to look. */
export function createClocks({ store, rows, steady }: ClocksDeps) {
  let before: { wall: number; steady: number } | undefined;

  /** After the clock was set back an interval would otherwise wait until it is where it was. */
  async function restartIntervals(at: Date): Promise<void> {
    const breathe = createBreath();
    for (let after = ""; ; ) {
      const batch = rows.intervalsAfter(at.toISOString(), { after, limit: AT_ONCE });
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
    /** Why something that is due now would not have been looked at in time. */
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
