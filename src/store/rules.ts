import type { Rule } from "../protocol/rules.ts";
import type { Store } from "./open.ts";

/** The user's standing rules. */
export function createRuleRows({ db }: Store) {
  const columns = "SELECT id, text, conversation, origin, created_at AS createdAt FROM rules";
  const all = db.prepare(`${columns} ORDER BY seq`);
  const one = db.prepare(`${columns} WHERE id = ?`);
  const same = db.prepare(`${columns} WHERE text = ? AND coalesce(conversation, '') = coalesce(?, '')`);
  const insert = db.prepare("INSERT INTO rules (id, text, conversation, origin, created_at) VALUES (?, ?, ?, ?, ?)");
  const remove = db.prepare("DELETE FROM rules WHERE id = ?");
  return {
    list: (): Rule[] => all.all() as unknown as Rule[],
    find: (id: string) => one.get(id) as Rule | undefined,
    same: (text: string, conversation: string | null) => same.get(text, conversation) as Rule | undefined,
    add: ({ id, text, conversation, origin, createdAt }: Rule) => void insert.run(id, text, conversation, origin, createdAt),
    remove: (id: string) => void remove.run(id),
  };
}
export type RuleRows = ReturnType<typeof createRuleRows>;
