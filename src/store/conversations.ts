import { NewsFilter } from "../home/news-config.ts";
import { Mode } from "../home/safety-config.ts";
import { oneLine } from "../lib/quoted.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Store } from "./open.ts";
import { createWaits } from "./waits.ts";

const TITLE_LETTERS = 60;

interface Row {
  name: string;
  title: string | null;
  opening: string | null;
  folder: string | null;
  mode: string | null;
  model: string | null;
  news: string | null;
  lastMessageAt: string | null;
  unread: number;
  running: number;
  unfinished: number;
  messages: number;
}

/** The user's settings of a conversation; null means the default. */
export type ConversationSettings = Pick<ConversationInfo, "folder" | "title" | "mode" | "model"> & { news: NewsFilter | null };

export interface ConversationQuery {
  limit: number;
  /** The conversation after which the page begins. */
  before?: string | undefined;
  folder?: string | undefined;
  /** Matches the name, title or folder. */
  words?: string | undefined;
}

/** The conversations, with their settings and state. */
export function createConversationRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const columns = `SELECT name, title, opening, folder, mode, model, news, last_message_at AS lastMessageAt, unread, running,
    waiting AS unfinished, messages FROM conversations`;
  const byName = db.prepare(`${columns} WHERE name = ?`);
  const listed = db.prepare(`${columns}
    WHERE (:before IS NULL OR (last_at, name) < (SELECT last_at, name FROM conversations WHERE name = :before))
    AND (:folder IS NULL OR folder = :folder)
    AND (:words IS NULL OR name LIKE :words ESCAPE '\\' OR coalesce(title, opening) LIKE :words ESCAPE '\\'
      OR folder LIKE :words ESCAPE '\\')
    ORDER BY last_at DESC, name DESC LIMIT :limit`);
  const first = db.prepare(`${columns} WHERE folder = ? ORDER BY created_at, name LIMIT 1`);
  const lastIn = db.prepare(`${columns} WHERE folder = ? ORDER BY last_at DESC, name DESC LIMIT 1`);
  const lastOutside = db.prepare(`${columns} WHERE folder IS NULL ORDER BY last_at DESC, name DESC LIMIT 1`);
  const upsert =
    db.prepare(`INSERT INTO conversations (name, messages, waiting, last_at, created_at, folder, title, mode, model, news)
    VALUES (:name, 0, 0, :now, :now, :folder, :title, :mode, :model, :news)
    ON CONFLICT (name) DO UPDATE SET folder = excluded.folder, title = excluded.title, mode = excluded.mode, model = excluded.model,
    news = excluded.news`);
  const answered = db.prepare("UPDATE conversations SET unread = unread + 1 WHERE name = ?");
  const seen = db.prepare("UPDATE conversations SET unread = 0 WHERE name = ? AND unread > 0");

  const atWork = db.prepare(
    "SELECT id FROM messages INDEXED BY messages_waiting WHERE status IN ('queued','running') AND status = 'running' AND conversation = ?",
  );
  const waits = createWaits(store);
  const heldIn = ({ name, running }: Pick<Row, "name" | "running">) => {
    const message = running > 0 ? (atWork.get(name) as { id: string } | undefined) : undefined;
    const waitsFor = message && waits({ id: message.id, conversation: name, squad: null });
    return waitsFor && { waitsFor };
  };

  const infoOf = ({ opening, unfinished, news, ...row }: Row): ConversationInfo => ({
    ...row,
    title: row.title ?? (opening === null ? null : oneLine(opening, TITLE_LETTERS) || null),
    // Another version of IO may have had other modes.
    mode: Mode.nullable().catch(null).parse(row.mode),
    ...(isFilter(news) && { news }),
    ...heldIn(row),
    waiting: unfinished - row.running,
  });
  const isFilter = (news: string | null): news is NewsFilter => NewsFilter.safeParse(news).success;
  const found = (row: unknown): ConversationInfo | undefined => (row === undefined ? undefined : infoOf(row as Row));

  return {
    find: (name: string) => found(byName.get(name)),
    /** Latest first. */
    list: ({ limit, before, folder, words }: ConversationQuery): ConversationInfo[] =>
      (
        listed.all({
          ...{ limit, before: before ?? null, folder: folder ?? null },
          words: words === undefined ? null : `%${words.replace(/[\\%_]/g, "\\$&")}%`,
        }) as unknown as Row[]
      ).map(infoOf),
    /** A project's conversation: the first that was given its folder. */
    ofFolder: (folder: string) => found(first.get(folder)),
    /** The last one used in a folder, or of those without one. */
    lastUsed: (folder: string | undefined) => found(folder === undefined ? lastOutside.get() : lastIn.get(folder)),
    /** Changes the given settings, creating the conversation if it is missing. */
    change(
      name: string,
      changes: { [Key in keyof ConversationSettings]?: ConversationSettings[Key] | undefined },
    ): ConversationInfo {
      return store.transaction(() => {
        const row = byName.get(name) as Row | undefined;
        const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
        const none = { folder: null, title: null, mode: null, model: null, news: null };
        const { folder, title, mode, model, news } = { ...none, ...row, ...given };
        upsert.run({ name, now: now().toISOString(), folder, title, mode, model, news });
        return infoOf(byName.get(name) as unknown as Row);
      });
    },
    /** Counts an answer that nobody has seen yet. */
    answered: (name: string) => void answered.run(name),
    /** Marks all answers as seen; false if they were already. */
    seen: (name: string): boolean => Number(seen.run(name).changes) > 0,
  };
}
export type ConversationRows = ReturnType<typeof createConversationRows>;
