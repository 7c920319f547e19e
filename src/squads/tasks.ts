import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Snapshots } from "../git/snapshots.ts";
import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure } from "../protocol/messages.ts";
import type { Activity, Agent, Origin, Squad, Task, TaskEvidence } from "../protocol/squads.ts";
import type { TurnEvent, TurnResult } from "../protocol/turns.ts";
import { isBusy, type Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import { type SquadStore, squadOwner, type TaskRecord } from "../store/squads.ts";
import type { TaskActivity } from "../store/task-activity.ts";
import type { UsageLog } from "../store/usage.ts";
import type { Gate } from "../tools/gate.ts";
import type { Agents } from "./agents.ts";
import { evidenceOf } from "./evidence.ts";
import { reportOf } from "./report.ts";

/** What somebody who asked for a task is told at its end. */
export interface Report {
  task: Task;
  text: string;
  origin: Origin;
  /** The same report has the same key, so that it is delivered once. */
  key: string;
}

export interface TasksDeps {
  database: Store;
  store: SquadStore;
  activity: TaskActivity;
  sessions: SessionRows;
  usage: UsageLog;
  agents: Agents;
  gate: Gate;
  snapshots: Snapshots;
  config: () => Config;
  emit: Emit;
  log: Log;
  deliver: (report: Report) => void;
}

/** A task that ends the daemon each time it is taken up must not do so for ever. */
const MAX_LIVES = 5;
const RETRY_MS = 3_000;
/** Somebody who cancels does not wait for a large repository to be looked at. */
const HURRY_MS = 500;

/** Runs what was delegated: for each agent first in, first out; agents side by side. */
export function createTasks(parts: TasksDeps) {
  const { database, store, activity, sessions, usage, agents, gate, snapshots, config, emit, log, deliver } = parts;
  const workers = new Map<string, Promise<void>>();
  const running = new Map<string, AbortController>();
  const waiters = new Map<string, ((task: Task) => void)[]>();
  const ending = new Set<string>();
  let stopping = false;
  let open = false;

  function note(task: Task, kind: Activity["kind"], summary: string, data?: Record<string, unknown>): void {
    try {
      activity.add(task.id, kind, summary, data);
    } catch (error) {
      log.warn("a task's activity could not be written down", { id: task.id, error: messageOf(error) });
    }
    const { id, squad, agent } = task;
    emit({ type: "task.progress", conversation: task.origin?.conversation, data: { id, squad, agent, kind, summary, ...data } });
  }

  function kick(squad: string, agent: string): void {
    const key = squadOwner(squad, agent);
    if (!open || workers.has(key)) return;
    const worker = work(squad, agent)
      .then(() => {
        workers.delete(key);
        if (open && store.nextTask(squad, agent)) kick(squad, agent);
      })
      .catch((error: unknown) => {
        workers.delete(key);
        log.error("an agent's queue failed and is tried again", { agent: key, error });
        setTimeout(() => kick(squad, agent), RETRY_MS).unref();
      });
    workers.set(key, worker);
  }

  async function work(squad: string, agent: string): Promise<void> {
    for (let next = store.nextTask(squad, agent); open && next; next = store.nextTask(squad, agent)) await perform(next);
  }

  async function perform(task: TaskRecord): Promise<void> {
    const abort = new AbortController();
    running.set(task.id, abort);
    try {
      const place = placeOf(task);
      if ("code" in place) return await end(task, { status: "failed", result: null, error: place });
      const result = await turn(task, place, abort.signal);
      if (open) await end(task, result ? outcomeOf(result) : cancelled);
    } catch (error) {
      // The queue goes on with it when the database is free again.
      if (isBusy(error)) throw error;
      log.error("a task could not be run", { id: task.id, error });
      const why = {
        code: "internal",
        message: `something went wrong inside IO (${messageOf(error)}). The log has the details: io logs.`,
      };
      if (open) await end(task, { status: "failed", result: null, error: why });
    } finally {
      running.delete(task.id);
    }
  }

  /** Who works where; or why nobody can. */
  function placeOf(task: TaskRecord): { squad: Squad; agent: Agent } | Failure {
    if (task.attempts >= MAX_LIVES)
      return {
        code: "gave_up",
        message: `this task was begun ${task.attempts} times and never finished. Delegate it again if you want it tried once more.`,
      };
    const squad = store.find(task.squad);
    const agent = store.findAgent(task.squad, task.agent);
    if (!squad || !agent) return { code: "agent_gone", message: `${task.agent} is no longer in the squad ${task.squad}.` };
    if (!statSync(squad.projectPath, { throwIfNoEntry: false })?.isDirectory())
      return {
        code: "project_missing",
        message: `the project's folder ${squad.projectPath} is not there any more. Put it back and delegate the task again, or delete the squad.`,
      };
    return { squad, agent };
  }

  async function turn(
    task: TaskRecord,
    { squad, agent }: { squad: Squad; agent: Agent },
    signal: AbortSignal,
  ): Promise<TurnResult | undefined> {
    const begun = task.status === "running";
    const { model, reason } = begun ? task : await modelOf(task, agent);
    const treeBefore = task.evidence ? task.evidence.treeBefore : await snapshots.take(squad.projectPath);
    if (signal.aborted) return undefined;
    const attempts = task.attempts + 1;
    // Not waited for: whatever is written to the disk later, such as the intent of an effect, takes this with it.
    const { session, interrupted } = database.soft(() =>
      database.transaction(() => {
        const session = agents.session(squad, agent, { model, begunIn: begun ? task.sessionId : null });
        const isSame = begun && task.sessionId === session.id;
        const previousPromptId = sessions.find(session.id)?.lastPromptId ?? undefined;
        const evidence: TaskEvidence = task.evidence ?? { filesChanged: [], commands: [], treeBefore, treeAfter: null };
        store.updateTask(task.id, {
          status: "running",
          sessionId: session.id,
          attempts,
          startedAt: task.startedAt ?? new Date().toISOString(),
          evidence,
          model,
          reason,
          ...(!isSame && { promptId: null }),
        });
        store.setSession(squad.slug, session.id);
        store.setAgentStatus(squad.slug, agent.characterName, "working");
        store.setStatus(squad.slug, "working");
        return { session, interrupted: isSame ? { promptId: task.promptId ?? undefined, previousPromptId } : undefined };
      }),
    );
    const { id } = task;
    emit({
      type: "task.started",
      conversation: task.origin?.conversation,
      data: { id, squad: squad.slug, agent: agent.characterName, model, attempts },
    });
    tellSquad(squad);
    note(
      task,
      begun ? "resumed" : "started",
      begun ? `taken up again, try ${attempts}` : `${agent.characterName} begins with ${model ?? "the default model"}`,
    );

    const { taskSilenceMs, taskCapMs } = config();
    return session.run({
      owner: id,
      prompt: promptOf(task),
      attempt: attempts,
      signal,
      silenceMs: taskSilenceMs,
      capMs: taskCapMs,
      ...(interrupted && { interrupted }),
      onAccepted: (promptId) =>
        database.soft(() =>
          database.transaction(() => {
            store.accepted(id, promptId);
            sessions.accepted(session.id, promptId);
          }),
        ),
      onEvent: (event) => hear(task, event),
    });
  }

  /** The models may have become known only after the task was written down. */
  async function modelOf(task: TaskRecord, agent: Agent): Promise<Pick<TaskRecord, "model" | "reason">> {
    await agents.modelsKnown();
    const { model, reason } = agents.modelFor(agent, task.description);
    return model === task.model ? task : { model, reason: `${task.reason}; when it began: ${reason}` };
  }

  function hear(task: Task, event: TurnEvent): void {
    if (event.kind !== "usage") return;
    const { model, inputTokens, outputTokens } = event.call;
    usage.record(task.id, squadOwner(task.squad, task.agent), event.call);
    note(task, "model", `${model}: ${inputTokens} tokens in, ${outputTokens} out`, { model, inputTokens, outputTokens });
  }

  async function end(task: TaskRecord, outcome: Outcome): Promise<void> {
    const evidence = await gather(task, outcome.status);
    if (open) finish(task, outcome, evidence);
  }

  function finish(task: TaskRecord, outcome: Outcome, evidence: TaskEvidence | null): void {
    const finishedAt = new Date().toISOString();
    const squad = store.find(task.squad);
    const finished = database.transaction(() => {
      const now = store.findTask(task.id);
      if (!now || (now.status !== "queued" && now.status !== "running")) return undefined;
      // Who cancels a task knows; others who asked for it are told.
      const delivered = outcome.status === "cancelled" && (stopping || activity.askers(task.id).length < 2);
      const changed = store.updateTask(task.id, { ...outcome, evidence, finishedAt, delivered });
      settle(task, outcome.status === "failed" ? "error" : "idle");
      return changed;
    });
    if (!finished) return;
    const shown = publicTask(finished);
    const how = outcome.error ? `${outcome.status}: ${outcome.error.message}` : (evidence?.verdict ?? outcome.status);
    note(shown, "ended", how, { filesChanged: evidence?.filesChanged ?? [] });
    emit({ type: "task.finished", conversation: task.origin?.conversation, data: { ...shown } });
    if (squad) tellSquad(squad);
    if (!finished.delivered) hand(finished);
    for (const waiter of waiters.get(task.id) ?? []) waiter(shown);
    waiters.delete(task.id);
    ending.delete(task.id);
  }

  /** What the agent and its squad are when a task of theirs has ended. */
  function settle(task: TaskRecord, status: "idle" | "error"): void {
    const others = store.openHeads(task.squad).filter(({ id, isRunning }) => id !== task.id && isRunning);
    if (!others.some(({ agent }) => agent === task.agent)) store.setAgentStatus(task.squad, task.agent, status);
    if (others.length === 0) store.setStatus(task.squad, status);
  }

  /** Tells of a squad whose status is not what it was. */
  function tellSquad(before: Squad): void {
    const squad = store.find(before.slug);
    if (squad && squad.status !== before.status) emit({ type: "squad.updated", data: { ...squad } });
  }

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

  /** Tells everybody who asked; a key for each makes it once, however often this is tried. */
  function hand(task: TaskRecord): void {
    try {
      const shown = publicTask(task);
      const text = reportOf(shown);
      const askers = activity.askers(task.id);
      const first = task.origin ?? askers[0];
      for (const origin of first ? [first, ...askers.filter(({ conversation }) => conversation !== first.conversation)] : []) {
        const key = origin === first ? `task:${task.id}` : `task:${task.id}:${origin.conversation}`;
        deliver({ task: shown, text, origin, key });
      }
      database.soft(() => store.updateTask(task.id, { delivered: true }));
    } catch (error) {
      log.error("a task's result could not be delivered; it is tried again", { id: task.id, error });
      setTimeout(() => {
        const again = open ? store.findTask(task.id) : undefined;
        if (again && !again.delivered) hand(again);
      }, RETRY_MS).unref();
    }
  }

  const isOpen = (task: TaskRecord | undefined): task is TaskRecord => task?.status === "queued" || task?.status === "running";

  /** Ends a task that waits or runs; undefined if there is nothing to end. */
  async function cancel(id: string): Promise<Task | undefined> {
    const task = store.findTask(id);
    if (!isOpen(task)) return undefined;
    const abort = running.get(id);
    ending.add(id);
    const ended = new Promise<Task>((resolve) => waiters.set(id, [...(waiters.get(id) ?? []), resolve]));
    if (abort) abort.abort();
    else finish(task, cancelled, task.evidence);
    return ended;
  }

  return {
    /** To be called once a task is on disk. */
    queued(task: TaskRecord): void {
      const { id, squad, agent, description, reason, model } = task;
      emit({
        type: "task.queued",
        conversation: task.origin?.conversation,
        data: { id, squad, agent, description, reason, model },
      });
      note(task, "queued", reason ?? "queued");
      kick(squad, agent);
    },
    note,
    cancel,
    /** Whether a task has been told to end; nobody joins it any more. */
    isEnding: (id: string) => ending.has(id),
    /** Ends every task; tells how many that were. */
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
      open = true;
      for (const task of store.undeliveredTasks()) hand(task);
      for (const task of store.openTasks()) kick(task.squad, task.agent);
    },
    async close(): Promise<void> {
      open = false;
      for (const abort of running.values()) abort.abort();
      await Promise.all(workers.values());
    },
  };
}
export type Tasks = ReturnType<typeof createTasks>;

type Outcome = { status: "done" | "failed" | "cancelled"; result: string | null; error: Failure | null };

const cancelled: Outcome = {
  status: "cancelled",
  result: null,
  error: { code: "cancelled", message: "it was cancelled before it was finished." },
};

function outcomeOf({ outcome, text, error }: TurnResult): Outcome {
  if (outcome === "done") return { status: "done", result: text, error: null };
  if (outcome === "aborted") return { ...cancelled, result: text || null };
  return { status: "failed", result: text || null, error: error ?? { code: "failed", message: "the turn failed." } };
}

/** What the agent reads. The same for every life of a task. */
function promptOf({ id, description }: Task): string {
  return `Task ${id}: ${description}`;
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
