import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import type { WatchRows } from "../store/watches.ts";
import { ForgeError } from "./client.ts";
import type { ForgeFinder } from "./find.ts";
import { type LookMemory, lookAtRepository, newMemory } from "./look.ts";
import type { Forge } from "./port.ts";
import { createPullWatcher, type PullWatcherDeps } from "./pull-news.ts";

export interface FollowerDeps extends PullWatcherDeps {
  pullRows: Pick<PullRows, "followed">;
  watches: Pick<WatchRows, "at">;
  finder: ForgeFinder;
  /** Runs the work for each host one at a time. */
  inTurn: (host: string, work: () => Promise<void>) => Promise<void>;
  pollMs: () => number;
  log: Log;
}

interface Followed {
  forge: Forge;
  memory: LookMemory;
  since: string | null;
}

/** Polls at half the rate of watched repositories, since the result is only used for notifications. */
const SELDOM = 2;
/** How long a closed pull request is watched for being reopened. */
const CLOSED_MS = 7 * 24 * 3_600_000;
const LONGEST_PAUSE_MS = 15 * 60_000;

/** Polls IO's open pull requests in repositories that nobody watches, so that people hear what becomes of them. */
export function createFollower(deps: FollowerDeps) {
  const { pullRows, watches, finder, inTurn, pollMs, log } = deps;
  const watcher = createPullWatcher(deps);
  const known = new Map<string, Followed>();
  /** For each repository: when it may be polled again, and how many polls in a row have failed. */
  const pauses = new Map<string, { until: number; failures: number }>();
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();

  function plan(): void {
    clearTimeout(timer);
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      round = everywhere().finally(plan);
    }, pollMs() * SELDOM);
    timer.unref();
  }

  const followed = () => pullRows.followed(new Date(Date.now() - CLOSED_MS));

  async function everywhere(): Promise<void> {
    // Keep the oldest pull request of each repository.
    const first = new Map<string, PullRow>();
    for (const row of followed()) {
      const name = `${row.host}/${row.repo}`;
      if (!first.has(name)) first.set(name, row);
    }
    for (const name of known.keys()) if (!first.has(name)) known.delete(name);
    await Promise.all(
      [...first].map(async ([name, row]) => {
        const { host, repo } = row;
        if (host === null || repo === null || watches.at(host, repo) !== undefined) return;
        if ((pauses.get(name)?.until ?? 0) > Date.now()) return;
        await inTurn(host, () => look(name, row)).then(
          () => pauses.delete(name),
          (error: unknown) => failed(name, error),
        );
      }),
    );
  }

  async function look(name: string, { projectPath, host, repo, createdAt }: PullRow): Promise<void> {
    if (stopping.signal.aborted) return;
    const here = known.get(name) ?? (await open(projectPath, name, createdAt));
    if (!here) return;
    known.set(name, here);
    const watch = { since: here.since, label: null, mention: null, reviews: false };
    const pulls = followed().filter((each) => each.host === host && each.repo === repo);
    const { forge, memory } = here;
    const ignored = { see: () => undefined, onChecks: () => undefined };
    const { since } = await lookAtRepository({ ...watcher, ...ignored, watch, forge, memory, pulls });
    here.since = since;
  }

  async function open(projectPath: string, name: string, since: string): Promise<Followed | undefined> {
    const place = await finder.placeOf(projectPath);
    // The project's remote has changed.
    if (`${place.host}/${place.repo}` !== name) return undefined;
    const { forge } = await finder.open(place, stopping.signal);
    return { forge, memory: newMemory(), since };
  }

  function failed(name: string, error: unknown): void {
    if (stopping.signal.aborted) return;
    known.delete(name);
    const failures = (pauses.get(name)?.failures ?? 0) + 1;
    const pause = Math.min(pollMs() * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS);
    const retryAt = error instanceof ForgeError ? (error.retryAt ?? 0) : 0;
    pauses.set(name, { failures, until: Math.max(retryAt, Date.now() + pause) });
    if (!(error instanceof UserError))
      log.error("a pull request could not be looked at", { repo: name, error: messageOf(error) });
  }

  return {
    start: plan,
    async close(): Promise<void> {
      stopping.abort();
      clearTimeout(timer);
      await round;
    },
  };
}
export type Follower = ReturnType<typeof createFollower>;
