import { oneLine } from "../lib/quoted.ts";
import type { LookDeps } from "./look.ts";
import type { Pulls } from "./pulls.ts";
import { nameOf, type WatchNews } from "./rounds.ts";

export interface PullWatcherDeps {
  pulls: Pick<Pulls, "saw">;
  /** Notifies people, once per key. */
  tell: (news: WatchNews) => void;
}

/** Notifies people about IO's pull requests: reviewed, check failed, in conflict, merged, closed or reopened. */
export function createPullWatcher({ pulls, tell }: PullWatcherDeps): Pick<LookDeps, "onPull" | "onWord"> {
  return {
    onPull(row, { state, base }, conflict = row.conflict) {
      if (state !== "open") tell({ text: `${nameOf(row)} was ${state}`, key: `${state}:${row.id}`, isUrgent: false });
      else if (row.state === "closed")
        tell({ text: `${nameOf(row)} was opened again`, key: `reopened:${row.id}:${row.updatedAt}`, isUrgent: false });
      if (state === "open" && row.state === "open" && conflict && !row.conflict) {
        const text = oneLine(`${nameOf(row)} cannot be merged: it conflicts with ${base}`, 200);
        tell({ text, key: `conflict:${row.id}:${row.updatedAt}`, isUrgent: true });
      }
      pulls.saw(row.id, { state, conflict });
    },
    onWord(row, { kind, by, text, key }) {
      const what = kind === "check" ? "is red" : text === "" ? `was reviewed by ${by}` : `was ${text} by ${by}`;
      const said = kind === "check" ? `${nameOf(row)} ${what}: ${text}` : `${nameOf(row)} ${what}`;
      tell({ text: oneLine(said, 200), key, isUrgent: kind === "check" });
    },
  };
}
