import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt, statsOf } from "../lib/pinned/list.ts";
import { removeFile } from "../lib/pinned/write.ts";

const TEMPORARY = /^\..+\.[0-9a-f]{12}\.tmp$/;
/** A younger file may belong to a writer that is still running. */
const OLD_MS = 60_000;

/** Removes temporary files that killed writers left in the wiki. */
export async function removeLeftovers({ root, pages, sources }: Record<"root" | "pages" | "sources", string>): Promise<void> {
  const old = BigInt(Date.now() - OLD_MS);
  const folders = [root, sources, pages];
  for (const path of folders) {
    for (const item of entriesAt(path)) {
      if (item.isDirectory() && path !== root && !item.name.startsWith(".")) folders.push(join(path, item.name));
      if (!item.isFile() || !TEMPORARY.test(item.name)) continue;
      withFolder(path, (folder) => {
        if ((statsOf(folder, item.name)?.mtimeMs ?? old) < old) removeFile(folder, item.name);
      });
    }
    await turn();
  }
}
