import { chmodSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { codeOf, UserError } from "../lib/errors.ts";
import { type Folder, openFolder, withFolder } from "../lib/pinned/folder.ts";
import { entriesOf, statsOf } from "../lib/pinned/list.ts";
import { exec } from "./exec.ts";

// Linux only: file systems mounted inside a tree are not deleted.
const SAME_DISK = process.platform === "linux" ? ["--one-file-system"] : [];

/**
 * Deletes an entry of a folder, recursively. The folder is given by its real path and held open; `rm` walks by file handles,
 * so a folder that is swapped for a link meanwhile leads nowhere. A missing entry is fine.
 */
export async function removeTree(path: string): Promise<void> {
  const folder = openIfThere(dirname(path));
  if (folder === undefined) return;
  try {
    if (statsOf(folder, basename(path)) === undefined) return;
    const entry = `./${basename(path)}`;
    // The program starts inside the held folder, so its path is not resolved again.
    const run = (program: string, ...options: string[]) =>
      exec(program, [...options, "--", entry], { cwd: `${folder.self}/`, env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } });
    const removed = await run("/bin/rm", "-rf", ...SAME_DISK);
    if (removed.code === 0) return;
    await makeWritable(path);
    const again = await run("/bin/rm", "-rf", ...SAME_DISK);
    if (again.code !== 0) throw new UserError(`${path} could not be deleted: ${again.stderr.trim().slice(-300)}`);
  } finally {
    folder.close();
  }
}

/** Package caches mark their folders read-only. Each is held open while its mode is set: `chmod` would follow a link. */
async function makeWritable(path: string): Promise<void> {
  const waiting = [path];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    try {
      withFolder(at, (folder) => {
        chmodSync(folder.self, (statSync(folder.self).mode & 0o777) | 0o700);
        waiting.push(...entriesOf(folder).flatMap((entry) => (entry.isDirectory() ? [join(folder.path, entry.name)] : [])));
      });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      // Not a folder, now a link, or another user's: the next attempt reports what cannot be deleted.
    }
    await setImmediate();
  }
}

function openIfThere(path: string): Folder | undefined {
  try {
    return openFolder(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
