import { Decision } from "../protocol/squads.ts";
import type { Store } from "./open.ts";

export interface DecisionPage {
  limit?: number | undefined;
  before?: number | undefined;
}

/** Squads' decisions. */
export interface DecisionTable {
  addDecision(slug: string, decision: { decision: string; context?: string | undefined; author?: string | undefined }): Decision;
  /** The last `count` decisions, oldest of them first. */
  lastDecisions(slug: string, count: number): Decision[];
  /** Newest first. With `before`, a decision's id, only older ones. */
  listDecisions(slug: string, page?: DecisionPage): Decision[];
  /** The same, filtered by words in any order, or by the exact phrase, in text or context. */
  searchDecisions(slug: string, text: string, page?: DecisionPage): Decision[];
}

type Row = Record<string, string | number | null>;

export function createDecisionTable({ db }: Store, now: () => Date): DecisionTable {
  const insert = db.prepare(
    "INSERT INTO squad_decisions (squad_slug, decision, context, author, created_at) VALUES (?, ?, ?, ?, ?) RETURNING *",
  );
  const newest = db.prepare(
    "SELECT * FROM squad_decisions WHERE squad_slug = :slug AND (:before IS NULL OR id < :before) ORDER BY id DESC LIMIT :limit",
  );
  const listDecisions = (slug: string, { limit = 50, before }: DecisionPage = {}) =>
    (newest.all({ slug, limit, before: before ?? null }) as Row[]).map(toDecision);
  return {
    addDecision: (slug, { decision, context, author }) =>
      toDecision(insert.get(slug, decision, context ?? null, author ?? null, now().toISOString()) as Row),
    lastDecisions: (slug, count) => listDecisions(slug, { limit: count }).reverse(),
    listDecisions,
    searchDecisions: (slug, text, { limit = 50, before } = {}) => {
      const holds = containing(text);
      const found = listDecisions(slug, { limit: -1, before }).filter(({ decision, context }) =>
        holds(`${decision}\n${context ?? ""}`),
      );
      return found.slice(0, limit);
    },
  };
}

/** Matches texts that contain the exact phrase, or each of its words as the start of a word. */
function containing(sought: string): (text: string) => boolean {
  const simplified = (text: string) => text.normalize("NFC").toLowerCase().trim();
  const words = simplified(sought)
    .split(/\s+/)
    .map((word) => new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "u"));
  return (text) => {
    const folded = simplified(text);
    return folded.includes(simplified(sought)) || words.every((word) => word.test(folded));
  };
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
