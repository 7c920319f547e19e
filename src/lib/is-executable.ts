import { accessSync, constants, statSync } from "node:fs";

/** Whether we may execute the file at this path. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // It does not exist, or we have no permission.
    return false;
  }
}
