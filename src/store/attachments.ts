import { rmdirSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { fileTypeOf } from "../lib/file-type.ts";
import { newId } from "../lib/ids.ts";
import { makeFolder, openBelow, withFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { readPlain } from "../lib/pinned/read.ts";
import { removeFile, replaceFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import { safeName } from "../lib/safe-name.ts";
import type { Attachment } from "../protocol/messages.ts";
import type { Store } from "./open.ts";

export interface AttachmentsDeps {
  store: Store;
  /** The folder of all attachments. */
  folder: string;
  now?: () => Date;
}

/** The folder for uploads, each in its own subfolder. No conversation can have this name. */
const UPLOADS = "_uploads";
/** Ids of copied files that a message mentioned. */
const NAMED = "n";
export const isNamedFile = (id: string): boolean => id.startsWith(`${NAMED}_`);
/** A file is stored before its message, so young files without one are kept. */
const FRESH_MS = 86_400_000;
const MAX_BYTES = 20 * 1024 * 1024;

/** An attachment's row. */
interface FileRow extends Attachment {
  /** Relative to the folder of all attachments. */
  path: string;
}

/** Only the rows, for lists of messages. */
export function createAttachmentRows({ db }: Pick<Store, "db">) {
  const ofMessage = db.prepare(
    "SELECT id, name, type, size FROM message_files JOIN files ON files.id = file_id WHERE message_id = ? ORDER BY position",
  );
  const attach = db.prepare("INSERT INTO message_files (message_id, position, file_id) VALUES (?, ?, ?)");
  return {
    of: (messageId: string) => (ofMessage.all(messageId) as unknown as Attachment[]).map((each) => ({ ...each })),
    attach: (messageId: string, ids: readonly string[]) =>
      ids.forEach((id, position) => {
        attach.run(messageId, position, id);
      }),
  };
}

/** Stores attachments on disk before any message refers to them, and keeps them as long as one does. */
export function createAttachments({ store, folder, now = () => new Date() }: AttachmentsDeps) {
  const { db } = store;
  const insert = db.prepare("INSERT INTO files (id, name, type, size, path, created_at) VALUES (?, ?, ?, ?, ?, ?)");
  const byId = db.prepare("SELECT id, name, type, size, path FROM files WHERE id = ?");
  const ofConversation = db.prepare(
    "SELECT DISTINCT file_id AS id FROM messages JOIN message_files ON message_id = messages.id WHERE conversation = ?",
  );
  const isTold = db.prepare("SELECT 1 FROM message_files WHERE file_id = ? LIMIT 1");
  const untold = db.prepare(
    "SELECT id FROM files WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM message_files WHERE file_id = files.id)",
  );
  const sharing = db.prepare("SELECT 1 FROM files WHERE path = ? AND id <> ? LIMIT 1");
  const forget = db.prepare("DELETE FROM files WHERE id = ?");

  const rowOf = (id: string): FileRow | undefined => byId.get(id) as FileRow | undefined;
  const keep = (id: string, name: string, path: string, bytes: Uint8Array): Attachment => {
    const attachment = { id, name, type: fileTypeOf(bytes), size: bytes.length };
    store.transaction(() => insert.run(id, name, attachment.type, bytes.length, path, now().toISOString()));
    return attachment;
  };

  /** Deletes the row last, so that the next sweep cleans up after a crash. */
  function remove({ id, path }: FileRow): void {
    if (sharing.get(path, id) === undefined) {
      const held = openBelow(folder, dirname(path));
      if (held) removeFile(held, basename(path));
      held?.close();
      if (path.startsWith(UPLOADS + sep)) removeFolder(id);
    }
    store.transaction(() => forget.run(id));
  }

  function removeFolder(id: string): void {
    try {
      withFolder(join(realOf(folder), UPLOADS), (held) => rmdirSync(held.entry(id)));
    } catch (error) {
      if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(codeOf(error) ?? "")) throw error;
    }
  }

  return {
    /** Stores a new file; on disk, with its row, when this returns. */
    add(name: string, bytes: Uint8Array, how: "sent" | "named" = "sent"): Attachment {
      const id = newId(how === "named" ? NAMED : "f");
      const own = safeName(name);
      const place = makeFolder(join(realOf(folder), UPLOADS, id));
      try {
        replaceFile(place, own, bytes);
      } finally {
        place.close();
      }
      return keep(id, own, join(UPLOADS, id, own), bytes);
    },
    /** Registers a file that a channel stored in the attachments folder. */
    adopt: (path: string, bytes: Uint8Array): Attachment => keep(newId("f"), basename(path), relative(folder, path), bytes),
    find: rowOf,
    /** The file's path for tools. */
    pathOf: ({ path }: FileRow): string => join(realOf(folder), path),
    /** The content; undefined if the file is missing or was replaced. */
    read(id: string): Buffer | undefined {
      const row = rowOf(id);
      const held = row && openBelow(folder, dirname(row.path));
      if (!row || !held) return undefined;
      try {
        const found = readPlain(held, basename(row.path), MAX_BYTES);
        return "bytes" in found ? found.bytes : undefined;
      } finally {
        held.close();
      }
    },
    /** Collects a conversation's files. Call `removeUntold` after deleting its messages, to delete files that no message has. */
    ofConversation(conversation: string): { removeUntold(): void } {
      const ids = (ofConversation.all(conversation) as { id: string }[]).map(({ id }) => id);
      return {
        removeUntold() {
          for (const row of ids.flatMap((id) => rowOf(id) ?? [])) if (isTold.get(row.id) === undefined) remove(row);
        },
      };
    },
    /** Deletes files without a message; returns how many. */
    removeUntold(): number {
      const before = new Date(now().getTime() - FRESH_MS).toISOString();
      const rows = (untold.all(before) as { id: string }[]).flatMap(({ id }) => rowOf(id) ?? []);
      for (const row of rows) remove(row);
      return rows.length + removeLeftovers();
    },
  };

  /** Interrupted uploads, which have no row. */
  function removeLeftovers(): number {
    const uploads = join(realOf(folder), UPLOADS);
    const before = now().getTime() - FRESH_MS;
    const lost = entriesAt(uploads).filter(({ name }) => rowOf(name) === undefined && bornIn(name) < before);
    for (const { name } of lost) {
      const held = openBelow(uploads, name);
      for (const entry of entriesAt(join(uploads, name))) if (held) removeFile(held, entry.name);
      held?.close();
      removeFolder(name);
    }
    return lost.length;
  }
}
export type Attachments = ReturnType<typeof createAttachments>;

/** The creation time in an id; anything else counts as infinitely old. */
function bornIn(id: string): number {
  const told = /^[fn]_([0-9a-z]{9})/.exec(id)?.[1];
  return told === undefined ? 0 : Number.parseInt(told, 36);
}
