import { Approval, type ApprovalScope, type ApprovalState, ScopeOffer } from "../protocol/approvals.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** An approval with its internal fields. */
export interface ApprovalRecord extends Approval {
  seq: number;
  /** The hash of exactly what was asked. */
  hash: string;
  /** The folder for a rule with scope `project`. */
  project: string | null;
  /** Whether its call was started, or its answer no longer counts. */
  used: boolean;
}

export type NewApproval = Pick<
  ApprovalRecord,
  "id" | "kind" | "owner" | "actor" | "tool" | "hash" | "summary" | "project" | "scopes" | "createdAt" | "expiresAt"
> &
  Partial<Pick<ApprovalRecord, "command" | "path" | "diff" | "cwd" | "treeHash" | "reason" | "rule">>;

/** How an approval ended. */
export interface ApprovalEnd {
  state: Exclude<ApprovalState, "waiting">;
  at: string;
  scope?: ApprovalScope;
  decidedBy?: string;
  note?: string | undefined;
}

/** Pending and decided approvals. */
export interface ApprovalTable {
  /** On disk when this returns. */
  insert(approval: NewApproval): ApprovalRecord;
  find(id: string): ApprovalRecord | undefined;
  /** The approvals for exactly this call that may still be used: waiting, decided but unused, denied or expired. Oldest first. */
  standing(hash: string): ApprovalRecord[];
  /** Approvals for the same call with other files or folders: waiting, or allowed but unused. */
  elsewhere(hash: string): ApprovalRecord[];
  /** Decides a waiting approval; false if it was already decided. */
  end(id: string, end: ApprovalEnd): boolean;
  use(id: string): void;
  /** Stops an owner's expired approvals from counting, so that it may ask again. */
  forgetExpired(ownerId: string): void;
  /** Newest first. With `before`, an approval's id, only older ones. */
  list(filter?: { state?: ApprovalState | undefined; limit?: number; before?: string | undefined }): ApprovalRecord[];
  /** Waiting approvals, oldest first. */
  waiting(): ApprovalRecord[];
  waitingCount(): number;
  /** The ids of waiting approvals whose deadline has passed. */
  overdue(at: string): string[];
  /** The ids of an owner's waiting approvals. */
  waitingFor(ownerId: string): string[];
  /** The ids of waiting approvals whose work has ended or is gone. */
  orphans(): string[];
}

type Row = Record<string, string | number | null>;

/** Except pull requests: finished work may still wait for an answer about one. */
const OWNER_ENDED = `NOT EXISTS (SELECT 1 FROM pulls p WHERE p.owner_id = approvals.owner_id AND p.state = 'waiting'
    AND approvals.tool = 'pull_request') AND CASE owner_kind
  WHEN 'message' THEN NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = owner_id AND m.status IN ('queued','running'))
  WHEN 'task' THEN NOT EXISTS (SELECT 1 FROM agent_tasks t WHERE t.id = owner_id AND t.status IN ('queued','running'))
  WHEN 'schedule' THEN NOT EXISTS (SELECT 1 FROM occurrences o WHERE o.schedule = owner_id AND o.state = 'waiting')
  ELSE EXISTS (SELECT 1 FROM runs r WHERE r.id = owner_id AND r.status <> 'running') END`;

export function createApprovalTable(store: Store): ApprovalTable {
  const { db } = store;
  const insert =
    db.prepare(`INSERT INTO approvals (id, kind, owner_kind, owner_id, conversation, squad, actor, tool, hash, summary,
    command, path, diff, cwd, tree_hash, reason, rule, project, scopes, state, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?)`);
  const find = db.prepare("SELECT * FROM approvals WHERE id = ?");
  const standing = db.prepare(
    "SELECT * FROM approvals WHERE hash = ? AND (used = 0 OR state = 'denied') AND state <> 'withdrawn' ORDER BY seq",
  );
  const elsewhere = db.prepare(
    "SELECT * FROM approvals WHERE (hash = :call OR (hash > :call || '.' AND hash < :call || '/')) AND hash <> :hash AND used = 0 AND state IN ('waiting', 'allowed')",
  );
  const end = db.prepare(
    "UPDATE approvals SET state = ?, scope = ?, decided_by = ?, note = ?, decided_at = ? WHERE id = ? AND state = 'waiting'",
  );
  const use = db.prepare("UPDATE approvals SET used = 1 WHERE id = ?");
  const forgetExpired = db.prepare("UPDATE approvals SET used = 1 WHERE owner_id = ? AND state = 'expired' AND used = 0");
  const list = (where: string) =>
    db.prepare(`SELECT * FROM approvals WHERE ${where} AND seq < coalesce((SELECT seq FROM approvals WHERE id = :before), 9e15)
      ORDER BY seq DESC LIMIT :limit`);
  const all = list("1");
  const inState = list("state = :state");
  const waiting = db.prepare("SELECT * FROM approvals WHERE state = 'waiting' ORDER BY seq");
  const count = db.prepare("SELECT COUNT(*) AS count FROM approvals WHERE state = 'waiting'");
  const overdue = db.prepare("SELECT id FROM approvals WHERE state = 'waiting' AND expires_at <= ?");
  const waitingFor = db.prepare("SELECT id FROM approvals WHERE owner_id = ? AND state = 'waiting'");
  const orphans = db.prepare(`SELECT id FROM approvals WHERE state = 'waiting' AND ${OWNER_ENDED}`);
  const about = {
    message: db.prepare("SELECT conversation, NULL AS squad FROM messages WHERE id = ?"),
    task: db.prepare("SELECT origin ->> 'conversation' AS conversation, squad_slug AS squad FROM agent_tasks WHERE id = ?"),
    run: db.prepare("SELECT conversation, squad FROM runs WHERE id = ?"),
    schedule: db.prepare("SELECT conversation, squad FROM schedules WHERE id = ?"),
  };
  const ids = (rows: unknown[]) => (rows as { id: string }[]).map(({ id }) => id);
  const records = (rows: unknown[]) => (rows as Row[]).map(recordOf);

  return {
    insert(given) {
      const { owner } = given;
      const { conversation = null, squad = null } = (about[owner.kind].get(owner.id) ?? {}) as Partial<
        Record<string, string | null>
      >;
      const { id, kind, actor, tool, hash, summary, command = null, path = null, diff = null, cwd = null } = given;
      const { treeHash = null, reason = null, rule = null, project, scopes, createdAt, expiresAt } = given;
      insert.run(
        ...[id, kind, owner.kind, owner.id, conversation, squad, actor, tool, hash, summary],
        ...[command, path, diff, cwd, treeHash, reason, rule, project, JSON.stringify(scopes), createdAt, expiresAt],
      );
      return recordOf(find.get(id) as Row);
    },
    find(id) {
      const row = find.get(id) as Row | undefined;
      return row && recordOf(row);
    },
    standing: (hash) => records(standing.all(hash)),
    elsewhere: (hash) => records(elsewhere.all({ hash, call: hash.split(".", 1)[0]! })),
    end: (id, { state, scope, decidedBy, note, at }) =>
      Number(end.run(state, scope ?? null, decidedBy ?? null, note ?? null, at, id).changes) > 0,
    use: (id) => void use.run(id),
    forgetExpired: (ownerId) => void forgetExpired.run(ownerId),
    list: ({ state, limit = 50, before = "" } = {}) =>
      records(state ? inState.all({ state, limit, before }) : all.all({ limit, before })),
    waiting: () => records(waiting.all()),
    waitingCount: () => (count.get() as { count: number }).count,
    overdue: (at) => ids(overdue.all(at)),
    waitingFor: (ownerId) => ids(waitingFor.all(ownerId)),
    orphans: () => ids(orphans.all()),
  };
}

function recordOf(row: Row): ApprovalRecord {
  const { seq, hash, project, used } = row;
  const shown = Approval.parse({
    ...row,
    owner: { kind: row.owner_kind, id: row.owner_id },
    treeHash: row.tree_hash,
    scopes: readJson(ScopeOffer.array(), String(row.scopes)) ?? [],
    decidedBy: row.decided_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    decidedAt: row.decided_at,
  });
  return { ...shown, seq: Number(seq), hash: String(hash), project: project === null ? null : String(project), used: used === 1 };
}
