import { messageOf, UserError } from "../lib/errors.ts";
import { createLanes } from "../lib/lanes.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Squad, Task } from "../protocol/squads.ts";
import { isTemporary } from "../store/faults.ts";
import { whenNotHeld } from "../store/open.ts";
import type { SquadStore, TaskRecord } from "../store/squads.ts";
import { CLOSING } from "../workers/remote/closing.ts";
import { CANCELLED, createTaskEndings, outcomeOf, type TaskEndingDeps, type TaskOutcome } from "./task-ending.ts";
import { createTaskTurns, type TaskTurnDeps } from "./task-turn.ts";
import type { WorkFolders } from "./work-folders.ts";

export interface TasksDeps extends Omit<TaskTurnDeps, "onSquad">, Omit<TaskEndingDeps, "onSquad"> {
  store: SquadStore;
  workFolders: WorkFolders;
  emit: Emit;
  log: Log;
}

/** Runs delegated tasks: first in, first out for each agent; agents in parallel. */
export function createTasks(deps: TasksDeps) {
  const { store, emit, note, log } = deps;
  const onSquad = (before: Squad) => {
    const squad = store.find(before.slug);
    if (squad && squad.status !== before.status) emit({ type: "squad.updated", data: { ...squad } });
  };
  const turns = createTaskTurns({ ...deps, onSquad });
  const endings = createTaskEndings({ ...deps, onSquad });
  const running = new Map<string, AbortController>();
  const waiters = new Map<string, ((task: Task) => void)[]>();
  const ending = new Set<string>();
  let stopping = false;
  const isClosed = () => !lanes.isOpen();

  const lanes = createLanes({
    async work(lane) {
      const { squad, agent } = agentIn(lane);
      for (let next = store.nextTask(squad, agent); lanes.isOpen() && next; next = store.nextTask(squad, agent))
        await perform(next);
    },
    onFailure: (lane, error) => log.error("an agent's queue failed and is tried again", { agent: lane, error }),
  });

  async function perform(task: TaskRecord): Promise<void> {
    const abort = new AbortController();
    running.set(task.id, abort);
    try {
      const assignment = turns.assignmentFor(task);
      if ("code" in assignment) return await end(task, { status: "failed", result: null, error: assignment });
      const result = await turns.run(task, assignment, abort.signal);
      if (lanes.isOpen()) await end(task, result ? outcomeOf(result) : CANCELLED);
    } catch (error) {
      // The queue retries it when the database can be written again.
      if (isTemporary(error)) throw error;
      if (error instanceof UserError) {
        const failure = { code: "not_begun", message: error.message };
        if (lanes.isOpen())
          await end(task, abort.signal.aborted ? CANCELLED : { status: "failed", result: null, error: failure });
        return;
      }
      log.error("a task could not be run", { id: task.id, error });
      const message = `something went wrong inside IO (${oneLine(messageOf(error), 500)}). The log has the details: io logs.`;
      if (lanes.isOpen()) await end(task, { status: "failed", result: null, error: { code: "internal", message } });
    } finally {
      running.delete(task.id);
    }
  }

  async function end(task: TaskRecord, outcome: TaskOutcome): Promise<void> {
    const { evidence, failure } = await endings.gather(task, outcome);
    if (!lanes.isOpen()) return;
    const shown: TaskOutcome = failure && outcome.status === "done" ? { ...outcome, status: "failed", error: failure } : outcome;
    // Another program that holds the database does not undo what was done.
    await whenNotHeld(() => finish(task, shown, evidence), isClosed);
    await endings.removeWorkFolder(task);
  }

  function finish(task: TaskRecord, outcome: TaskOutcome, evidence: TaskRecord["evidence"]): void {
    const shown = endings.finish(task, outcome, evidence, { silent: stopping });
    if (!shown) return;
    for (const waiter of waiters.get(task.id) ?? []) waiter(shown);
    waiters.delete(task.id);
    ending.delete(task.id);
  }

  /** Removes the folders that an earlier life had no time for. */
  async function removeLeftFolders(): Promise<void> {
    for (const id of deps.workFolders.left()) {
      const task = store.findTask(id);
      if (lanes.isOpen() && task) await endings.removeWorkFolder(task);
    }
  }

  /** Ends a task that waits or runs; undefined if there is nothing to end. */
  async function cancel(id: string): Promise<Task | undefined> {
    const task = store.findTask(id);
    if (task?.status !== "queued" && task?.status !== "running") return undefined;
    const abort = running.get(id);
    ending.add(id);
    const ended = new Promise<Task>((resolve) => waiters.set(id, [...(waiters.get(id) ?? []), resolve]));
    if (abort) abort.abort();
    else await whenNotHeld(() => finish(task, CANCELLED, task.evidence), isClosed);
    return ended;
  }

  return {
    /** Call this once a task is on disk. */
    queued(task: TaskRecord): void {
      const { id, squad, agent, description, reason, model, origin } = task;
      const data = { id, squad, agent, description, reason, model };
      emit({ type: "task.queued", conversation: origin?.conversation, data });
      note(task, "queued", reason ?? "queued");
      lanes.kick(laneOf(task));
    },
    cancel,
    /** Whether a task has been told to end; nobody joins it any more. */
    isEnding: (id: string) => ending.has(id),
    /** Ends every task, and returns how many there were. */
    stopAll(): number {
      const all = store.openTasks();
      stopping = true;
      const ends = all.map(({ id }) => cancel(id).catch((error: unknown) => log.error("a task was not stopped", { id, error })));
      void Promise.all(ends).then(() => {
        stopping = false;
      });
      return all.length;
    },
    start(): void {
      endings.reportUndelivered();
      lanes.open();
      void removeLeftFolders();
      for (const task of store.openTasks()) lanes.kick(laneOf(task));
    },
    async close(): Promise<void> {
      const closed = lanes.close();
      for (const abort of running.values()) abort.abort(CLOSING);
      await closed;
    },
  };
}
export type Tasks = ReturnType<typeof createTasks>;

/** An agent's lane; a slug has no slash in it, a character's name may. */
function laneOf({ squad, agent }: Pick<TaskRecord, "squad" | "agent">): string {
  return `${squad}/${agent}`;
}

function agentIn(lane: string): { squad: string; agent: string } {
  const cut = lane.indexOf("/");
  return { squad: lane.slice(0, cut), agent: lane.slice(cut + 1) };
}
