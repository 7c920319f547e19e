import type { Store } from "./open.ts";

export interface LogEntry {
  role: "user" | "assistant";
  source: string;
  content: string;
  createdAt: string;
}

const KEEP = 1_000;

/** The last thousand lines of each conversation, with their speakers. */
export function createConversationLog({ db }: Store, now: () => Date = () => new Date()) {
  const insert = db.prepare(
    "INSERT INTO conversation_log (conversation, role, source, content, created_at) VALUES (?, ?, ?, ?, ?)",
  );
  const prune = db.prepare(`DELETE FROM conversation_log WHERE conversation = ?1 AND id <=
    (SELECT id FROM conversation_log WHERE conversation = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${KEEP})`);
  const last = db.prepare(
    "SELECT role, source, content, created_at AS createdAt FROM conversation_log WHERE conversation = ? AND created_at >= ? ORDER BY id DESC LIMIT ?",
  );
  return {
    add(conversation: string, role: LogEntry["role"], source: string, content: string): void {
      insert.run(conversation, role, source, content, now().toISOString());
      prune.run(conversation);
    },
    /** Begins a conversation with what was said elsewhere, oldest first. */
    begin(conversation: string, source: string, said: readonly Pick<LogEntry, "role" | "content">[]): void {
      const at = now().toISOString();
      for (const { role, content } of said.slice(-KEEP)) insert.run(conversation, role, source, content, at);
    },
    /** The last lines of a conversation, oldest first, none older than `since`. */
    last: (conversation: string, limit: number, since = ""): LogEntry[] =>
      (last.all(conversation, since, limit) as unknown as LogEntry[]).reverse(),
  };
}
export type ConversationLog = ReturnType<typeof createConversationLog>;
