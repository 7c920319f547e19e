import { oneLine } from "../lib/quoted.ts";
import type { LookDeps } from "./look.ts";
import type { Pulls } from "./pulls.ts";
import { nameOf, type WatchNews } from "./rounds.ts";

export interface PullWatcherDeps {
  pulls: Pick<Pulls, "saw">;
  /** Tells people something, once a key. */
  tell: (news: WatchNews) => void;
}

/** Has people told what became of IO's pull requests: reviewed, red, merged, closed, opened again. */
export function createPullWatcher({ pulls, tell }: PullWatcherDeps): Pick<LookDeps, "onPull" | "onWord"> {
  return {
    onPull(row, { state }) {
      if (state !== "open") tell({ text: `${nameOf(row)} was ${state}`, key: `${state}:${row.id}`, isUrgent: false });
      else if (row.state === "closed")
        tell({ text: `${nameOf(row)} was opened again`, key: `reopened:${row.id}:${row.updatedAt}`, isUrgent: false });
      pulls.saw(row.id, { state });
    },
    onWord(row, { kind, by, text, key }) {
      const what = kind === "check" ? "is red" : text === "" ? `was reviewed by ${by}` : `was ${text} by ${by}`;
      const said = kind === "check" ? `${nameOf(row)} ${what}: ${text}` : `${nameOf(row)} ${what}`;
      tell({ text: oneLine(said, 200), key, isUrgent: kind === "check" });
    },
  };
}
