import { z } from "zod";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** What a request to `/v1/responses` says of its response. */
const ResponseFields = z.object({
  /** The id of the response that it continues. */
  previous: z.string().optional(),
  background: z.boolean(),
  metadata: z.record(z.string(), z.string()),
});
export type ResponseFields = z.infer<typeof ResponseFields>;

/** An OpenAI client's request, in addition to its message. */
export interface OpenAiRequest {
  messageId: string;
  /** Equal for a repeated request. */
  fingerprint: string;
  /** The hash of the client's history up to and including this message. */
  said: string;
  /** The client's own instructions. */
  system: string;
  fields: { [name in keyof ResponseFields]: ResponseFields[name] | undefined };
}

/** How many chats with the same history so far are told apart. */
const MAX_ALIKE = 200;

/** Requests of OpenAI clients; deleted with their messages. */
export function createOpenAiRequests(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare("INSERT INTO openai_requests (message_id, fingerprint, said, system, fields) VALUES (?, ?, ?, ?, ?)");
  const newest = (column: string, most: number) =>
    db.prepare(`SELECT message_id AS id FROM openai_requests JOIN messages ON messages.id = message_id
      WHERE ${column} = ? ORDER BY messages.seq DESC LIMIT ${most}`);
  const byFingerprint = newest("fingerprint", 1);
  const bySaid = newest("said", MAX_ALIKE);
  const answered = db.prepare("UPDATE openai_requests SET answered_at = ? WHERE message_id = ?");
  const one = db.prepare("SELECT system, fields, answered_at AS answeredAt FROM openai_requests WHERE message_id = ?");
  const find = (id: string) => one.get(id) as { system: string; fields: string | null; answeredAt: string | null } | undefined;
  const idIn = (row: unknown) => (row as { id: string } | undefined)?.id;
  return {
    add: ({ messageId, fingerprint, said, system, fields }: OpenAiRequest) =>
      void insert.run(messageId, fingerprint, said, system, JSON.stringify(fields)),
    /** The latest message of the same request. */
    sameAs: (fingerprint: string): string | undefined => idIn(byFingerprint.get(fingerprint)),
    /** The messages with exactly this history, newest first: many chats begin with the same words. */
    endingWith: (said: string): string[] => (bySaid.all(said) as { id: string }[]).map(({ id }) => id),
    /** Records that the client received the whole answer. */
    answered: (id: string) => void store.soft(() => answered.run(now().toISOString(), id)),
    isAnswered: (id: string): boolean => find(id)?.answeredAt != null,
    fieldsOf: (id: string): ResponseFields | undefined => readJson(ResponseFields, find(id)?.fields),
    systemOf: (id: string): string => find(id)?.system ?? "",
  };
}
export type OpenAiRequests = ReturnType<typeof createOpenAiRequests>;
