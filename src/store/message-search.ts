import { createBreath } from "../lib/breath.ts";
import type { Database, Store } from "./open.ts";

/** A match in a message or task. */
export interface SaidHit {
  kind: "message" | "task";
  id: string;
  conversation: string | null;
  /** Whether the user said it, or IO or the agent who answered. */
  by: "asked" | "answered";
  createdAt: string;
  snippet: string;
}

export interface SaidQuery {
  query: string;
  conversation?: string | undefined;
  limit: number;
  /** Excludes one message or task, such as the one that searches. */
  except?: string;
  /** Searches tasks too. */
  tasks?: boolean;
}

const AROUND = 100;
const MOST_WORDS = 8;
/** The rows per step, adjusted so that a step takes a few milliseconds. */
const FIRST_ROWS = 50;
const MOST_ROWS = 2_000;
const SLOW_MS = 8;

/**
 * Searches messages, latest first: the exact phrase, else all its words in one message. Scans the rows a few at a time, about
 * a millisecond per thousand messages. A substring index would cost more than that per message, and several times the space.
 */
export function createMessageSearch({ db }: Pick<Store, "db">) {
  return async ({ query, conversation, limit, except = "", tasks = false }: SaidQuery): Promise<SaidHit[]> => {
    const breathe = createBreath();
    const tables = tasks ? [MESSAGES, TASKS] : [MESSAGES];
    const words = query.split(/\s+/).filter(Boolean);
    const tries = words.length > 1 ? [[query], words.slice(0, MOST_WORDS)] : [[query]];
    for (const wanted of tries) {
      const found: SaidHit[] = [];
      for (const table of tables) {
        for await (const row of matching(db, table, { wanted, conversation, breathe })) {
          if (row.id !== except) found.push(hitOf(table.kind, row, wanted));
          if (found.filter(({ kind }) => kind === table.kind).length >= limit) break;
        }
      }
      if (found.length > 0) return found.sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)).slice(0, limit);
    }
    return [];
  };
}
export type MessageSearch = ReturnType<typeof createMessageSearch>;

interface Table {
  kind: SaidHit["kind"];
  name: string;
  /** Maps the columns of each table to common names. */
  columns: string;
  texts: readonly string[];
  conversation: string;
}

const MESSAGES: Table = {
  kind: "message",
  name: "messages",
  columns: `seq, id, conversation, created_at AS createdAt, reply AS answered,
    text || coalesce((SELECT group_concat(char(10) || s.text, '') FROM steers s WHERE s.message_id = messages.id), '') AS asked`,
  texts: ["text", "reply", "(SELECT group_concat(s.text, char(10)) FROM steers s WHERE s.message_id = messages.id)"],
  conversation: "conversation",
};
const TASKS: Table = {
  kind: "task",
  name: "agent_tasks",
  columns: `seq, id, origin ->> 'conversation' AS conversation, created_at AS createdAt, description AS asked, result AS answered`,
  texts: ["description", "result"],
  conversation: "origin ->> 'conversation'",
};

interface Row {
  seq: number;
  id: string;
  conversation: string | null;
  createdAt: string;
  asked: string;
  answered: string | null;
}

interface Wanted {
  wanted: readonly string[];
  conversation: string | undefined;
  breathe: ReturnType<typeof createBreath>;
}

/** The rows that contain all texts, latest first. */
async function* matching(db: Database, table: Table, { wanted, conversation, breathe }: Wanted): AsyncGenerator<Row> {
  const { name, columns, texts } = table;
  const patterns = wanted.map((text) => spellings(text).map((each) => `%${each.replace(/[\\%_]/g, "\\$&")}%`));
  const holds = patterns.map(
    (spelled) => `(${spelled.flatMap(() => texts.map((text) => `${text} LIKE ? ESCAPE '\\'`)).join(" OR ")})`,
  );
  const given = patterns.flatMap((spelled) => spelled.flatMap((pattern) => texts.map(() => pattern)));
  const within = conversation === undefined ? "1" : `${table.conversation} = ?`;
  const where = conversation === undefined ? [] : [conversation];
  const step = db.prepare(
    `SELECT min(seq) AS low FROM (SELECT seq FROM ${name} WHERE ${within} AND seq < ? ORDER BY seq DESC LIMIT ?)`,
  );
  const select = db.prepare(
    `SELECT ${columns} FROM ${name} WHERE ${within} AND seq < ? AND seq >= ? AND ${holds.join(" AND ")} ORDER BY seq DESC`,
  );
  let rows = FIRST_ROWS;
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const started = performance.now();
    const { low } = step.get(...where, before, rows) as { low: number | null };
    if (low === null) return;
    yield* select.all(...where, before, low, ...given) as unknown as Row[];
    before = low;
    rows = performance.now() - started > SLOW_MS ? Math.max(1, Math.floor(rows / 4)) : Math.min(MOST_ROWS, rows * 2);
    await breathe();
  }
}

/** SQLite ignores case only in ASCII. */
function spellings(text: string): string[] {
  if (/^\p{ASCII}*$/u.test(text)) return [text];
  const lower = text.toLowerCase();
  return [...new Set([text, lower, text.toUpperCase(), lower.replace(/^./u, (first) => first.toUpperCase())])];
}

function hitOf(kind: SaidHit["kind"], { id, conversation, createdAt, asked, answered }: Row, wanted: readonly string[]): SaidHit {
  const [first] = wanted;
  const inAsked = around(asked, first!);
  const snippet = inAsked ?? around(answered ?? "", first!) ?? asked.slice(0, AROUND * 2);
  return { kind, id, conversation, createdAt, by: inAsked === undefined ? "answered" : "asked", snippet };
}

function around(text: string, words: string): string | undefined {
  const at = text.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return undefined;
  const from = Math.max(0, at - AROUND);
  const to = at + words.length + AROUND;
  return `${from > 0 ? "…" : ""}${text.slice(from, to).toWellFormed()}${to < text.length ? "…" : ""}`.replace(/\s+/g, " ");
}
