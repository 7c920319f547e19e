/** State of the Telegram channel. */
export const TELEGRAM_MIGRATION = {
  name: "0017-telegram",
  sql: `
    CREATE TABLE telegram_updates (
      bot INTEGER NOT NULL,
      id INTEGER NOT NULL,
      lane TEXT NOT NULL,
      body TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('waiting','done')),
      created_at TEXT NOT NULL,
      PRIMARY KEY (bot, id)
    ) WITHOUT ROWID;
    CREATE INDEX telegram_updates_waiting ON telegram_updates (lane, id) WHERE state = 'waiting';
    CREATE TABLE telegram_sends (
      key TEXT NOT NULL,
      part TEXT NOT NULL,
      chat INTEGER NOT NULL,
      thread INTEGER,
      message_id INTEGER,
      shown TEXT NOT NULL,
      repeated INTEGER NOT NULL DEFAULT 0,
      created_at TEXT NOT NULL,
      PRIMARY KEY (key, part)
    ) WITHOUT ROWID;
    CREATE TABLE telegram_codes (
      code TEXT PRIMARY KEY,
      user_id INTEGER NOT NULL UNIQUE,
      name TEXT NOT NULL,
      expires_at TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE telegram_strangers (
      user_id INTEGER PRIMARY KEY,
      count INTEGER NOT NULL,
      last_at TEXT NOT NULL
    );
    CREATE TABLE telegram_chats (
      chat INTEGER PRIMARY KEY,
      conversation TEXT NOT NULL
    );
  `,
};
