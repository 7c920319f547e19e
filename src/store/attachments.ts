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
  /** Where everything lies that people sent. */
  folder: string;
  now?: () => Date;
}

/** Uploads lie here, each in a folder of its own name; no conversation can have this name. */
const UPLOADS = "_uploads";
/** Ids of copies of files that a message named. */
const NAMED = "n";
export const isNamedFile = (id: string): boolean => id.startsWith(`${NAMED}_`);
/** A file is there before the message that it comes with. */
const FRESH_MS = 86_400_000;
const MAX_BYTES = 20 * 1024 * 1024;

/** A file that somebody sent, as a row. */
interface FileRow extends Attachment {
  /** Below the folder of all files. */
  path: string;
}

/** The rows alone, for whoever tells of messages. */
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

/** Files that people send along: on disk before they are named, and kept for as long as a message has them. */
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

  /** The row goes last: what a crash leaves is taken away by the next sweep. */
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
    /** Takes a file that is not on disk yet. On disk, and known, when this returns. */
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
    /** Makes a file that a channel has put into the folder of all files an attachment. */
    adopt: (path: string, bytes: Uint8Array): Attachment => keep(newId("f"), basename(path), relative(folder, path), bytes),
    find: rowOf,
    /** The file's path as tools know it. */
    pathOf: ({ path }: FileRow): string => join(realOf(folder), path),
    /** The bytes; undefined if they are gone, or something else is in their place. */
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
    /** The files of a conversation; call the answer once its messages are gone. */
    ofConversation(conversation: string): { removeUntold(): void } {
      const ids = (ofConversation.all(conversation) as { id: string }[]).map(({ id }) => id);
      return {
        removeUntold() {
          for (const row of ids.flatMap((id) => rowOf(id) ?? [])) if (isTold.get(row.id) === undefined) remove(row);
        },
      };
    },
    /** Takes away what no message has; tells how much that was. */
    removeUntold(): number {
      const before = new Date(now().getTime() - FRESH_MS).toISOString();
      const rows = (untold.all(before) as { id: string }[]).flatMap(({ id }) => rowOf(id) ?? []);
      for (const row of rows) remove(row);
      return rows.length + removeLeftovers();
    },
  };

  /** Uploads that were cut off before they were known. */
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

/** When an id was made; anything else is as old as can be. */
function bornIn(id: string): number {
  const told = /^[fn]_([0-9a-z]{9})/.exec(id)?.[1];
  return told === undefined ? 0 : Number.parseInt(told, 36);
}
