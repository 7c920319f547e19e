import type { Session } from "../engine/port.ts";
import type { Snapshots } from "../git/snapshots.ts";
import type { Config } from "../home/config.ts";
import { isFolder } from "../lib/is-folder.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure } from "../protocol/messages.ts";
import { formatRetry } from "../protocol/shown-state.ts";
import type { Agent, Squad, Task, TaskEvidence } from "../protocol/squads.ts";
import type { TurnEvent, TurnRequest, TurnResult } from "../protocol/turns.ts";
import type { Spender, Spending } from "../protocol/usage.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import { type SquadStore, squadOwner, type TaskRecord } from "../store/squads.ts";
import type { Agents } from "./agents.ts";
import { projectMissing } from "./missing.ts";
import type { NoteTask } from "./task-notes.ts";
import type { WorkFolder, WorkFolders } from "./work-folders.ts";
import type { TaskTree } from "./work-trees.ts";

export interface TaskTurnDeps {
  database: Store;
  store: SquadStore;
  sessions: SessionRows;
  spending: Spending;
  agents: Agents;
  snapshots: Snapshots;
  workFolders: Pick<WorkFolders, "open" | "prepare">;
  config: () => Config;
  emit: Emit;
  note: NoteTask;
  /** Called with a squad whose status may have changed, as it was before. */
  onSquad: (before: Squad) => void;
}

/** Who works on a task, and for which squad. */
export interface Assignment {
  squad: Squad;
  agent: Agent;
}

/** A task that kills the daemon each time it is resumed must not do so forever. */
const MAX_LIVES = 5;
const MAX_NOTICE = 1_000;

/** One task's turn: the agent, the state it began from, and the model that is asked. */
export function createTaskTurns(deps: TaskTurnDeps) {
  const { database, store, sessions, spending, agents, snapshots, workFolders, config, emit, note, onSquad } = deps;

  /** The models may have become known only after the task was stored. */
  async function modelOf(task: TaskRecord, agent: Agent): Promise<Pick<TaskRecord, "model" | "reason">> {
    await agents.modelsKnown();
    const { model, reason } = agents.modelFor(agent, task.description);
    return model === task.model ? task : { model, reason: `${task.reason}; when it began: ${reason}` };
  }

  function recordEvent(task: Task, event: TurnEvent): void {
    if (event.kind === "retry") note(task, "model", formatRetry(event), { attempt: event.attempt, waitMs: event.waitMs });
    if (event.kind === "notice") note(task, "started", oneLine(event.text, MAX_NOTICE));
    if (event.kind !== "usage") return;
    const { model, inputTokens, outputTokens } = event.call;
    spending.record(spenderOf(task), event.call);
    note(task, "model", `${named(model)}: ${inputTokens} tokens in, ${outputTokens} out`, { model, inputTokens, outputTokens });
  }

  /** Not flushed to disk: any later write, such as the intent of an effect, takes this with it. */
  function begin(
    task: TaskRecord,
    { squad, agent }: Assignment,
    place: WorkFolder,
    { model, reason, treeBefore }: Pick<TaskRecord, "model" | "reason"> & { treeBefore: string | null },
  ): { session: Session; interrupted: TurnRequest["interrupted"] } {
    const begun = task.status === "running";
    const work = () => {
      const prepare = (signal: AbortSignal) => prepareHere(deps, task, place, signal);
      const session = agents.session(squad, agent, { model, place, prepare, begunIn: begun ? task.sessionId : null });
      const isSame = begun && task.sessionId === session.id;
      const previousPromptId = sessions.find(session.id)?.lastPromptId ?? undefined;
      const evidence: TaskEvidence = task.evidence ?? {
        ...{ filesChanged: [], commands: [], treeBefore, treeAfter: null },
        ...(place.own && { branch: place.own.branch, base: place.own.base }),
        ...(place.others.length > 0 && { others: place.others.map(untouched) }),
      };
      store.updateTask(task.id, {
        status: "running",
        sessionId: session.id,
        attempts: task.attempts + 1,
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
    };
    return database.soft(work);
  }

  return {
    /** Who works on a task, or why nobody can. */
    assignmentFor(task: TaskRecord): Assignment | Failure {
      if (task.attempts >= MAX_LIVES)
        return {
          code: "gave_up",
          message: `this task was begun ${task.attempts} times and never finished. Delegate it again if you want it tried once more.`,
        };
      const squad = store.find(task.squad);
      const agent = store.findAgent(task.squad, task.agent);
      if (!squad || !agent) return { code: "agent_gone", message: `${task.agent} is no longer in the squad ${task.squad}.` };
      if (!isFolder(squad.projectPath)) return projectMissing(squad);
      return { squad, agent };
    },

    /** Undefined if it was cancelled before anybody was asked. */
    async run(task: TaskRecord, assignment: Assignment, signal: AbortSignal): Promise<TurnResult | undefined> {
      const { squad, agent } = assignment;
      const begun = task.status === "running";
      const { model, reason } = begun ? task : await modelOf(task, agent);
      const place = await workFolders.open(squad, task, signal);
      const before = () => place.own?.treeBefore ?? snapshots.take(squad.projectPath);
      const treeBefore = task.evidence ? task.evidence.treeBefore : await before();
      if (signal.aborted) return undefined;
      const { session, interrupted } = begin(task, assignment, place, { model, reason, treeBefore });
      const { id } = task;
      const attempts = task.attempts + 1;
      const data = { id, squad: squad.slug, agent: agent.characterName, model, attempts };
      emit({ type: "task.started", conversation: task.origin?.conversation, data });
      onSquad(squad);
      const how = begun
        ? `taken up again, try ${attempts}`
        : `${agent.characterName} begins with ${model === null ? "the default model" : named(model)}`;
      note(task, begun ? "resumed" : "started", `${how}${place.own ? `, on the branch ${place.own.branch}` : ""}`);
      for (const { projectPath, isDirty } of place.own && !begun ? [place.own, ...place.others] : [])
        if (isDirty) note(task, "started", uncommitted(place.others.length > 0 ? projectPath : "the project"));
      const { taskSilenceMs, taskCapMs } = config();
      const turn = await session.run({
        owner: id,
        prompt: promptOf(task),
        attempt: attempts,
        signal,
        silenceMs: taskSilenceMs,
        capMs: taskCapMs,
        ...(interrupted && { interrupted }),
        onAccepted: (promptId) =>
          database.soft(() => {
            store.accepted(id, promptId);
            sessions.accepted(session.id, promptId);
          }),
        spender: spenderOf(task),
        onEvent: (event) => recordEvent(task, event),
        beforeCall: (signal, flush) => spending.permit(spenderOf(task), { signal, flush, life: attempts }),
      });
      const { worker, workerAttempts = 1 } = turn;
      if (worker !== undefined) store.updateTask(id, { worker, attempts: workerAttempts });
      return turn;
    },
  };
}

const uncommitted = (what: string) => `${what} has changes that are not committed; its worktree begins from the last commit`;

/** What is known of another repository before the work. */
function untouched({ projectPath, base, treeBefore }: TaskTree): NonNullable<TaskEvidence["others"]>[number] {
  return { projectPath, base, treeBefore, treeAfter: null, filesChanged: [] };
}

/** Installs what the project requires, and notes what is missing before the agent is asked. */
async function prepareHere(
  { workFolders, note }: TaskTurnDeps,
  task: TaskRecord,
  place: WorkFolder,
  signal: AbortSignal,
): Promise<void> {
  try {
    await workFolders.prepare(task, place, (text) => note(task, "started", text), signal);
  } catch (error) {
    // The turn itself then ends as stopped.
    if (!signal.aborted) throw error;
  }
  for (const text of place.missing) note(task, "started", text);
}

function spenderOf({ id, squad, agent, origin }: Task): Spender {
  const { conversation, source } = origin ?? {};
  return { owner: id, actor: squadOwner(squad, agent), agent, squad, task: id, conversation, source: source?.channel };
}

/** What the agent reads. The same in every life of a task. */
function promptOf({ id, description }: Task): string {
  return `Task ${id}: ${description}`;
}
