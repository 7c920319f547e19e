import { Failure, type Message, type MessageStatus, Route, Source } from "../protocol/messages.ts";
import type { Usage } from "../protocol/usage.ts";
import { createAttachmentRows } from "./attachments.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";
import { createSteerRows } from "./steers.ts";
import type { UsageLog } from "./usage.ts";
import { createWaits } from "./waits.ts";

interface Row {
  seq: number;
  id: string;
  conversation: string;
  source: string;
  text: string;
  status: MessageStatus;
  reply: string | null;
  partial: number;
  error: string | null;
  route: string | null;
  attempts: number;
  session_id: string | null;
  prompt_id: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface NewRow {
  id: string;
  conversation: string;
  source: Source;
  text: string;
  idempotencyKey?: string | undefined;
  /** Ids of files. */
  attachments?: readonly string[] | undefined;
}

export interface Finish {
  status: "done" | "failed" | "cancelled";
  reply: string | null;
  partial: boolean;
  error: Failure | null;
  route: Route;
}

/** A message to process, with the state from earlier attempts. */
export interface Work {
  message: Message;
  /** Set if an earlier attempt started it. */
  begun?: { sessionId: string | null; promptId: string | null };
}

export const NO_ROUTE: Route = { answered: "not yet", tools: [], tasks: [], runs: [] };
/** Shown for a row that another version of IO wrote. */
const UNKNOWN_SOURCE: Source = { channel: "api" };
const UNKNOWN_FAILURE: Failure = { code: "unreadable", message: "why it failed was written by another version of IO." };

/** The durable queue and the record of every message. */
export function createMessages(store: Store, usage: UsageLog, now: () => Date = () => new Date()) {
  const { db } = store;
  const steers = createSteerRows(store, now);
  const files = createAttachmentRows(store);
  const insert = db.prepare(
    "INSERT INTO messages (id, conversation, source, text, status, idempotency_key, created_at) VALUES (?, ?, ?, ?, 'queued', ?, ?)",
  );
  const byId = db.prepare("SELECT * FROM messages WHERE id = ?");
  const byKey = db.prepare("SELECT * FROM messages WHERE idempotency_key = ?");
  // The planner would otherwise use the index of all messages and scan every finished one.
  const unfinished = "FROM messages INDEXED BY messages_waiting WHERE status IN ('queued','running')";
  const oldest = db.prepare(`SELECT * ${unfinished} AND conversation = ? ORDER BY seq LIMIT 1`);
  const waiting = db.prepare(`SELECT DISTINCT conversation ${unfinished}`);
  const start = db.prepare(
    "UPDATE messages SET status = 'running', attempts = attempts + 1, session_id = ?, started_at = COALESCE(started_at, ?) WHERE id = ? AND status IN ('queued','running')",
  );
  const accepted = db.prepare("UPDATE messages SET prompt_id = ? WHERE id = ?");
  const finish = db.prepare(
    "UPDATE messages SET status = ?, reply = ?, partial = ?, error = ?, route = ?, finished_at = ? WHERE id = ? AND status IN ('queued','running')",
  );
  const rewrite = db.prepare("UPDATE messages SET text = ? WHERE id = ? AND status = 'queued'");
  const list = db.prepare("SELECT * FROM messages WHERE conversation = ? AND seq < ? ORDER BY seq DESC LIMIT ?");
  const seqOf = db.prepare("SELECT seq FROM messages WHERE id = ?");
  const counts = db.prepare("SELECT status, count FROM counts WHERE what = 'message'");
  const open = db.prepare(`SELECT * ${unfinished} ORDER BY seq`);
  const waits = createWaits(store);
  const held = ({ id, conversation, status }: Row) => {
    const waitsFor = status === "running" ? waits({ id, conversation, squad: null }) : undefined;
    return waitsFor && { waitsFor };
  };
  const toMessage = (row: Row): Message => ({
    id: row.id,
    conversation: row.conversation,
    source: readJson(Source, row.source) ?? UNKNOWN_SOURCE,
    text: row.text,
    attachments: files.of(row.id),
    steered: steers.of(row.id).map(({ text, createdAt }) => ({ text, createdAt })),
    status: row.status,
    ...held(row),
    reply: row.reply,
    partial: row.partial === 1,
    error: row.error === null ? null : (readJson(Failure, row.error) ?? UNKNOWN_FAILURE),
    route: readJson(Route, row.route) ?? NO_ROUTE,
    attempts: row.attempts,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    usage: usage.of(row.id) satisfies Usage,
  });
  const found = (row: unknown): Message | undefined => (row === undefined ? undefined : toMessage(row as Row));

  return {
    /** Stores a message. A repeated idempotency key returns the first message. */
    add({ id, conversation, source, text, idempotencyKey, attachments = [] }: NewRow): { message: Message; isNew: boolean } {
      return store.transaction(() => {
        const earlier = idempotencyKey === undefined ? undefined : found(byKey.get(idempotencyKey));
        if (earlier) return { message: earlier, isNew: false };
        insert.run(id, conversation, JSON.stringify(source), text, idempotencyKey ?? null, now().toISOString());
        files.attach(id, attachments);
        return { message: toMessage(byId.get(id) as unknown as Row), isNew: true };
      });
    },
    find: (id: string) => found(byId.get(id)),
    findByKey: (idempotencyKey: string) => found(byKey.get(idempotencyKey)),
    /** A conversation's next message: the oldest unfinished one. */
    next(conversation: string): Work | undefined {
      const row = oldest.get(conversation) as Row | undefined;
      if (!row) return undefined;
      const begun = row.status === "running" ? { sessionId: row.session_id, promptId: row.prompt_id } : undefined;
      return { message: toMessage(row), ...(begun && { begun }) };
    },
    conversationsWaiting: () => (waiting.all() as { conversation: string }[]).map((row) => row.conversation),
    start: (id: string, sessionId: string) => void start.run(sessionId, now().toISOString(), id),
    /** Replaces the text of a waiting message; false if it no longer waits. */
    rewrite: (id: string, text: string): boolean => Number(rewrite.run(text, id).changes) > 0,
    accepted: (id: string, promptId: string) => void accepted.run(promptId, id),
    finish: (id: string, end: Finish): boolean =>
      Number(
        finish.run(
          end.status,
          end.reply,
          end.partial ? 1 : 0,
          end.error && JSON.stringify(end.error),
          JSON.stringify(end.route),
          now().toISOString(),
          id,
        ).changes,
      ) > 0,
    /** Newest first, before a given message. */
    list(conversation: string, limit: number, before?: string): Message[] {
      const seq = before === undefined ? Number.MAX_SAFE_INTEGER : ((seqOf.get(before) as { seq: number } | undefined)?.seq ?? 0);
      return (list.all(conversation, seq, limit) as unknown as Row[]).map(toMessage);
    },
    open: () => (open.all() as unknown as Row[]).map(toMessage),
    counts(): Record<MessageStatus, number> {
      const zero = { queued: 0, running: 0, done: 0, failed: 0, cancelled: 0 };
      for (const { status, count } of counts.all() as { status: MessageStatus; count: number }[]) zero[status] = count;
      return zero;
    },
  };
}
export type Messages = ReturnType<typeof createMessages>;
