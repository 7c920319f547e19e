import { isAbsolute } from "node:path";
import { conflict, messageOf, missing, usageError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { isFolder } from "../lib/is-folder.ts";
import type { Log } from "../lib/log.ts";
import type { Event } from "../protocol/events.ts";
import type { NewWatch, Watch, WatchDetail } from "../protocol/watches.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import type { TriggerRow, WatchRow, WatchRows } from "../store/watches.ts";
import type { ForgeFinder } from "./find.ts";
import { createRenamedWatches } from "./renamed-watches.ts";
import { isDue, nextLook, type WatchTurns } from "./watch-turns.ts";

export interface WatchesDeps {
  rows: WatchRows;
  pullRows: Pick<PullRows, "knownAt">;
  finder: ForgeFinder;
  turns: WatchTurns;
  /** Looks up a squad's folder. */
  squadProject: (slug: string) => string | undefined;
  /** Runs the work for each host one at a time. */
  inTurn: (host: string, work: () => Promise<void>) => Promise<void>;
  log: Log;
}

const SHOWN_TRIGGERS = 50;
/** The shortest time between two polls of a repository, no matter how often webhooks arrive. */
const LEAST_PAUSE_MS = 1_000;

/** Polls watched repositories, so that issues become runs and pull requests get further rounds. */
export function createWatches({ rows, pullRows, finder, turns, squadProject, inTurn, log }: WatchesDeps) {
  const working = new Set<Promise<void>>();
  const queued = new Set<string>();
  const renamed = createRenamedWatches({ turns, inTurn, log });
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;

  function known(id: string): WatchRow {
    const row = rows.find(id);
    if (!row) throw missing(`There is no watch "${id.slice(0, 60)}". List them with: io watch list`);
    return row;
  }

  /** Queues a watch behind the earlier turns of its host. */
  function enqueue({ id, host }: Pick<WatchRow, "id" | "host">): void {
    if (!isOpen || queued.has(id)) return;
    queued.add(id);
    const turn = inTurn(host, async () => {
      queued.delete(id);
      await turns.take(id);
    })
      .catch((error: unknown) => log.error("a watch failed", { watch: id, error: messageOf(error) }))
      .finally(() => {
        working.delete(turn);
        plan();
      });
    working.add(turn);
  }

  function plan(): void {
    clearTimeout(timer);
    if (!isOpen) return;
    const waits = rows.list().flatMap((watch) => (watch.state === "on" && !queued.has(watch.id) ? [nextLook(watch)] : []));
    if (waits.length === 0) return;
    const wait = Math.min(Math.max(0, Math.min(...waits) - Date.now()), 2 ** 31 - 1);
    timer = setTimeout(() => {
      for (const watch of rows.list()) if (watch.state === "on" && isDue(watch)) enqueue(watch);
      // A timer may fire slightly early.
      plan();
    }, wait);
    timer.unref();
  }

  function changeState(id: string, state: Watch["state"]): Watch {
    known(id);
    rows.change(id, { state, ...(state === "on" && { nextAt: null, problem: null }) });
    plan();
    return shown(known(id));
  }

  return {
    async add({ project, label, mention, reviews, checks, maxRounds }: NewWatch): Promise<Watch> {
      if (label === undefined && mention === undefined && !reviews && !checks)
        throw usageError("Say what is to be watched for: a label, a mention, reviews or checks.");
      const { projectPath, squad } = projectNamed(project, squadProject);
      const place = await finder.placeOf(projectPath);
      const { forge } = await finder.open(place);
      // Fails now if the repository or the token is wrong.
      const repository = await forge.repository();
      if (repository.isArchived) throw conflict(`${place.host}/${place.repo} is archived.`);
      // Fails now if the token cannot read who may trigger work.
      await forge.permissionOf(place.repo.split("/", 1)[0] ?? "");
      const there = rows.at(place.host, place.repo);
      if (there)
        throw conflict(
          `${place.host}/${place.repo} is watched already. To change how, remove it first: io watch remove ${there.id}`,
        );
      const id = newId("w");
      const { kind, host, repo } = place;
      rows.insert({
        ...{ id, projectPath, squad, forge: kind, host, repo },
        ...{ label: label ?? null, mention: mention === undefined ? null : `@${mention.replace(/^@/, "")}` },
        ...{ reviews, checks, maxRounds },
      });
      plan();
      return shown(known(id));
    },
    list: (): Watch[] => rows.list().map(shown),
    show: (id: string): WatchDetail => detailOf(known(id), rows, pullRows),
    pause: (id: string): Watch => changeState(id, "paused"),
    resume: (id: string): Watch => changeState(id, "on"),
    remove(id: string): void {
      known(id);
      rows.remove(id);
      turns.forget(id);
      plan();
    },
    /** Called by a webhook: polls the repository soon. Returns whether the repository is known to be watched. */
    nudge(host: string, repo: string): boolean {
      const there = rows.list().filter((each) => each.host === host && each.state === "on");
      const name = repo.toLowerCase();
      const watch = there.find((each) => each.repo.toLowerCase() === name) ?? renamed.known(there, name);
      if (watch) hurry(rows, watch);
      else if (there.length > 0) renamed.ask(there, name, (found) => hurry(rows, found, plan));
      plan();
      return watch !== undefined;
    },
    /** Called with every event; triggers wait for the end of runs and for changes to pull requests. */
    heard({ type, data }: Event): void {
      if (type !== "run.finished" && type !== "pull.changed") return;
      const run = type === "run.finished" ? data.runId : data.owner.id;
      // Several watches may wait for a run, since it can have pull requests in several repositories.
      const waiting = new Set(rows.ofRun(run).map((each) => each.watch));
      for (const watch of rows.list()) if (waiting.has(watch.id)) enqueue(watch);
    },
    start(): void {
      isOpen = true;
      for (const watch of rows.list()) if (watch.state === "on") enqueue(watch);
    },
    async close(): Promise<void> {
      isOpen = false;
      clearTimeout(timer);
      turns.stop();
      await Promise.all([...working, renamed.close()]);
    },
  };
}
export type Watches = ReturnType<typeof createWatches>;

function hurry(rows: WatchRows, watch: WatchRow, then: () => void = () => {}): void {
  const nextAt = soonestLook(watch);
  if (nextAt !== undefined) rows.change(watch.id, { nextAt });
  then();
}

/**
 * The earliest time at which a watch may poll, if that is sooner than planned; undefined after a failure or if the forge asked
 * to wait.
 */
function soonestLook(watch: WatchRow): string | undefined {
  if (watch.problem !== null) return undefined;
  const soonest = watch.lookedAt === null ? 0 : Date.parse(watch.lookedAt) + LEAST_PAUSE_MS;
  return soonest < nextLook(watch) ? new Date(Math.max(soonest, Date.now())).toISOString() : undefined;
}

function shown({ squad: _squad, since: _since, ...watch }: WatchRow): Watch {
  return watch;
}

function shownTrigger({ id, watch, kind, number, by, state, reason, run, createdAt, updatedAt }: TriggerRow) {
  return { id, watch, kind, number, by, state, reason, run, createdAt, updatedAt };
}

function detailOf(watch: WatchRow, rows: WatchRows, pullRows: WatchesDeps["pullRows"]): WatchDetail {
  const pulls = pullRows.knownAt(watch.host, watch.repo).filter(({ state }) => state !== "closed");
  return { ...shown(watch), triggers: rows.latest(watch.id, SHOWN_TRIGGERS).map(shownTrigger), pulls: pulls.map(shownPull) };
}

const shownPull = ({ number, url, base, state, conflict }: PullRow) => ({ number, url, base, state, conflict });

/** Resolves what a person names: a folder or a squad. */
function projectNamed(given: string, squadProject: WatchesDeps["squadProject"]): { projectPath: string; squad: string | null } {
  const ofSquad = isAbsolute(given) ? undefined : squadProject(given);
  if (ofSquad === undefined && !isAbsolute(given))
    throw missing(`There is no squad "${given.slice(0, 60)}", and it is no absolute path of a folder.`);
  const projectPath = ofSquad ?? given;
  if (!isFolder(projectPath)) throw missing(`${projectPath}: there is no such folder.`);
  return { projectPath, squad: ofSquad === undefined ? null : given };
}
