import type { Digest } from "../../src/protocol/news.ts";
import type { Occurrence, Schedule } from "../../src/protocol/schedules.ts";
import type { TestDaemon } from "./daemon.ts";
import { until } from "./until.ts";

const time = (at: Date) => `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`;

/** Quiet hours that include the current time, from an hour ago until three hours from now. */
export const quietNow = () => `${time(new Date(Date.now() - 3_600_000))}-${time(new Date(Date.now() + 3 * 3_600_000))}`;

/** Runs a schedule now and waits for the end of the occurrence. */
export async function runSchedule(daemon: TestDaemon, id: string): Promise<Occurrence> {
  const begun = await daemon.json<Occurrence>("POST", `/api/schedules/${id}/run`);
  return until(
    "the end of the occurrence",
    async () => {
      const { items } = await daemon.json<{ items: Occurrence[] }>("GET", `/api/schedules/${id}/occurrences`);
      return items.find((each) => each.id === begun.id && each.finishedAt !== null);
    },
    60_000,
  );
}

export const schedule = (daemon: TestDaemon, text: string, more: object = {}) =>
  daemon.json<Schedule>("POST", "/api/schedules", { when: "daily 03:00", text, ...more });

export const digestOf = (daemon: TestDaemon, since = "24h") => daemon.json<Digest>("GET", `/api/digest?since=${since}`);
