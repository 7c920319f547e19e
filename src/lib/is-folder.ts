import { statSync } from "node:fs";

/** Whether a folder exists and is accessible. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, or behind an inaccessible folder: unusable either way.
    return false;
  }
}
