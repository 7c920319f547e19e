import type { z } from "zod";
import { conflict } from "../lib/errors.ts";
import { Failure } from "../protocol/messages.ts";
import {
  Agent,
  Decision,
  type ModelTier,
  Origin,
  Squad,
  Task,
  TaskEvidence,
  type TaskStatus,
  type UniverseName,
  type WorkStatus,
} from "../protocol/squads.ts";
import type { Store } from "./open.ts";

export interface NewTask {
  id: string;
  squad: string;
  agent: string;
  description: string;
  origin?: Origin | undefined;
  reason?: string | undefined;
  model?: string | undefined;
}

/** What may change about a task after it was written down. */
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
  delivered?: boolean;
  startedAt?: string | null;
  finishedAt?: string | null;
}

/** A task with what only the runner of tasks needs to know. */
export interface TaskRecord extends Task {
  seq: number;
  sessionId: string | null;
  promptId: string | null;
  delivered: boolean;
}

/** What is under way, in short. */
export interface OpenHead {
  id: string;
  agent: string;
  isRunning: boolean;
  description: string;
}

export interface DecisionPage {
  limit?: number | undefined;
  before?: number | undefined;
}

export interface SquadStore {
  create(squad: { slug: string; name: string; projectPath: string; universe: UniverseName }): Squad;
  find(slug: string): Squad | undefined;
  findByPath(projectPath: string): Squad | undefined;
  list(): Squad[];
  setStatus(slug: string, status: WorkStatus): void;
  sessionOf(slug: string): string | undefined;
  setSession(slug: string, sessionId: string | undefined): void;
  /** Deletes the squad with all that is its own, and answers with the ids of the sessions that it leaves on disk. */
  delete(slug: string): { deleted: boolean; sessions: string[] };
  /** Sessions of squads that are gone, which a crash kept from being deleted on disk. */
  leftoverSessions(): string[];
  /** To be called once a leftover session is gone from disk. */
  forgetSession(id: string): void;

  addAgent(slug: string, agent: { characterName: string; roleTitle: string; charter: string; modelTier: ModelTier }): Agent;
  removeAgent(slug: string, characterName: string): boolean;
  /** In the order in which they joined. */
  agents(slug: string, limit?: number): Agent[];
  /** An agent by its name, however it is capitalised. */
  findAgent(slug: string, characterName: string): Agent | undefined;
  setAgentStatus(slug: string, characterName: string, status: WorkStatus): void;

  addDecision(slug: string, decision: { decision: string; context?: string | undefined; author?: string | undefined }): Decision;
  /** The last `count` decisions, oldest of them first. */
  lastDecisions(slug: string, count: number): Decision[];
  /** Newest first. `before` is the id of a decision: only older ones are listed. */
  listDecisions(slug: string, page?: DecisionPage): Decision[];
  /** The same of those whose text or context holds these words, in any order, or the text as it stands. */
  searchDecisions(slug: string, text: string, page?: DecisionPage): Decision[];

  insertTask(task: NewTask): TaskRecord;
  updateTask(id: string, change: TaskChange): TaskRecord | undefined;
  /** Notes the prompt that the runtime took on for a task. */
  accepted(id: string, promptId: string): void;
  findTask(id: string): TaskRecord | undefined;
  /** Newest first. `before` is the id of a task: only older ones are listed. */
  listTasks(filter?: { squad?: string; agent?: string; status?: TaskStatus; limit?: number; before?: string }): TaskRecord[];
  /** What waits or runs, in the order it was asked for: after a restart, what is to be taken up again. */
  openTasks(squad?: string): TaskRecord[];
  /** The same of one squad, with no more than is needed to compare them. */
  openHeads(squad: string): OpenHead[];
  /** The first of an agent's tasks that waits or was left running. */
  nextTask(squad: string, agent: string): TaskRecord | undefined;
  /** Those of a squad's tasks that were at work in a span of time. */
  tasksDuring(squad: string, from: string): string[];
  taskCounts(): { queued: number; running: number; all: number };
  /** Ended tasks whose end nobody was told of yet. */
  undeliveredTasks(): TaskRecord[];
}

type Row = Record<string, string | number | null>;
const TASK = `SELECT t.*,
  (SELECT count(*) FROM usage u WHERE u.owner = t.id) AS calls,
  (SELECT coalesce(sum(input_tokens), 0) FROM usage u WHERE u.owner = t.id) AS input_tokens,
  (SELECT coalesce(sum(output_tokens), 0) FROM usage u WHERE u.owner = t.id) AS output_tokens,
  (SELECT coalesce(sum(cache_read_tokens), 0) FROM usage u WHERE u.owner = t.id) AS cache_read_tokens
  FROM agent_tasks t`;

/** The squads, their agents, decisions and tasks in the database. */
export function createSquadStore(store: Store, now: () => Date = () => new Date()): SquadStore {
  const { db } = store;
  const time = () => now().toISOString();
  const sql = {
    squadBySlug: db.prepare("SELECT * FROM squads WHERE slug = ?"),
    squadByPath: db.prepare("SELECT * FROM squads WHERE project_path = ?"),
    squads: db.prepare("SELECT * FROM squads ORDER BY slug"),
    insertSquad: db.prepare(
      "INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING *",
    ),
    squadStatus: db.prepare("UPDATE squads SET status = ?, updated_at = ? WHERE slug = ?"),
    squadSession: db.prepare("UPDATE squads SET copilot_session_id = ?, updated_at = ? WHERE slug = ?"),
    touch: db.prepare("UPDATE squads SET updated_at = ? WHERE slug = ?"),
    sessions: db.prepare(`
      SELECT copilot_session_id AS id FROM squads WHERE slug = :slug AND copilot_session_id IS NOT NULL
      UNION SELECT session_id FROM agent_tasks WHERE squad_slug = :slug AND session_id IS NOT NULL
      UNION SELECT id FROM sessions WHERE owner = :owner OR substr(owner, 1, length(:owner) + 1) = :owner || '/'`),
    retire: db.prepare("UPDATE sessions SET retired_at = coalesce(retired_at, ?) WHERE id = ?"),
    leftovers: db.prepare(`
      SELECT id FROM sessions WHERE retired_at IS NOT NULL AND substr(owner, 1, 6) = 'squad:'
      AND NOT EXISTS (SELECT 1 FROM squads WHERE sessions.owner = 'squad:' || slug
        OR substr(sessions.owner, 1, length(slug) + 7) = 'squad:' || slug || '/') ORDER BY id`),
    forget: db.prepare("DELETE FROM sessions WHERE id = ?"),
    deleteCalls: db.prepare("DELETE FROM tool_calls WHERE owner IN (SELECT id FROM agent_tasks WHERE squad_slug = ?)"),
    deleteSquad: db.prepare("DELETE FROM squads WHERE slug = ?"),
    agents: db.prepare("SELECT * FROM squad_agents WHERE squad_slug = ? ORDER BY id LIMIT ?"),
    agent: db.prepare(
      "SELECT * FROM squad_agents WHERE squad_slug = ? AND character_name = ? COLLATE NOCASE ORDER BY id LIMIT 1",
    ),
    insertAgent: db.prepare(
      `INSERT INTO squad_agents (squad_slug, character_name, role_title, charter, model_tier, created_at)
       VALUES (?, ?, ?, ?, ?, ?) RETURNING *`,
    ),
    deleteAgent: db.prepare("DELETE FROM squad_agents WHERE squad_slug = ? AND character_name = ?"),
    agentStatus: db.prepare("UPDATE squad_agents SET status = ? WHERE squad_slug = ? AND character_name = ?"),
    insertDecision: db.prepare(
      "INSERT INTO squad_decisions (squad_slug, decision, context, author, created_at) VALUES (?, ?, ?, ?, ?) RETURNING *",
    ),
    decisions: db.prepare(
      "SELECT * FROM squad_decisions WHERE squad_slug = :slug AND (:before IS NULL OR id < :before) ORDER BY id DESC LIMIT :limit",
    ),
    insertTask: db.prepare(
      `INSERT INTO agent_tasks (id, squad_slug, agent, description, status, origin, reason, model, created_at)
       VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?)`,
    ),
    updateTask: db.prepare(
      `UPDATE agent_tasks SET status = ?, result = ?, error = ?, evidence = ?, reason = ?, model = ?, session_id = ?,
       prompt_id = ?, attempts = ?, delivered = ?, started_at = ?, finished_at = ? WHERE id = ?`,
    ),
    accepted: db.prepare("UPDATE agent_tasks SET prompt_id = ? WHERE id = ?"),
    task: db.prepare(`${TASK} WHERE t.id = ?`),
    tasks: db.prepare(`${TASK} WHERE (:squad IS NULL OR t.squad_slug = :squad) AND (:agent IS NULL OR t.agent = :agent)
      AND (:status IS NULL OR t.status = :status)
      AND (:before IS NULL OR t.seq < (SELECT seq FROM agent_tasks WHERE id = :before)) ORDER BY t.seq DESC LIMIT :limit`),
    open: db.prepare(
      `${TASK} WHERE t.status IN ('queued','running') AND (:squad IS NULL OR t.squad_slug = :squad) ORDER BY t.seq`,
    ),
    heads: db.prepare(
      `SELECT id, agent, status, description FROM agent_tasks
       WHERE squad_slug = ? AND status IN ('queued','running') ORDER BY seq`,
    ),
    next: db.prepare(
      `${TASK} WHERE t.squad_slug = ? AND t.agent = ? AND t.status IN ('queued','running') ORDER BY t.seq LIMIT 1`,
    ),
    during: db.prepare(
      `SELECT id FROM agent_tasks WHERE squad_slug = ? AND started_at IS NOT NULL AND (finished_at IS NULL OR finished_at > ?)
       ORDER BY seq`,
    ),
    counts: db.prepare(
      `SELECT count(*) AS "all", count(*) FILTER (WHERE status = 'queued') AS queued,
       count(*) FILTER (WHERE status = 'running') AS running FROM agent_tasks`,
    ),
    undelivered: db.prepare(`${TASK} WHERE t.status IN ('done','failed','cancelled') AND t.delivered = 0 ORDER BY t.seq`),
  };
  const one = (row: unknown) => row as Row | undefined;
  const many = (rows: unknown[]) => rows as Row[];
  const findTask = (id: string) => optional(one(sql.task.get(id)), toTask);
  const listDecisions = (slug: string, { limit = 50, before }: DecisionPage = {}) =>
    many(sql.decisions.all({ slug, limit, before: before ?? null })).map(toDecision);

  return {
    create: ({ slug, name, projectPath, universe }) =>
      store.transaction(() => {
        if (sql.squadBySlug.get(slug)) throw conflict(`A squad is already called "${slug}". Choose another slug.`);
        const same = one(sql.squadByPath.get(projectPath));
        if (same) throw conflict(`The squad "${same.slug}" already works on ${projectPath}.`);
        return toSquad(one(sql.insertSquad.get(slug, name, projectPath, universe, time(), time()))!);
      }),
    find: (slug) => optional(one(sql.squadBySlug.get(slug)), toSquad),
    findByPath: (projectPath) => optional(one(sql.squadByPath.get(projectPath)), toSquad),
    list: () => many(sql.squads.all()).map(toSquad),
    setStatus: (slug, status) => void sql.squadStatus.run(status, time(), slug),
    sessionOf: (slug) => textOrNull(one(sql.squadBySlug.get(slug))?.copilot_session_id) ?? undefined,
    setSession: (slug, sessionId) => void sql.squadSession.run(sessionId ?? null, time(), slug),
    delete: (slug) =>
      store.transaction(() => {
        if (!sql.squadBySlug.get(slug)) return { deleted: false, sessions: [] };
        const sessions = many(sql.sessions.all({ slug, owner: squadOwner(slug) })).map((row) => String(row.id));
        for (const id of sessions) sql.retire.run(time(), id);
        sql.deleteCalls.run(slug);
        sql.deleteSquad.run(slug);
        return { deleted: true, sessions };
      }),
    leftoverSessions: () => many(sql.leftovers.all()).map((row) => String(row.id)),
    forgetSession: (id) => void sql.forget.run(id),

    addAgent: (slug, { characterName, roleTitle, charter, modelTier }) =>
      store.transaction(() => {
        const agent = toAgent(one(sql.insertAgent.get(slug, characterName, roleTitle, charter, modelTier, time()))!);
        sql.touch.run(time(), slug);
        return agent;
      }),
    removeAgent: (slug, characterName) =>
      store.transaction(() => {
        sql.touch.run(time(), slug);
        return Number(sql.deleteAgent.run(slug, characterName).changes) > 0;
      }),
    agents: (slug, limit = -1) => many(sql.agents.all(slug, limit)).map(toAgent),
    findAgent: (slug, characterName) => optional(one(sql.agent.get(slug, characterName)), toAgent),
    setAgentStatus: (slug, characterName, status) => void sql.agentStatus.run(status, slug, characterName),

    addDecision: (slug, { decision, context, author }) =>
      toDecision(one(sql.insertDecision.get(slug, decision, context ?? null, author ?? null, time()))!),
    lastDecisions: (slug, count) => listDecisions(slug, { limit: count }).reverse(),
    listDecisions,
    searchDecisions: (slug, text, { limit = 50, before } = {}) => {
      const holds = holding(text);
      const found = listDecisions(slug, { limit: -1, before }).filter(({ decision, context }) =>
        holds(`${decision}\n${context ?? ""}`),
      );
      return found.slice(0, limit);
    },

    insertTask: ({ id, squad, agent, description, origin, reason, model }) => {
      sql.insertTask.run(id, squad, agent, description, json(origin ?? null), reason ?? null, model ?? null, time());
      return findTask(id)!;
    },
    updateTask: (id, change) =>
      store.transaction(() => {
        const before = findTask(id);
        if (!before) return undefined;
        const task = { ...before, ...change };
        sql.updateTask.run(
          task.status,
          task.result,
          json(task.error),
          json(task.evidence),
          task.reason,
          task.model,
          task.sessionId,
          task.promptId,
          task.attempts,
          task.delivered ? 1 : 0,
          task.startedAt,
          task.finishedAt,
          id,
        );
        return findTask(id);
      }),
    accepted: (id, promptId) => void sql.accepted.run(promptId, id),
    findTask,
    listTasks: ({ squad, agent, status, limit = 100, before } = {}) => {
      const filter = { squad: squad ?? null, agent: agent ?? null, status: status ?? null, before: before ?? null, limit };
      return many(sql.tasks.all(filter)).map(toTask);
    },
    openTasks: (squad) => many(sql.open.all({ squad: squad ?? null })).map(toTask),
    openHeads: (squad) =>
      many(sql.heads.all(squad)).map(({ id, agent, status, description }) => ({
        id: String(id),
        agent: String(agent),
        isRunning: status === "running",
        description: String(description),
      })),
    nextTask: (squad, agent) => optional(one(sql.next.get(squad, agent)), toTask),
    tasksDuring: (squad, from) => many(sql.during.all(squad, from)).map((row) => String(row.id)),
    taskCounts: () => {
      const row = one(sql.counts.get());
      return { queued: Number(row?.queued ?? 0), running: Number(row?.running ?? 0), all: Number(row?.all ?? 0) };
    },
    undeliveredTasks: () => many(sql.undelivered.all()).map(toTask),
  };
}

/** Whether a text holds what is sought as it stands, or each of its words as the beginning of a word. */
function holding(sought: string): (text: string) => boolean {
  const simplified = (text: string) => text.normalize("NFC").toLowerCase().trim();
  const words = simplified(sought)
    .split(/\s+/)
    .map((word) => new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "u"));
  return (text) => {
    const folded = simplified(text);
    return folded.includes(simplified(sought)) || words.every((word) => word.test(folded));
  };
}

/** The owner under which a squad's sessions are kept; an agent's is this, a slash and the character's name. */
export function squadOwner(slug: string, characterName?: string): string {
  return characterName === undefined ? `squad:${slug}` : `squad:${slug}/${characterName}`;
}

const optional = <T>(row: Row | undefined, to: (row: Row) => T) => (row === undefined ? undefined : to(row));
const textOrNull = (value: string | number | null | undefined) => (value === null || value === undefined ? null : String(value));
const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = <T>(schema: z.ZodType<T>, value: string | number | null | undefined): T | null =>
  typeof value === "string" ? schema.parse(JSON.parse(value)) : null;

function toSquad(row: Row): Squad {
  return Squad.parse({
    slug: row.slug,
    name: row.name,
    projectPath: row.project_path,
    universe: row.universe,
    status: row.status,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  });
}

function toAgent(row: Row): Agent {
  return Agent.parse({
    characterName: row.character_name,
    roleTitle: row.role_title,
    charter: row.charter,
    modelTier: row.model_tier,
    status: row.status,
    createdAt: row.created_at,
  });
}

function toDecision(row: Row): Decision {
  return Decision.parse({
    id: row.id,
    squad: row.squad_slug,
    decision: row.decision,
    context: row.context,
    author: row.author,
    createdAt: row.created_at,
  });
}

function toTask(row: Row): TaskRecord {
  const task = Task.parse({
    id: row.id,
    squad: row.squad_slug,
    agent: row.agent,
    description: row.description,
    status: row.status,
    result: row.result,
    error: parsed(Failure, row.error),
    evidence: parsed(TaskEvidence, row.evidence),
    origin: parsed(Origin, row.origin),
    reason: row.reason,
    model: row.model,
    attempts: row.attempts,
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
  return {
    ...task,
    seq: Number(row.seq),
    sessionId: textOrNull(row.session_id),
    promptId: textOrNull(row.prompt_id),
    delivered: row.delivered === 1,
  };
}
