import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { isWithin } from "../../lib/within.ts";
import type { Grant } from "./profile.ts";

/**
 * The parents of hidden or read-only paths that a command could rename, so that the next command would find the content
 * unprotected elsewhere. A mount point cannot be renamed, so each becomes one.
 */
export function anchors(paths: readonly string[], frozen: readonly Grant[]): Grant[] {
  const above = new Set(paths.flatMap(ancestors));
  return [...above]
    .filter((folder) => !frozen.some(({ path }) => isWithin(path, folder)) && isWritable(dirname(folder)))
    .map((path) => ({ path, write: true }));
}

/** All parents of a path except the root. */
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
