import type { MessageHit } from "../protocol/messages.ts";
import type { Store } from "./open.ts";

/** How many of the latest messages are looked through: what is older is rarely looked for, and reading it would hold others up. */
const LOOKED_THROUGH = 5_000;
const AROUND = 60;

/** Finds what was said, in a message or in its answer, the latest first. */
export function createMessageSearch({ db }: Store) {
  const select = db.prepare(
    `SELECT id, conversation, text, reply, created_at AS createdAt FROM messages
     WHERE seq > (SELECT coalesce(max(seq), 0) - ?1 FROM messages) AND (text LIKE ?2 ESCAPE '\\' OR reply LIKE ?2 ESCAPE '\\')
     ORDER BY seq DESC LIMIT ?3`,
  );
  return (words: string, limit: number): MessageHit[] => {
    const like = `%${words.replace(/[\\%_]/g, "\\$&")}%`;
    const rows = select.all(LOOKED_THROUGH, like, limit) as unknown as (Omit<MessageHit, "snippet"> & Said)[];
    return rows.map(({ text, reply, ...hit }) => ({
      ...hit,
      snippet: around(text, words) ?? around(reply ?? "", words) ?? text.slice(0, AROUND * 2),
    }));
  };
}
export type MessageSearch = ReturnType<typeof createMessageSearch>;

interface Said {
  text: string;
  reply: string | null;
}

function around(text: string, words: string): string | undefined {
  const at = text.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return undefined;
  const from = Math.max(0, at - AROUND);
  const to = at + words.length + AROUND;
  return `${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`.replace(/\s+/g, " ");
}
