/** Attachments and their messages. */
export const ATTACHMENT_MIGRATION = {
  name: "0034-attachments",
  sql: `
    CREATE TABLE files (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      type TEXT NOT NULL,
      size INTEGER NOT NULL,
      path TEXT NOT NULL,
      created_at TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX files_by_path ON files (path);

    CREATE TABLE message_files (
      message_id TEXT NOT NULL,
      position INTEGER NOT NULL,
      file_id TEXT NOT NULL,
      PRIMARY KEY (message_id, position)
    ) WITHOUT ROWID;
    CREATE INDEX message_files_by_file ON message_files (file_id);

    CREATE TRIGGER message_files_removed AFTER DELETE ON messages BEGIN
      DELETE FROM message_files WHERE message_id = old.id;
    END;
  `,
};
