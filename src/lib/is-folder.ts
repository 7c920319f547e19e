import { statSync } from "node:fs";

/** Whether a folder is there, and may be looked at. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Gone, or behind a folder that is closed to us: no use either way.
    return false;
  }
}
