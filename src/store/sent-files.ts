import { rmdirSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt, entriesOf, statsOf } from "../lib/pinned/list.ts";
import { removeFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import type { Store } from "./open.ts";

export interface SentFilesDeps {
  store: Store;
  /** Their location: one folder per conversation. */
  folder: string;
  now?: () => Date;
}

/** A file is stored before the message that refers to it. */
const FRESH_MS = 86_400_000;

/** Files that people sent, kept as long as a message refers to them. */
export function createSentFiles({ store, folder, now = () => new Date() }: SentFilesDeps) {
  const telling = store.db.prepare("SELECT text FROM messages WHERE conversation = ? AND instr(text, ?) > 0");

  function removeUntoldIn(conversation: string): number {
    // The data folder may have moved since a message recorded an absolute path.
    const place = `/files/${conversation}/`;
    const texts = (telling.all(conversation, place) as { text: string }[]).map(({ text }) => text);
    const before = now().getTime() - FRESH_MS;
    return withFolder(join(realOf(folder), conversation), (held) => {
      const untold = entriesOf(held)
        .filter((entry) => !entry.isDirectory())
        .map(({ name }) => name)
        .filter((name) => !texts.some((text) => text.includes(place + name)))
        .filter((name) => Number(statsOf(held, name)?.mtimeMs ?? 0) < before);
      return untold.filter((name) => removeFile(held, name)).length;
    });
  }

  /** Kept if it is not empty. */
  function removeEmpty(conversation: string): void {
    try {
      withFolder(realOf(folder), (held) => rmdirSync(held.entry(conversation)));
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(error) ?? "")) throw error;
    }
  }

  return {
    /** Deletes files that no message refers to any more; returns how many. */
    removeUntold(): number {
      let removed = 0;
      for (const { name } of entriesAt(realOf(folder)).filter((entry) => entry.isDirectory())) {
        const gone = removeUntoldIn(name);
        if (gone > 0) removeEmpty(name);
        removed += gone;
      }
      return removed;
    },
  };
}
