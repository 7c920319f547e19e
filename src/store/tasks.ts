import { z } from "zod";
import { Failure } from "../protocol/messages.ts";
import { Origin, Task, TaskEvidence, type TaskStatus } from "../protocol/squads.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";
import { createWaits, type Waits } from "./waits.ts";

export interface NewTask {
  id: string;
  squad: string;
  agent: string;
  description: string;
  /** The folders of the other projects that it changes. */
  with?: readonly string[] | undefined;
  origin?: Origin | undefined;
  reason?: string | undefined;
  model?: string | undefined;
}

/** The fields of a task that may change. */
export interface TaskChange {
  status?: TaskStatus;
  result?: string | null;
  error?: Failure | null;
  evidence?: TaskEvidence | null;
  reason?: string | null;
  model?: string | null;
  sessionId?: string | null;
  promptId?: string | null;
  attempts?: number;
  worker?: string | null;
  delivered?: boolean;
  startedAt?: string | null;
  finishedAt?: string | null;
}

/** A task with the fields that only the task runner needs. */
export interface TaskRecord extends Task {
  seq: number;
  sessionId: string | null;
  promptId: string | null;
  delivered: boolean;
}

/** A running task, in short. */
export interface OpenHead {
  id: string;
  agent: string;
  isRunning: boolean;
  description: string;
  with: string[];
}

export interface TaskFilter {
  squad?: string;
  agent?: string;
  status?: TaskStatus;
  limit?: number;
  before?: string;
}

/** The tasks that were delegated to agents. */
export interface TaskTable {
  insertTask(task: NewTask): TaskRecord;
  updateTask(id: string, change: TaskChange): TaskRecord | undefined;
  /** Records the prompt that the runtime accepted for a task. */
  accepted(id: string, promptId: string): void;
  findTask(id: string): TaskRecord | undefined;
  /** Newest first. `before` is a task's id: only older ones are listed. */
  listTasks(filter?: TaskFilter): TaskRecord[];
  /** Queued and running tasks in order: what to resume after a restart. */
  openTasks(squad?: string): TaskRecord[];
  /** The same for one squad, with only the fields needed to compare them. */
  openHeads(squad: string): OpenHead[];
  /** An agent's first task that is queued or was left running. */
  nextTask(squad: string, agent: string): TaskRecord | undefined;
  /** A squad's tasks that were running during a period. */
  tasksDuring(squad: string, from: string): string[];
  taskCounts(): { queued: number; running: number; all: number };
  /** Ended tasks that were not reported yet. */
  undeliveredTasks(): TaskRecord[];
}

type Row = Record<string, string | number | null>;
const TASK = `SELECT t.*,
  (SELECT count(*) FROM usage u WHERE u.owner = t.id) AS calls,
  (SELECT coalesce(sum(input_tokens), 0) FROM usage u WHERE u.owner = t.id) AS input_tokens,
  (SELECT coalesce(sum(output_tokens), 0) FROM usage u WHERE u.owner = t.id) AS output_tokens,
  (SELECT coalesce(sum(cache_read_tokens), 0) FROM usage u WHERE u.owner = t.id) AS cache_read_tokens
  FROM agent_tasks t`;

const Folders = z.array(z.string());
const OPEN = "INDEXED BY agent_tasks_open WHERE t.status IN ('queued','running')";
const UNKNOWN_FAILURE: Failure = { code: "unreadable", message: "why it failed was written by another version of IO." };

export function createTaskTable(store: Store, now: () => Date): TaskTable {
  const find = store.db.prepare(`${TASK} WHERE t.id = ?`);
  const tasksIn = taskReader(createWaits(store));
  const findTask = (id: string) => tasksIn([find.get(id)])[0];
  return { findTask, ...listings(store, tasksIn), ...changes(store, findTask, now) };
}

function listings({ db }: Store, tasksIn: ReturnType<typeof taskReader>) {
  const open = db.prepare(`${TASK} ${OPEN} ORDER BY t.seq`);
  const openOf = db.prepare(`${TASK} ${OPEN} AND t.squad_slug = ? ORDER BY t.seq`);
  const heads = db.prepare(
    `SELECT t.id, t.agent, t.status, t.description, t.with_projects FROM agent_tasks t ${OPEN} AND t.squad_slug = ? ORDER BY t.seq`,
  );
  const next = db.prepare(`${TASK} ${OPEN} AND t.squad_slug = ? AND t.agent = ? ORDER BY t.seq LIMIT 1`);
  const during = db.prepare(
    `SELECT id, seq FROM agent_tasks WHERE squad_slug = ?1 AND finished_at > ?2 AND started_at IS NOT NULL
     UNION SELECT id, seq FROM agent_tasks WHERE squad_slug = ?1 AND finished_at IS NULL AND started_at IS NOT NULL ORDER BY seq`,
  );
  const counts = db.prepare("SELECT status, count FROM counts WHERE what = 'task'");
  const owed = db.prepare(
    `${TASK} INDEXED BY agent_tasks_owed WHERE t.delivered = 0 AND t.status IN ('done','failed','cancelled') ORDER BY t.seq`,
  );
  /** The query names only the given conditions, so that an index can be used. */
  const listed = ({ squad, agent, status, before, limit = 100 }: TaskFilter) => {
    const wanted = Object.entries({ squad, agent, status, before }).filter(([, value]) => value !== undefined);
    const where = wanted.map(([name]) => FILTERS[name]).join(" AND ");
    const values = Object.fromEntries(wanted) as Record<string, string>;
    return db.prepare(`${TASK} ${where && `WHERE ${where}`} ORDER BY t.seq DESC LIMIT :limit`).all({ ...values, limit });
  };
  return {
    listTasks: (filter: TaskFilter = {}) => tasksIn(listed(filter)),
    openTasks: (squad?: string) => tasksIn(squad === undefined ? open.all() : openOf.all(squad)),
    openHeads: (squad: string): OpenHead[] =>
      (heads.all(squad) as Row[]).map(({ id, agent, status, description, with_projects: others }) => ({
        id: String(id),
        agent: String(agent),
        isRunning: status === "running",
        description: String(description),
        with: readJson(Folders, others) ?? [],
      })),
    nextTask: (squad: string, agent: string) => tasksIn([next.get(squad, agent)])[0],
    tasksDuring: (squad: string, from: string) => (during.all(squad, from) as { id: string }[]).map(({ id }) => id),
    taskCounts() {
      const by = new Map((counts.all() as { status: string; count: number }[]).map(({ status, count }) => [status, count]));
      const all = [...by.values()].reduce((sum, count) => sum + count, 0);
      return { queued: by.get("queued") ?? 0, running: by.get("running") ?? 0, all };
    },
    undeliveredTasks: () => tasksIn(owed.all()),
  };
}

const FILTERS: Record<string, string> = {
  squad: "t.squad_slug = :squad",
  agent: "t.agent = :agent",
  status: "t.status = :status",
  before: "t.seq < (SELECT seq FROM agent_tasks WHERE id = :before)",
};

function changes(store: Store, findTask: TaskTable["findTask"], now: () => Date) {
  const insert = store.db.prepare(
    `INSERT INTO agent_tasks (id, squad_slug, agent, description, with_projects, status, origin, reason, model, created_at)
     VALUES (?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?)`,
  );
  const update = store.db.prepare(
    `UPDATE agent_tasks SET status = ?, result = ?, error = ?, evidence = ?, reason = ?, model = ?, session_id = ?,
     prompt_id = ?, attempts = ?, worker = ?, delivered = ?, started_at = ?, finished_at = ? WHERE id = ?`,
  );
  const accepted = store.db.prepare("UPDATE agent_tasks SET prompt_id = ? WHERE id = ?");
  return {
    insertTask({ id, squad, agent, description, with: others = [], origin, reason, model }: NewTask): TaskRecord {
      const asked = [json(others), json(origin ?? null), reason ?? null, model ?? null];
      insert.run(id, squad, agent, description, ...asked, now().toISOString());
      return findTask(id)!;
    },
    updateTask: (id: string, change: TaskChange) =>
      store.transaction(() => {
        const before = findTask(id);
        if (!before) return undefined;
        const task = { ...before, ...change };
        update.run(
          task.status,
          task.result,
          json(task.error),
          json(task.evidence),
          task.reason,
          task.model,
          task.sessionId,
          task.promptId,
          task.attempts,
          task.worker,
          task.delivered ? 1 : 0,
          task.startedAt,
          task.finishedAt,
          id,
        );
        return findTask(id);
      }),
    accepted: (id: string, promptId: string) => void accepted.run(promptId, id),
  };
}

const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
const textOrNull = (value: string | number | null | undefined) => (value === null || value === undefined ? null : String(value));
const taskReader =
  (waits: Waits) =>
  (rows: unknown[]): TaskRecord[] =>
    rows.flatMap((row) => (row === undefined ? [] : toTask(row as Row, waits)));

function toTask(row: Row, waits: Waits): TaskRecord {
  const task = Task.parse({
    id: row.id,
    squad: row.squad_slug,
    agent: row.agent,
    description: row.description,
    with: readJson(Folders, row.with_projects) ?? [],
    status: row.status,
    result: row.result,
    error: row.error === null ? null : (readJson(Failure, row.error) ?? UNKNOWN_FAILURE),
    evidence: readJson(TaskEvidence, row.evidence) ?? null,
    origin: readJson(Origin, row.origin) ?? null,
    reason: row.reason,
    model: row.model,
    attempts: row.attempts,
    worker: row.worker,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    usage: {
      calls: row.calls,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cacheReadTokens: row.cache_read_tokens,
    },
  });
  const { id, squad, origin, status } = task;
  const waitsFor = status === "running" ? waits({ id, squad, conversation: origin?.conversation ?? null }) : undefined;
  return {
    ...task,
    ...(waitsFor && { waitsFor }),
    seq: Number(row.seq),
    sessionId: textOrNull(row.session_id),
    promptId: textOrNull(row.prompt_id),
    delivered: row.delivered === 1,
  };
}
