import { KeptRule } from "../protocol/approvals.ts";
import type { Store } from "./open.ts";

export type NewRule = Omit<KeptRule, "createdAt">;

/** What people allowed for a whole task or a whole project. */
export interface RuleTable {
  /** The same rule twice is one. */
  add(rule: NewRule, at: string): void;
  /** Newest first. */
  list(): KeptRule[];
  /** The rules for a tool that hold for an owner or in a project. */
  holding(of: { ownerId: string; project: string; tool: string }): KeptRule[];
  /** The rule that went; undefined if there was none. */
  forget(id: string): KeptRule | undefined;
  has(id: string): boolean;
  /** Takes away what was allowed to an owner that has ended. */
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
      // Most owners have none, and a look does not wait for a writer.
      if (any.get(ownerId)) removeFor.run(ownerId);
    },
  };
}
