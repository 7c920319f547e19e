import { setTimeout as sleep } from "node:timers/promises";
import type { Snapshots } from "../git/snapshots.ts";
import { UserError } from "../lib/errors.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure } from "../protocol/messages.ts";
import type { Owed } from "../protocol/outbox.ts";
import type { Squad, Task, TaskEvidence } from "../protocol/squads.ts";
import type { TurnResult } from "../protocol/turns.ts";
import type { Store } from "../store/open.ts";
import type { SquadStore, TaskRecord } from "../store/squads.ts";
import type { TaskActivity } from "../store/task-activity.ts";
import type { ToolCall } from "../store/tool-calls.ts";
import type { Gate } from "../tools/gate.ts";
import { evidenceOf } from "./evidence.ts";
import { projectMissing } from "./missing.ts";
import { findNeighbours } from "./neighbours.ts";
import { reportOf } from "./report.ts";
import type { NoteTask } from "./task-notes.ts";
import type { WorkFolders } from "./work-folders.ts";

export interface TaskEndingDeps {
  database: Store;
  store: SquadStore;
  activity: TaskActivity;
  gate: Gate;
  snapshots: Snapshots;
  workFolders: Pick<WorkFolders, "save" | "close" | "placesOf">;
  emit: Emit;
  note: NoteTask;
  /** Called with a squad whose status may have changed, as it was before. */
  onSquad: (before: Squad) => void;
  /** Stores a message about a task's end for delivery. */
  owe: (owed: Owed) => void;
}

/** How a task ends. */
export interface TaskOutcome {
  status: "done" | "failed" | "cancelled";
  result: string | null;
  error: Failure | null;
}

/** What was seen of a task, and why it cannot count as done. */
export interface Gathered {
  evidence: TaskEvidence | null;
  failure?: Failure;
}

type WorkInspection = Pick<TaskEvidence, "treeAfter" | "filesChanged" | "others"> & { failure?: Failure };
const NOTHING_SEEN: WorkInspection = { treeAfter: null, filesChanged: [] };

/** Somebody who cancels does not wait for a scan of a large repository. */
const CANCEL_WAIT_MS = 500;

/** Ends tasks: gathers what was seen of the work, records it, and reports it to everybody who asked. */
export function createTaskEndings(deps: TaskEndingDeps) {
  const { database, store, activity, gate, snapshots, workFolders, emit, note, onSquad, owe } = deps;

  /** The tree that a task leaves, and the files that differ from the one it began with. */
  async function inspectWork(
    task: TaskRecord,
    squad: Squad,
    treeBefore: string | null,
    calls: readonly ToolCall[],
  ): Promise<WorkInspection> {
    const changedNothing = calls.every(({ kind, state }) => kind === "read" || state === "refused");
    const take = async () => (treeBefore === null || changedNothing ? treeBefore : snapshots.take(squad.projectPath));
    try {
      const saved = await workFolders.save(squad, task);
      const treeAfter = saved?.tree ?? (await take());
      const filesChanged = await snapshots.changed(squad.projectPath, treeBefore, treeAfter);
      const others: NonNullable<TaskEvidence["others"]> = [];
      for (const [index, other] of (task.evidence?.others ?? []).entries()) {
        const after = saved?.others[index]?.tree ?? null;
        const theirs = await snapshots.changed(other.projectPath, other.treeBefore, after);
        others.push({ ...other, treeAfter: after, filesChanged: theirs });
      }
      return { treeAfter, filesChanged, ...(others.length > 0 && { others }) };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { ...NOTHING_SEEN, failure: { code: "result_lost", message: error.message } };
    }
  }

  /** Gathers what was seen of a task's work, and why it failed despite the agent's words. */
  async function gather(task: TaskRecord, { status }: TaskOutcome): Promise<Gathered> {
    const begun = store.findTask(task.id);
    const squad = store.find(task.squad);
    if (!begun?.startedAt || squad === undefined) return { evidence: null };
    const { treeBefore = null, branch, base, others: untouched } = begun.evidence ?? {};
    const calls = gate.callsOf(task.id);
    const seen = inspectWork(begun, squad, treeBefore, calls);
    const late = sleep(CANCEL_WAIT_MS, NOTHING_SEEN, { ref: false });
    const {
      failure,
      treeAfter,
      filesChanged,
      others = untouched,
    } = await (status === "cancelled" ? Promise.race([seen, late]) : seen);
    const lost = squad.missing ? projectMissing(squad) : failure;
    const neighbours = findNeighbours({ store, callsOf: gate.callsOf }, begun, squad);
    const places = others === undefined ? [] : workFolders.placesOf(squad, begun);
    const all = { calls, filesChanged, treeBefore, treeAfter, branch, base, others, places, ...neighbours };
    return { evidence: evidenceOf(all, status === "done" && lost ? "failed" : status), ...(lost && { failure: lost }) };
  }

  /** Updates the status of the agent and its squad when their task has ended. */
  function settle(task: TaskRecord, status: "idle" | "error"): void {
    const others = store.openHeads(task.squad).filter(({ id, isRunning }) => id !== task.id && isRunning);
    if (!others.some(({ agent }) => agent === task.agent)) store.setAgentStatus(task.squad, task.agent, status);
    if (others.length === 0) store.setStatus(task.squad, status);
  }

  /** Reports to everybody who asked, once per conversation. */
  function report(task: TaskRecord): void {
    const text = reportOf(publicTask(task));
    const askers = activity.askers(task.id);
    const first = task.origin ?? askers[0];
    const others = askers.filter(({ conversation }) => conversation !== first?.conversation);
    for (const { conversation, source } of first ? [first, ...others] : []) {
      const key = conversation === first?.conversation ? `task:${task.id}` : `task:${task.id}:${conversation}`;
      owe({ kind: "task", about: task.id, conversation, source, text, key });
    }
    store.updateTask(task.id, { delivered: true });
  }

  return {
    gather,
    /** Records and announces a task's end; undefined if it had ended before. `silent` if everything is being stopped. */
    finish(task: TaskRecord, outcome: TaskOutcome, evidence: TaskEvidence | null, { silent = false } = {}): Task | undefined {
      const squad = store.find(task.squad);
      const finished = database.transaction(() => {
        const now = store.findTask(task.id);
        if (!now || (now.status !== "queued" && now.status !== "running")) return undefined;
        const changed = store.updateTask(task.id, { ...outcome, evidence, finishedAt: new Date().toISOString() }) ?? now;
        settle(task, outcome.status === "failed" ? "error" : "idle");
        // Whoever cancels a task knows; others who asked for it are told.
        const isKnown = outcome.status === "cancelled" && (silent || activity.askers(task.id).length < 2);
        if (isKnown) store.updateTask(task.id, { delivered: true });
        else report(changed);
        const ended = publicTask(changed);
        emit({ type: "task.finished", conversation: task.origin?.conversation, data: { ...ended } });
        return ended;
      });
      if (!finished) return undefined;
      const how = outcome.error ? `${outcome.status}: ${outcome.error.message}` : (evidence?.verdict ?? outcome.status);
      note(finished, "ended", how, { filesChanged: evidence?.filesChanged ?? [] });
      if (squad) onSquad(squad);
      return finished;
    },
    /** Removes the folder that an ended task worked in. */
    async removeWorkFolder({ id, squad: slug }: Pick<Task, "id" | "squad">): Promise<void> {
      const [squad, task] = [store.find(slug), store.findTask(id)];
      if (squad && task && task.finishedAt !== null) await workFolders.close(squad, task);
    },
    /** Reports ends that an earlier life recorded but told nobody. */
    reportUndelivered(): void {
      for (const task of store.undeliveredTasks()) database.transaction(() => report(task));
    },
  };
}

export const CANCELLED: TaskOutcome = {
  status: "cancelled",
  result: null,
  error: { code: "cancelled", message: "it was cancelled before it was finished." },
};

export function outcomeOf({ outcome, text, error }: TurnResult): TaskOutcome {
  if (outcome === "done") return { status: "done", result: text, error: null };
  if (outcome === "aborted") return { ...CANCELLED, result: text || null };
  return { status: "failed", result: text || null, error: error ?? { code: "failed", message: "the turn failed." } };
}

/** A task without what only its runner needs to know. */
export function publicTask({
  seq: _seq,
  sessionId: _session,
  promptId: _prompt,
  delivered: _delivered,
  ...task
}: TaskRecord): Task {
  return task;
}
