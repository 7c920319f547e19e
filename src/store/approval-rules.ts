import { KeptRule } from "../protocol/approvals.ts";
import type { Store } from "./open.ts";

export type NewRule = Omit<KeptRule, "createdAt">;

/** Rules that people created by allowing something for a whole task or project. */
export interface RuleTable {
  /** Adding the same rule again has no effect. */
  add(rule: NewRule, at: string): void;
  /** Newest first. */
  list(): KeptRule[];
  /** The rules for a tool that apply to an owner or a project. */
  holding(of: { ownerId: string; project: string; tool: string }): KeptRule[];
  /** Returns the removed rule; undefined if there was none. */
  forget(id: string): KeptRule | undefined;
  has(id: string): boolean;
  /** Deletes the rules of an owner that has ended. */
  forgetOwner(ownerId: string): void;
}

const COLUMNS = "id, scope, place, tool, match, approval, created_at AS createdAt";

export function createRuleTable({ db }: Store): RuleTable {
  const insert = db.prepare(`INSERT INTO approval_rules (id, scope, place, tool, match, approval, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, place, tool, match) DO NOTHING`);
  const list = db.prepare(`SELECT ${COLUMNS} FROM approval_rules ORDER BY seq DESC`);
  const holding = db.prepare(`SELECT ${COLUMNS} FROM approval_rules
    WHERE tool = :tool AND ((scope = 'task' AND place = :ownerId) OR (scope = 'project' AND place = :project)) ORDER BY seq`);
  const find = db.prepare(`SELECT ${COLUMNS} FROM approval_rules WHERE id = ?`);
  const remove = db.prepare("DELETE FROM approval_rules WHERE id = ?");
  const any = db.prepare("SELECT 1 FROM approval_rules WHERE scope = 'task' AND place = ? LIMIT 1");
  const removeFor = db.prepare("DELETE FROM approval_rules WHERE scope = 'task' AND place = ?");
  return {
    add: ({ id, scope, place, tool, match, approval }, at) => void insert.run(id, scope, place, tool, match, approval, at),
    list: () => KeptRule.array().parse(list.all()),
    holding: (of) => KeptRule.array().parse(holding.all(of)),
    forget(id) {
      const row = find.get(id);
      if (row) remove.run(id);
      return row === undefined ? undefined : KeptRule.parse(row);
    },
    has: (id) => find.get(id) !== undefined,
    forgetOwner(ownerId) {
      // Most owners have none: read first, since a read does not wait for a writer.
      if (any.get(ownerId)) removeFor.run(ownerId);
    },
  };
}
