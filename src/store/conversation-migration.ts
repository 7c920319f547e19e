/** A conversation's settings, its running work, and its number of unseen answers. */
export const CONVERSATION_MIGRATION = {
  name: "0023-conversation-settings",
  sql: `
    ALTER TABLE conversations ADD COLUMN folder TEXT;
    ALTER TABLE conversations ADD COLUMN title TEXT;
    ALTER TABLE conversations ADD COLUMN mode TEXT;
    ALTER TABLE conversations ADD COLUMN model TEXT;
    ALTER TABLE conversations ADD COLUMN opening TEXT;
    ALTER TABLE conversations ADD COLUMN running INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE conversations ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE conversations ADD COLUMN last_message_at TEXT;
    ALTER TABLE conversations ADD COLUMN created_at TEXT NOT NULL DEFAULT '';
    CREATE INDEX conversations_by_folder ON conversations (folder, created_at) WHERE folder IS NOT NULL;
    UPDATE conversations SET last_message_at = last_at,
      created_at = (SELECT created_at FROM messages WHERE conversation = name ORDER BY seq LIMIT 1),
      opening = (SELECT substr(text, 1, 400) FROM messages WHERE conversation = name
        AND source NOT LIKE '{"channel":"background"%' ORDER BY seq LIMIT 1),
      running = (SELECT COUNT(*) FROM messages WHERE conversation = name AND status = 'running');

    DROP TRIGGER message_added;
    CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
      INSERT INTO counts VALUES ('message', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
      INSERT INTO conversations (name, messages, waiting, running, last_at, last_message_at, created_at, opening)
        VALUES (new.conversation, 1, new.status IN ('queued','running'), new.status = 'running', new.created_at, new.created_at,
          new.created_at, iif(new.source LIKE '{"channel":"background"%', NULL, substr(new.text, 1, 400)))
        ON CONFLICT (name) DO UPDATE SET messages = messages + 1, waiting = waiting + excluded.waiting,
          running = running + excluded.running, last_at = MAX(last_at, excluded.last_at),
          last_message_at = MAX(coalesce(last_message_at, ''), excluded.last_message_at),
          opening = coalesce(opening, excluded.opening);
    END;
    DROP TRIGGER message_moved;
    CREATE TRIGGER message_moved AFTER UPDATE OF status ON messages WHEN old.status <> new.status BEGIN
      UPDATE counts SET count = count - 1 WHERE what = 'message' AND status = old.status;
      INSERT INTO counts VALUES ('message', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
      UPDATE conversations SET waiting = waiting + (new.status IN ('queued','running')) - (old.status IN ('queued','running')),
        running = running + (new.status = 'running') - (old.status = 'running') WHERE name = new.conversation;
    END;
    DROP TRIGGER message_removed;
    CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
      UPDATE counts SET count = count - 1 WHERE what = 'message' AND status = old.status;
      UPDATE conversations SET messages = messages - 1, waiting = waiting - (old.status IN ('queued','running')),
        running = running - (old.status = 'running') WHERE name = old.conversation;
      UPDATE conversations SET opening = NULL, unread = 0 WHERE name = old.conversation AND messages = 0;
      DELETE FROM conversations WHERE name = old.conversation AND messages = 0
        AND folder IS NULL AND title IS NULL AND mode IS NULL AND model IS NULL;
    END;
  `,
};
