import { existsSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";

/** The folders beside a `bin` folder that its programs need, where showing its whole parent would be too much. */
const COMPANIONS: Record<string, readonly string[]> = {
  ".local": ["lib", "share/pipx", "share/uv"],
  ".cargo": ["../.rustup"],
  go: ["pkg"],
};

/** PATH folders, such as those of nvm or pyenv, that a workspace does not show by default. */
export function toolchains(path: string, { userHome, shown }: { userHome: string; shown: readonly string[] }): string[] {
  const folders = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && existsSync(folder))
    .map((folder) => realOf(folder))
    .filter((folder) => !shown.some((place) => isWithin(place, folder)));
  return [...new Set(folders.flatMap(neededBy))].filter((folder) => !isWithin(folder, userHome) && existsSync(folder));

  function neededBy(folder: string): string[] {
    const above = dirname(folder);
    const companions = COMPANIONS[basename(above)];
    if (companions) return [folder, ...companions.map((name) => join(above, name))];
    const isWhole = /^(?:s?bin|shims)$/.test(basename(folder)) && above !== "/" && !isWithin(above, userHome);
    return [isWhole ? above : folder];
  }
}
