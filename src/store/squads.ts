import { z } from "zod";
import { SquadSafety } from "../home/safety-config.ts";
import { conflict } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { Agent, Isolation, type ModelTier, Squad, UniverseName, type WorkStatus } from "../protocol/squads.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";
import { createDecisionTable, type DecisionTable } from "./squad-decisions.ts";
import { createTaskTable, type TaskTable } from "./tasks.ts";

export type { DecisionPage } from "./squad-decisions.ts";
export type { NewTask, OpenHead, TaskChange, TaskRecord } from "./tasks.ts";

export interface NewSquadRow {
  slug: string;
  name: string;
  projectPath: string;
  universe: UniverseName;
}

export interface NewAgentRow {
  characterName: string;
  roleTitle: string;
  charter: string;
  modelTier: ModelTier;
}

/** Squads, agents, decisions and tasks in the database. */
export interface SquadStore extends DecisionTable, TaskTable {
  create(squad: NewSquadRow): Squad;
  find(slug: string): Squad | undefined;
  findByPath(projectPath: string): Squad | undefined;
  list(): Squad[];
  setSafety(slug: string, safety: SquadSafety): void;
  setIsolation(slug: string, isolation: Isolation): void;
  setChecks(slug: string, checks: readonly string[] | null): void;
  setPath(slug: string, projectPath: string): void;
  setStatus(slug: string, status: WorkStatus): void;
  sessionOf(slug: string): string | undefined;
  setSession(slug: string, sessionId: string | undefined): void;
  /** Deletes a squad and everything it owns; returns the ids of its sessions on disk. */
  delete(slug: string): { deleted: boolean; sessions: string[] };
  /** Sessions of deleted squads that a crash left on disk. */
  leftoverSessions(): string[];
  /** Call once a leftover session is deleted from disk. */
  forgetSession(id: string): void;

  addAgent(slug: string, agent: NewAgentRow): Agent;
  removeAgent(slug: string, characterName: string): boolean;
  /** In the order in which they joined. */
  agents(slug: string, limit?: number): Agent[];
  /** Finds an agent by name, ignoring case. */
  findAgent(slug: string, characterName: string): Agent | undefined;
  setAgentStatus(slug: string, characterName: string, status: WorkStatus): void;
}

type Row = Record<string, string | number | null>;

export function createSquadStore(store: Store, now: () => Date = () => new Date()): SquadStore {
  const time = () => now().toISOString();
  return {
    ...squadRows(store, time),
    ...leftSessions(store, time),
    ...agentRows(store, time),
    ...createDecisionTable(store, now),
    ...createTaskTable(store, now),
  };
}

function squadRows(store: Store, time: () => string) {
  const { db } = store;
  const bySlug = db.prepare("SELECT * FROM squads WHERE slug = ?");
  const byPath = db.prepare("SELECT * FROM squads WHERE project_path = ?");
  const all = db.prepare("SELECT * FROM squads ORDER BY slug");
  const insert = db.prepare(
    "INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING *",
  );
  const status = db.prepare("UPDATE squads SET status = ?, updated_at = ? WHERE slug = ?");
  const safety = db.prepare("UPDATE squads SET safety = ?, updated_at = ? WHERE slug = ?");
  const isolation = db.prepare("UPDATE squads SET isolation = ?, updated_at = ? WHERE slug = ?");
  const checks = db.prepare("UPDATE squads SET checks = ?, updated_at = ? WHERE slug = ?");
  const path = db.prepare("UPDATE squads SET project_path = ?, updated_at = ? WHERE slug = ?");
  const session = db.prepare("UPDATE squads SET copilot_session_id = ?, updated_at = ? WHERE slug = ?");
  return {
    create: ({ slug, name, projectPath, universe }: NewSquadRow): Squad =>
      store.transaction(() => {
        if (bySlug.get(slug)) throw conflict(`A squad is already called "${slug}". Choose another slug.`);
        const same = byPath.get(projectPath) as Row | undefined;
        if (same) throw conflict(`The squad "${same.slug}" already works on ${projectPath}.`);
        return toSquad(insert.get(slug, name, projectPath, universe, time(), time()) as Row);
      }),
    find: (slug: string) => optional(bySlug.get(slug), toSquad),
    findByPath: (projectPath: string) => optional(byPath.get(projectPath), toSquad),
    list: () => (all.all() as Row[]).map(toSquad),
    setSafety: (slug: string, own: SquadSafety) => void safety.run(JSON.stringify(own), time(), slug),
    setIsolation: (slug: string, to: Isolation) => void isolation.run(to, time(), slug),
    setChecks: (slug: string, to: readonly string[] | null) => void checks.run(to && JSON.stringify(to), time(), slug),
    setPath: (slug: string, projectPath: string) => void path.run(projectPath, time(), slug),
    setStatus: (slug: string, to: WorkStatus) => void status.run(to, time(), slug),
    sessionOf(slug: string) {
      const id = (bySlug.get(slug) as Row | undefined)?.copilot_session_id ?? undefined;
      return id === undefined ? undefined : String(id);
    },
    setSession: (slug: string, sessionId: string | undefined) => void session.run(sessionId ?? null, time(), slug),
  };
}

/** Deletes a squad; returns the sessions that it leaves on disk. */
function leftSessions(store: Store, time: () => string) {
  const { db } = store;
  const exists = db.prepare("SELECT 1 FROM squads WHERE slug = ?");
  const sessionsOf = db.prepare(`
    SELECT copilot_session_id AS id FROM squads WHERE slug = :slug AND copilot_session_id IS NOT NULL
    UNION SELECT session_id FROM agent_tasks WHERE squad_slug = :slug AND session_id IS NOT NULL
    UNION SELECT id FROM sessions WHERE owner = :owner OR substr(owner, 1, length(:owner) + 1) = :owner || '/'`);
  const retire = db.prepare("UPDATE sessions SET retired_at = coalesce(retired_at, ?) WHERE id = ?");
  const deleteCalls = db.prepare("DELETE FROM tool_calls WHERE owner IN (SELECT id FROM agent_tasks WHERE squad_slug = ?)");
  const remove = db.prepare("DELETE FROM squads WHERE slug = ?");
  const leftovers = db.prepare(`
    SELECT id FROM sessions WHERE retired_at IS NOT NULL AND substr(owner, 1, 6) = 'squad:'
    AND NOT EXISTS (SELECT 1 FROM squads WHERE sessions.owner = 'squad:' || slug
      OR substr(sessions.owner, 1, length(slug) + 7) = 'squad:' || slug || '/') ORDER BY id`);
  const forget = db.prepare("DELETE FROM sessions WHERE id = ?");
  return {
    delete: (slug: string) =>
      store.transaction(() => {
        if (!exists.get(slug)) return { deleted: false, sessions: [] };
        const sessions = idsIn(sessionsOf.all({ slug, owner: squadOwner(slug) }));
        for (const id of sessions) retire.run(time(), id);
        deleteCalls.run(slug);
        remove.run(slug);
        return { deleted: true, sessions };
      }),
    leftoverSessions: () => idsIn(leftovers.all()),
    forgetSession: (id: string) => void forget.run(id),
  };
}

function agentRows(store: Store, time: () => string) {
  const { db } = store;
  const all = db.prepare("SELECT * FROM squad_agents WHERE squad_slug = ? ORDER BY id LIMIT ?");
  const one = db.prepare(
    "SELECT * FROM squad_agents WHERE squad_slug = ? AND character_name = ? COLLATE NOCASE ORDER BY id LIMIT 1",
  );
  const insert = db.prepare(
    `INSERT INTO squad_agents (squad_slug, character_name, role_title, charter, model_tier, created_at)
     VALUES (?, ?, ?, ?, ?, ?) RETURNING *`,
  );
  const remove = db.prepare("DELETE FROM squad_agents WHERE squad_slug = ? AND character_name = ?");
  const status = db.prepare("UPDATE squad_agents SET status = ? WHERE squad_slug = ? AND character_name = ?");
  const touch = db.prepare("UPDATE squads SET updated_at = ? WHERE slug = ?");
  return {
    addAgent: (slug: string, { characterName, roleTitle, charter, modelTier }: NewAgentRow): Agent =>
      store.transaction(() => {
        const agent = toAgent(insert.get(slug, characterName, roleTitle, charter, modelTier, time()) as Row);
        touch.run(time(), slug);
        return agent;
      }),
    removeAgent: (slug: string, characterName: string) =>
      store.transaction(() => {
        touch.run(time(), slug);
        return Number(remove.run(slug, characterName).changes) > 0;
      }),
    agents: (slug: string, limit = -1) => (all.all(slug, limit) as Row[]).map(toAgent),
    findAgent: (slug: string, characterName: string) => optional(one.get(slug, characterName), toAgent),
    setAgentStatus: (slug: string, characterName: string, to: WorkStatus) => void status.run(to, slug, characterName),
  };
}

/** The owner of a squad's sessions; an agent's is this, a slash and its character name. */
export function squadOwner(slug: string, characterName?: string): string {
  return characterName === undefined ? `squad:${slug}` : `squad:${slug}/${characterName}`;
}

const optional = <T>(row: unknown, to: (row: Row) => T) => (row === undefined ? undefined : to(row as Row));
const idsIn = (rows: unknown[]) => (rows as { id: string }[]).map(({ id }) => id);

/** Unreadable settings were meant to restrict a squad, so it gets the strictest ones. */
const STRICTEST: SquadSafety = { sandbox: "workspace", approvals: "effects" };

function toSquad(row: Row): Squad {
  return Squad.parse({
    slug: row.slug,
    name: row.name,
    projectPath: row.project_path,
    universe: UniverseName.catch("a-team").parse(row.universe),
    status: row.status,
    safety: readJson(SquadSafety, String(row.safety)) ?? STRICTEST,
    isolation: Isolation.catch("none").parse(row.isolation),
    checks: row.checks === null ? null : (readJson(z.array(z.string()), String(row.checks)) ?? null),
    missing: !isFolder(String(row.project_path)),
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
