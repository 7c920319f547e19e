import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";

/** A listing is cached only if the folder has been unchanged this long, because file system clocks are coarse. */
const SETTLED_MS = 100;

/** The names in a folder; empty if it cannot be listed. */
export type FolderNames = (folder: string) => Promise<readonly string[]>;

/** Lists folders off the main thread, and caches the listing until the folder changes. */
export function createFolderNames(): FolderNames {
  const kept = new Map<string, { stamp: string; names: readonly string[] }>();
  return async (folder) => {
    try {
      const { dev, ino, mtimeNs, ctimeNs, ctimeMs } = statSync(folder, { bigint: true });
      const stamp = [dev, ino, mtimeNs, ctimeNs].join(" ");
      const known = kept.get(folder);
      if (known?.stamp === stamp) return known.names;
      const isSettled = Date.now() - Number(ctimeMs) > SETTLED_MS;
      const names = await readdir(folder);
      if (isSettled) kept.set(folder, { stamp, names });
      else kept.delete(folder);
      return names;
    } catch {
      return [];
    }
  };
}
