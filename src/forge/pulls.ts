import { conflict, messageOf, missing, UserError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { oneLine } from "../lib/quoted.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import type { Emit, Event } from "../protocol/events.ts";
import { isSettled, type PullOptions, type PullRequest } from "../protocol/pulls.ts";
import type { Store } from "../store/open.ts";
import type { PullRow } from "../store/pulls.ts";
import { ForgeError, isPassing } from "./client.ts";
import { NothingToPropose, type OwnedWork } from "./proposal.ts";
import { createPublisher, type PublishDeps } from "./publish.ts";

export interface PullsDeps extends Omit<PublishDeps, "change"> {
  store: Store;
  emit: Emit;
  /**
   * The work of a run or a task in one of its projects. Throws if it has no branch to propose; undefined while it is still
   * running.
   */
  workOf: (owner: PullRequest["owner"], part: number) => OwnedWork | undefined;
  /** Whether nobody waits for the pull request, so that temporary failures are retried until it succeeds. */
  isUnattended: (owner: string) => boolean;
  /** The delay before the first retry. */
  retryMs: () => number;
  /** The work's own project, followed by the other projects that it changed. */
  projectsOf: (owner: PullRequest["owner"]) => readonly string[];
}

const LONGEST_PAUSE_MS = 15 * 60_000;

export interface PageOfPulls {
  limit: number;
  before?: string | undefined;
}

/** The pull requests of runs and tasks: requests them, creates each once, and emits events about them. */
export function createPulls(deps: PullsDeps) {
  const { store, rows, emit, workOf, projectsOf, finder } = deps;
  const change = (id: string, changed: Partial<PullRow>, also: () => void = () => {}): PullRow =>
    store.transaction(() => {
      also();
      const row = rows.change(id, changed);
      emit({ type: "pull.changed", data: shown(row) });
      return row;
    });
  const work = createPullWork({ ...deps, publish: createPublisher({ ...deps, change }), change });

  function known(id: string): PullRow {
    const row = rows.find(id) ?? rows.ofOwner(id);
    if (!row) throw missing(`There is no pull request "${id.slice(0, 60)}". Make one with: io pr <run or task>`);
    return row;
  }

  function insert(owner: PullRequest["owner"], { draft, base, labels = [] }: PullOptions, at: Part): string {
    const id = newId("p");
    // The named base branch belongs to the work's own project.
    const wantedBase = at.part === 0 ? (base ?? null) : null;
    store.transaction(() => {
      rows.insert({ id, owner, ...at, draft: draft ?? null, wantedBase, labels });
      if (at.state !== "planned") emit({ type: "pull.changed", data: shown(rows.find(id)!) });
    });
    return id;
  }

  /** Starts creating one pull request, or updating it if it exists. */
  function bring(owner: PullRequest["owner"], options: PullOptions, at: Part): PullRequest {
    const existing = rows.together(owner.id).find(({ part }) => part === at.part);
    if (existing && !isSettled(existing.state)) return shown(existing);
    if (!existing) {
      const id = insert(owner, options, at);
      work.take(id);
      return shown(known(id));
    }
    const { draft, base, labels } = options;
    change(existing.id, {
      ...{ state: "waiting", reason: null, approval: null, round: existing.round + 1 },
      ...(draft !== undefined && existing.number === null && { draft }),
      ...(base !== undefined && existing.number === null && at.part === 0 && { wantedBase: base }),
      ...(labels !== undefined && { labels }),
    });
    work.take(existing.id);
    return shown(known(existing.id));
  }

  /** The projects of one piece of work, in merge order. */
  const partsOf = ([own = "", ...others]: readonly string[], state: Part["state"]): Part[] => [
    ...others.map((projectPath, index) => ({ projectPath, part: index + 1, state })),
    { projectPath: own, part: 0, state },
  ];

  return {
    /**
     * Requests the pull requests of a run or task: missing ones are created, existing ones updated. Returns that of its own
     * project.
     */
    request(owner: PullRequest["owner"], options: PullOptions): PullRequest {
      const existing = rows.ofOwner(owner.id);
      if (existing && !isSettled(existing.state)) return shown(existing);
      if (workOf(owner, 0) === undefined) throw conflict(`${owner.id} is still at work. Ask again when it has ended.`);
      return partsOf(projectsOf(owner), "waiting")
        .map((at) => bring(owner, options, at))
        .at(-1)!;
    },
    /** Plans the pull requests of a run that is about to start. Throws if the forge or its token cannot be found. */
    async plan({ id, projects }: { id: string; projects: readonly string[] }, options: PullOptions): Promise<void> {
      for (const path of projects) await finder.tokenFor(await finder.placeOf(path));
      for (const at of partsOf(projects, "planned")) insert({ kind: "run", id }, options, at);
    },
    /** Removes the planned pull requests of a run that could not start. */
    forget(owner: string): void {
      for (const row of rows.together(owner)) if (row.state === "planned") rows.remove(row.id);
    },
    find: (id: string): PullRequest => shown(known(id)),
    /** Called with a pull request's state at the forge. */
    saw(id: string, there: { state: "open" | "merged" | "closed"; conflict: boolean }): void {
      const row = rows.find(id);
      if (!row || !isSettled(row.state)) return;
      // A failed push has not succeeded just because the pull request is still open.
      const state = there.state === "open" && row.state !== "closed" ? row.state : there.state;
      const conflict = there.state === "open" && there.conflict;
      if (state === row.state && conflict === row.conflict) return;
      change(id, { state, conflict, ...(state !== row.state && { reason: null }) });
    },
    list: (page: PageOfPulls): PullRequest[] => rows.list(page).map(shown),
    /** All pull requests of a run or task, in merge order. */
    together: (owner: string): PullRequest[] => rows.together(owner).map(shown),
    /** Whether a pull request is being created or waits for a person. */
    isBusy: (): boolean => rows.underWay().some(({ state }) => state !== "planned"),
    /** Called with every event. */
    heard({ type, data }: Event): void {
      if (type !== "run.finished" || data.status === "interrupted") return;
      for (const row of rows.together(data.runId)) {
        if (row.number !== null || (isSettled(row.state) && row.state !== "failed")) continue;
        if (row.state === "failed") change(row.id, { state: "planned", reason: null });
        work.take(row.id);
      }
    },
    start: work.start,
    close: work.close,
  };
}
export type Pulls = ReturnType<typeof createPulls>;

interface PullWorkDeps extends Pick<PullsDeps, "rows" | "workOf" | "clean" | "log" | "isUnattended" | "retryMs"> {
  publish: ReturnType<typeof createPublisher>;
  change: (id: string, changed: Partial<PullRow>) => PullRow;
}

/**
 * Creates the requested pull requests. Those of one piece of work are created one after another, so that each can link to the
 * earlier ones.
 */
function createPullWork({ rows, workOf, clean, log, publish, change, isUnattended, retryMs }: PullWorkDeps) {
  /** How often each pull request has been retried. */
  const tries = new Map<string, number>();
  const timers = new Set<NodeJS.Timeout>();
  const atWork = new Map<string, Promise<void>>();
  const inTurn = createTurnTaking();
  const stopping = new AbortController();
  let isOpen = false;

  /** Works on a pull request, unless it is settled or already being worked on. */
  function take(id: string): void {
    const row = rows.find(id);
    if (!row || !isOpen || isSettled(row.state) || atWork.has(id)) return;
    const owner = row.owner.id;
    const working = inTurn(owner, () => attempt(id)).finally(() => {
      atWork.delete(id);
      // The ones opened earlier must link to this one too.
      for (const each of rows.together(owner)) if (each.state === "publishing") take(each.id);
    });
    atWork.set(id, working);
  }

  async function attempt(id: string): Promise<void> {
    const row = rows.find(id);
    if (!row || stopping.signal.aborted) return;
    try {
      await make(row);
      tries.delete(id);
    } catch (error) {
      // The next process resumes what was stopped.
      if (stopping.signal.aborted) return;
      // Work on several repositories need not change all of them.
      if (error instanceof NothingToPropose && row.part > 0) return rows.remove(id);
      if (!(error instanceof UserError)) log.error("a pull request could not be made", { pull: id, error: messageOf(error) });
      const said = error instanceof UserError ? error.message : "something went wrong inside of IO; its log says what";
      const reason = oneLine(clean(said), 2_000);
      if (isPassing(error) && isUnattended(row.owner.id)) {
        change(id, { reason });
        return tryLater(id, error instanceof ForgeError ? error.retryAt : undefined);
      }
      tries.delete(id);
      change(id, { state: "failed", reason, approval: null });
    }
  }

  /** Retries after a delay that grows each time and is at least as long as the forge asks for. */
  function tryLater(id: string, retryAt: number | undefined): void {
    const tried = tries.get(id) ?? 0;
    tries.set(id, tried + 1);
    const pause = Math.min(retryMs() * 2 ** Math.min(tried, 10), LONGEST_PAUSE_MS);
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        take(id);
      },
      Math.max(pause, (retryAt ?? 0) - Date.now()),
    );
    timer.unref();
    timers.add(timer);
  }

  async function make({ id, owner, state, part }: PullRow): Promise<void> {
    const owned = workOf(owner, part);
    if (owned === undefined) {
      if (state !== "planned") change(id, { state: "planned" });
      return;
    }
    if (state === "planned") change(id, { state: "waiting" });
    await publish(id, owned, stopping.signal);
  }

  return {
    take,
    /** Resumes what an earlier process left unfinished. */
    start(): void {
      isOpen = true;
      for (const { id } of rows.underWay()) take(id);
    },
    async close(): Promise<void> {
      isOpen = false;
      stopping.abort();
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(atWork.values());
    },
  };
}

/** One project of a piece of work. */
type Part = Pick<PullRow, "part" | "projectPath"> & { state: "planned" | "waiting" };

function shown({ wantedBase: _base, round: _round, part: _part, draft, ...row }: PullRow): PullRequest {
  return { ...row, draft: draft ?? false };
}
