import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Finds a dependency inside its dependent or beside it, where npm and pnpm install it. Node would also search every parent
 * folder and the user's home, where a command could plant a package.
 */
export function dependencyOf(folder: string, name: string): string | undefined {
  return [join(folder, "node_modules"), siblingsOf(folder)]
    .flatMap((modules) => (modules === undefined ? [] : [join(modules, name)]))
    .find((found) => existsSync(join(found, "package.json")));
}

/** The `node_modules` folder that contains a package; undefined in a checkout. */
function siblingsOf(folder: string): string | undefined {
  for (const above of [dirname(folder), dirname(dirname(folder))]) if (basename(above) === "node_modules") return above;
  return undefined;
}
