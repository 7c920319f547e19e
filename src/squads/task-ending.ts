import { setTimeout as sleep } from "node:timers/promises";
import type { Snapshots } from "../git/snapshots.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure } from "../protocol/messages.ts";
import type { Owed } from "../protocol/outbox.ts";
import type { Squad, Task, TaskEvidence } from "../protocol/squads.ts";
import type { TurnResult } from "../protocol/turns.ts";
import type { Store } from "../store/open.ts";
import type { SquadStore, TaskRecord } from "../store/squads.ts";
import type { TaskActivity } from "../store/task-activity.ts";
import type { Gate } from "../tools/gate.ts";
import { evidenceOf } from "./evidence.ts";
import { reportOf } from "./report.ts";
import type { NoteTask } from "./task-notes.ts";

export interface TaskEndingDeps {
  database: Store;
  store: SquadStore;
  activity: TaskActivity;
  gate: Gate;
  snapshots: Snapshots;
  emit: Emit;
  note: NoteTask;
  /** Told of a squad whose status may have changed, as it was before. */
  onSquad: (before: Squad) => void;
  /** Puts down that somebody has to be told of a task's end. */
  owe: (owed: Owed) => void;
}

/** How a task ends. */
export interface TaskOutcome {
  status: "done" | "failed" | "cancelled";
  result: string | null;
  error: Failure | null;
}

/** Somebody who cancels does not wait for a large repository to be looked at. */
const HURRY_MS = 500;

/** Ends tasks: gathers what was seen of the work, writes it down, and sees to it that everybody who asked is told. */
export function createTaskEndings(deps: TaskEndingDeps) {
  const { database, store, activity, gate, snapshots, emit, note, onSquad, owe } = deps;

  async function gather(task: TaskRecord, status: Task["status"]): Promise<TaskEvidence | null> {
    const begun = store.findTask(task.id);
    const folder = store.find(task.squad)?.projectPath;
    if (!begun?.startedAt || folder === undefined) return null;
    const treeBefore = begun.evidence?.treeBefore ?? null;
    const calls = gate.callsOf(task.id);
    const changedNothing = calls.every(({ kind, state }) => kind === "read" || state === "refused");
    const look = async () => {
      const treeAfter = treeBefore === null || changedNothing ? treeBefore : await snapshots.take(folder);
      return { treeAfter, filesChanged: await snapshots.changed(folder, treeBefore, treeAfter) };
    };
    const late = sleep(HURRY_MS, { treeAfter: null, filesChanged: [] }, { ref: false });
    const { treeAfter, filesChanged } = await (status === "cancelled" ? Promise.race([look(), late]) : look());
    const alongside = store.tasksDuring(task.squad, begun.startedAt).filter((id) => id !== task.id);
    return evidenceOf({ calls, filesChanged, treeBefore, treeAfter, alongside }, status);
  }

  /** What the agent and its squad are when a task of theirs has ended. */
  function settle(task: TaskRecord, status: "idle" | "error"): void {
    const others = store.openHeads(task.squad).filter(({ id, isRunning }) => id !== task.id && isRunning);
    if (!others.some(({ agent }) => agent === task.agent)) store.setAgentStatus(task.squad, task.agent, status);
    if (others.length === 0) store.setStatus(task.squad, status);
  }

  /** Everybody who asked is told, each conversation once. */
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
    /** Writes a task's end down and tells it; undefined if it had ended before. `silent`: everything is being stopped. */
    finish(task: TaskRecord, outcome: TaskOutcome, evidence: TaskEvidence | null, { silent = false } = {}): Task | undefined {
      const squad = store.find(task.squad);
      const finished = database.transaction(() => {
        const now = store.findTask(task.id);
        if (!now || (now.status !== "queued" && now.status !== "running")) return undefined;
        const changed = store.updateTask(task.id, { ...outcome, evidence, finishedAt: new Date().toISOString() }) ?? now;
        settle(task, outcome.status === "failed" ? "error" : "idle");
        // Who cancels a task knows; others who asked for it are told.
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
    /** Tells of ends that an earlier life wrote down and told nobody. */
    catchUp(): void {
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
