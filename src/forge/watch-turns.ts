import { conflict, messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { PullRows } from "../store/pulls.ts";
import type { TriggerRow, WatchRow, WatchRows } from "../store/watches.ts";
import { ForgeError, isPassing } from "./client.ts";
import { recordChecks } from "./failed-checks.ts";
import type { ForgeFinder } from "./find.ts";
import type { IssueWork } from "./issue-work.ts";
import { type LookMemory, lookAtRepository, newMemory } from "./look.ts";
import type { Forge } from "./port.ts";
import { createPullWatcher } from "./pull-news.ts";
import type { Pulls } from "./pulls.ts";
import { isPullWork, type Rounds, type WatchNews } from "./rounds.ts";

export interface WatchTurnsDeps {
  rows: WatchRows;
  finder: ForgeFinder;
  pulls: Pick<Pulls, "saw">;
  pullRows: Pick<PullRows, "knownAt">;
  issueWork: IssueWork;
  rounds: Rounds;
  /** Notifies people, once per key. */
  tell: (news: WatchNews) => void;
  pollMs: () => number;
  clean: (text: string) => string;
  log: Log;
}

/** What one process keeps for a watched repository: the client with its ETags, and what was seen. */
interface Watching {
  forge: Forge;
  memory: LookMemory;
}

const LONGEST_PAUSE_MS = 15 * 60_000;
const UNDER_WAY: readonly TriggerRow["state"][] = ["waiting", "claiming", "starting", "working"];

/** A watched repository's turn: polls the forge if that is due, then acts on what is waiting. */
export function createWatchTurns(deps: WatchTurnsDeps) {
  const { rows, finder, pulls, pullRows, issueWork, rounds, tell, pollMs, clean, log } = deps;
  const watching = new Map<string, Watching>();
  const failures = new Map<string, number>();
  const stopping = new AbortController();
  const watcher = createPullWatcher({ pulls, tell });

  async function open(watch: WatchRow): Promise<Watching> {
    const there = watching.get(watch.id);
    if (there) return there;
    const place = await finder.placeOf(watch.projectPath);
    if (place.host !== watch.host || place.repo !== watch.repo)
      throw conflict(
        `${watch.projectPath} belongs to ${place.host}/${place.repo} by now. Remove this watch and add another: io watch remove ${watch.id}`,
      );
    const { forge } = await finder.open(place, stopping.signal);
    const made = { forge, memory: newMemory() };
    watching.set(watch.id, made);
    return made;
  }

  async function look(watch: WatchRow, { forge, memory }: Watching): Promise<void> {
    const { id, host, repo } = watch;
    const own = pullRows.knownAt(host, repo);
    const { since, saw } = await lookAtRepository({
      ...{ watch, forge, memory, pulls: own },
      ...watcher,
      see: (trigger) => void rows.see(watch, { ...trigger, detail: { ...trigger.detail, text: clean(trigger.detail.text) } }),
      onChecks(pull, checks) {
        const cleaned = checks.map((check) => ({ ...check, name: clean(check.name) }));
        if (watch.checks) recordChecks(rows, watch, pull, cleaned);
      },
    });
    failures.delete(id);
    const now = Date.now();
    rows.change(id, {
      ...{ since, saw, problem: null, lookedAt: new Date(now).toISOString() },
      nextAt: new Date(now + pollMs()).toISOString(),
    });
  }

  async function act(watch: WatchRow, forge: Forge): Promise<void> {
    await rounds.step(watch, forge);
    for (const { id } of rows.open(watch.id).filter((each) => !isPullWork(each))) {
      let trigger = rows.trigger(id);
      // Continues until the trigger has to wait for something.
      for (let before: string | undefined; trigger && UNDER_WAY.includes(trigger.state) && trigger.state !== before; ) {
        before = trigger.state;
        trigger = await step(watch, forge, trigger);
      }
    }
  }

  async function step(watch: WatchRow, forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    try {
      return await issueWork.step(watch, forge, trigger);
    } catch (error) {
      // Temporary failures are retried at the next turn.
      if (isPassing(error) || stopping.signal.aborted) throw error;
      if (!(error instanceof UserError)) log.error("work of a watch failed", { trigger: trigger.id, error: messageOf(error) });
      return issueWork.giveUp(forge, trigger, reasonOf(error));
    }
  }

  const reasonOf = (error: unknown) =>
    oneLine(clean(error instanceof UserError ? error.message : "something went wrong inside of IO; its log says what"), 2_000);

  /** Waits longer after each failure, and at least as long as the forge asks for. */
  function failed({ id }: WatchRow, error: unknown): void {
    if (!(error instanceof UserError))
      log.error("a watched repository could not be looked at", { watch: id, error: messageOf(error) });
    // The token may have been renewed since.
    if (!(error instanceof ForgeError) || error.kind === "unauthorized") watching.delete(id);
    const times = (failures.get(id) ?? 0) + 1;
    failures.set(id, times);
    const pause = Math.min(pollMs() * 2 ** Math.min(times, 10), Math.max(LONGEST_PAUSE_MS, pollMs()));
    const retryAt = error instanceof ForgeError ? error.retryAt : undefined;
    const next = retryAt === undefined ? Date.now() + pause : Math.max(retryAt, Date.now() + pollMs());
    rows.change(id, { problem: reasonOf(error), nextAt: new Date(next).toISOString() });
  }

  return {
    async take(id: string): Promise<void> {
      const watch = rows.find(id);
      if (watch?.state !== "on" || stopping.signal.aborted) return;
      // After a failure, or if the forge asked to wait, send no requests before the next poll.
      if (watch.problem !== null && !isDue(watch)) return;
      try {
        const here = await open(watch);
        if (isDue(watch)) await look(watch, here);
        await act(watch, here.forge);
      } catch (error) {
        if (!stopping.signal.aborted) failed(watch, error);
      }
    },
    /** The current name of a watched repository; undefined if the forge cannot be asked. */
    async nameOf(id: string): Promise<string | undefined> {
      const watch = rows.find(id);
      if (watch?.state !== "on" || (watch.problem !== null && !isDue(watch)) || stopping.signal.aborted) return undefined;
      try {
        const { forge } = await open(watch);
        return (await forge.repository()).fullName;
      } catch (error) {
        // The next poll reports what is wrong.
        if (error instanceof UserError || stopping.signal.aborted) return undefined;
        throw error;
      }
    },
    forget: (id: string) => void watching.delete(id),
    stop: () => stopping.abort(),
  };
}
export type WatchTurns = ReturnType<typeof createWatchTurns>;

export const nextLook = ({ nextAt }: WatchRow): number => (nextAt === null ? 0 : Date.parse(nextAt));
export const isDue = (watch: WatchRow): boolean => nextLook(watch) <= Date.now();
