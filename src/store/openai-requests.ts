import type { Store } from "./open.ts";

/** What an OpenAI client asked, beside the message it became. */
export interface OpenAiRequest {
  messageId: string;
  /** The same for the same request again. */
  fingerprint: string;
  /** Of everything said up to and with this message, as the client tells it. */
  said: string;
  /** The client's own instructions. */
  system: string;
}

/** The requests of OpenAI clients. They go when their messages do. */
export function createOpenAiRequests(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare("INSERT INTO openai_requests (message_id, fingerprint, said, system) VALUES (?, ?, ?, ?)");
  const newest = (column: string) =>
    db.prepare(`SELECT message_id AS id FROM openai_requests JOIN messages ON messages.id = message_id
      WHERE ${column} = ? ORDER BY messages.seq DESC LIMIT 1`);
  const byFingerprint = newest("fingerprint");
  const bySaid = newest("said");
  const answered = db.prepare("UPDATE openai_requests SET answered_at = ? WHERE message_id = ?");
  const one = db.prepare("SELECT system, answered_at AS answeredAt FROM openai_requests WHERE message_id = ?");
  const find = (id: string) => one.get(id) as { system: string; answeredAt: string | null } | undefined;
  const idIn = (row: unknown) => (row as { id: string } | undefined)?.id;
  return {
    add: ({ messageId, fingerprint, said, system }: OpenAiRequest) => void insert.run(messageId, fingerprint, said, system),
    /** The latest message of the same request. */
    sameAs: (fingerprint: string): string | undefined => idIn(byFingerprint.get(fingerprint)),
    /** The latest message with which exactly this was said. */
    endingWith: (said: string): string | undefined => idIn(bySaid.get(said)),
    /** A client has the whole answer. */
    answered: (id: string) => void store.soft(() => answered.run(now().toISOString(), id)),
    isAnswered: (id: string): boolean => find(id)?.answeredAt != null,
    systemOf: (id: string): string => find(id)?.system ?? "",
  };
}
export type OpenAiRequests = ReturnType<typeof createOpenAiRequests>;
