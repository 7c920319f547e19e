import { utimesSync } from "node:fs";
import { join } from "node:path";
import type { Api } from "grammy";
import { type Folder, makeFolder } from "../../lib/pinned/folder.ts";
import { readPlain } from "../../lib/pinned/read.ts";
import { replaceFile } from "../../lib/pinned/write.ts";
import { realOf } from "../../lib/real-path.ts";
import { withoutEnd } from "../../lib/trim.ts";
import { calling } from "./bot.ts";
import type { Media } from "./media.ts";
import { TelegramTrouble, troubleOf } from "./trouble.ts";

/** The largest file that Telegram lets a bot download. */
export const MAX_BYTES = 20 * 1024 * 1024;

export type Fetched = { path: string; bytes: Uint8Array } | { refused: string };

export interface DownloadsDeps {
  api: Api;
  token: string;
  apiRoot: string;
  /** The folder for the files of all conversations. */
  folder: string;
  signal: AbortSignal;
}

/** Downloads what people send into a folder of their conversation. */
export function createDownloads({ api, token, apiRoot, folder, signal }: DownloadsDeps) {
  async function bytesOf(path: string): Promise<Uint8Array | undefined> {
    const response = await fetch(`${withoutEnd(apiRoot, "/")}/file/bot${token}/${path}`, { signal });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > MAX_BYTES) return undefined;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  return {
    /** Throws if it should be retried. */
    async fetch({ fileId, name, size }: Media, conversation: string): Promise<Fetched> {
      if (size !== undefined && size > MAX_BYTES) return { refused: TOO_LARGE };
      try {
        const { file_path } = await calling("getFile", () => api.getFile(fileId));
        if (file_path === undefined || file_path.startsWith("/")) return { refused: "Telegram did not say where it is." };
        // Errors of fetch contain the address, and with it the token.
        const bytes = await bytesOf(file_path).catch(() => {
          throw new TelegramTrouble("a file", { kind: "unknown", why: "it could not be fetched" });
        });
        if (!bytes) return { refused: TOO_LARGE };
        return { path: place(join(folder, conversation), name, bytes), bytes };
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble?.kind !== "refused" || trouble.code !== 400) throw error;
        return { refused: /too big/i.test(trouble.why) ? TOO_LARGE : "Telegram does not have it any more." };
      }
    },
  };
}
export type Downloads = ReturnType<typeof createDownloads>;

const TOO_LARGE = "it is larger than 20 MB, which is what Telegram lets a bot fetch.";

/** Stores a file under its name, or a numbered one if another file has that name; the same file again is stored once. */
function place(path: string, name: string, bytes: Uint8Array): string {
  const folder = makeFolder(realOf(path));
  try {
    for (let count = 1; ; count += 1) {
      const own = count === 1 ? name : numbered(name, count);
      const there = readPlain(folder, own, MAX_BYTES);
      if ("absent" in there && there.absent === "missing") replaceFile(folder, own, bytes);
      else if ("absent" in there || !there.bytes.equals(bytes)) continue;
      else freshen(folder, own);
      return join(path, own);
    }
  } finally {
    folder.close();
  }
}

/** Touches the file, so that no cleanup deletes it meanwhile. */
function freshen(folder: Folder, name: string): void {
  const now = new Date();
  utimesSync(folder.entry(name), now, now);
}

function numbered(name: string, count: number): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)}-${count}${name.slice(dot)}` : `${name}-${count}`;
}
