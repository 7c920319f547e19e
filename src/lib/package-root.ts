import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the installed package: the folder that contains `bin`, `dist` and `agents`. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)));

/** Built files are nested less deeply than their sources, so the root is searched for. */
function findRoot(folder: string): string {
  if (existsSync(join(folder, "package.json")) || dirname(folder) === folder) return folder;
  return findRoot(dirname(folder));
}
