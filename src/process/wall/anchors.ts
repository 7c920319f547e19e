import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { isWithin } from "../../lib/within.ts";
import type { Grant } from "./stand.ts";

/**
 * The folders above what is to stay covered or unwritten that a command could rename, so that the next one would find it
 * uncovered elsewhere. As mounts of their own they cannot be.
 */
export function anchors(paths: readonly string[], frozen: readonly Grant[]): Grant[] {
  const above = new Set(paths.flatMap(ancestors));
  return [...above]
    .filter((folder) => !frozen.some(({ path }) => isWithin(path, folder)) && isWritable(dirname(folder)))
    .map((path) => ({ path, write: true }));
}

/** Every folder above a path but the root. */
function ancestors(path: string): string[] {
  const above = dirname(path);
  return dirname(above) === above ? [] : [above, ...ancestors(above)];
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
