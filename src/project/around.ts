import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { realOf } from "../lib/real-path.ts";
import { isManifest } from "./manifests/read.ts";
import { isSystemFolder } from "./roots.ts";

/**
 * The project that contains a folder, by its real path: the git checkout around it, or else the nearest folder with a manifest. A
 * home folder kept in git counts only if the folder is that home itself.
 */
export async function projectAround(folder: string): Promise<string | undefined> {
  const start = realOf(folder);
  const home = realOf(homedir());
  const above = pathsUp(start).filter((path) => !isSystemFolder(path) && (path !== home || path === start));
  const checkout = above.find((path) => existsSync(join(path, ".git")));
  if (checkout !== undefined) return checkout;
  for (const path of above) {
    // A folder that is gone or unreadable has no manifest for us.
    const names = await readdir(path).catch(() => []);
    if (names.some(isManifest)) return path;
  }
  return undefined;
}

function pathsUp(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...pathsUp(above)];
}
