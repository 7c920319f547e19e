import { oneLine } from "../lib/quoted.ts";
import type { PullRow } from "../store/pulls.ts";
import type { NewTrigger, TriggerRow, WatchRow, WatchRows } from "../store/watches.ts";
import type { Check } from "./port.ts";

/** How long a failed check waits for the other checks, counted from the first failure that was seen. */
const LONGEST_HOLD_MS = 60 * 60_000;
const MOST_NAMED = 5;
const BEGUN_AGAIN = "it was begun again before IO came to it";

export const isOfCommit = ({ kind, version }: TriggerRow, { commit }: Pick<PullRow, "commit">): boolean =>
  kind !== "check" || version === commit;
const isUntouched = ({ state, reason }: TriggerRow) =>
  state === "held" || state === "waiting" || (state === "ignored" && reason === BEGUN_AGAIN);

/**
 * Records which checks of a pull request's commit failed. They are held until the running checks have ended, so that one round
 * handles them all; a check that never ends holds them for an hour at most.
 */
export function recordChecks(
  rows: Pick<WatchRows, "see" | "ofNumber" | "move">,
  watch: WatchRow,
  pull: PullRow,
  checks: readonly Check[],
): void {
  const { number, commit } = pull;
  if (number === null || commit === null) return;
  const failed = checks.filter(({ state }) => state === "failed");
  for (const { id, name, url } of failed) {
    const trigger: NewTrigger = { kind: "check", number, externalId: id, version: commit, by: "", detail: { text: name, url } };
    rows.see(watch, { ...trigger, state: "held" });
  }
  const known = rows
    .ofNumber(watch, number)
    .filter((each) => each.kind === "check" && isOfCommit(each, pull) && isUntouched(each));
  const isStillFailed = ({ externalId }: TriggerRow) => failed.some(({ id }) => id === externalId);
  const move = (trigger: TriggerRow, state: TriggerRow["state"], reason: string | null) => {
    if (trigger.state !== state || trigger.reason !== reason) rows.move(trigger.id, { state, reason });
  };
  for (const each of known.filter((trigger) => !isStillFailed(trigger))) move(each, "ignored", BEGUN_AGAIN);
  const there = known.filter(isStillFailed);
  const until = Math.min(...there.map(({ createdAt }) => Date.parse(createdAt))) + LONGEST_HOLD_MS;
  const running = checks.filter(({ state }) => state === "running").map(({ name }) => name);
  const isHeld = running.length > 0 && Date.now() < until;
  for (const each of there) move(each, isHeld ? "held" : "waiting", isHeld ? whatFor(running, until) : null);
}

function whatFor(running: readonly string[], until: number): string {
  const more = running.length > MOST_NAMED ? ` and ${running.length - MOST_NAMED} more` : "";
  const names = running.slice(0, MOST_NAMED).map((name) => oneLine(name, 60));
  return `waits for the end of ${names.join(", ")}${more}, until ${new Date(until).toISOString()} at the latest`;
}
