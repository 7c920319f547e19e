import type { Git } from "../git/command.ts";
import { createBreath } from "../lib/breath.ts";
import { listFiles } from "./files.ts";

/** How long a listing is cached: a person who types asks again with each letter. */
const FRESH_MS = 10_000;
const MOST_FOLDERS = 4;

/** Finds files of a project by a part of their names, the best first; ignored ones are left out. */
export function createNameFinder(git: Git, now: () => number = Date.now) {
  const listings = new Map<string, { at: number; files: Promise<string[]> }>();

  function filesOf(folder: string): Promise<string[]> {
    const known = listings.get(folder);
    if (known && now() - known.at < FRESH_MS) return known.files;
    const files = listFiles(git, folder).then((found) => found.files);
    // A failed listing is not cached.
    files.catch(() => listings.delete(folder));
    listings.delete(folder);
    listings.set(folder, { at: now(), files });
    for (const oldest of [...listings.keys()].slice(0, -MOST_FOLDERS)) listings.delete(oldest);
    return files;
  }

  return async (folder: string, words: string, limit: number): Promise<string[]> => {
    const breathe = createBreath();
    const wanted = words.toLowerCase();
    const ranked: string[][] = [[], [], [], []];
    for (const path of await filesOf(folder)) {
      await breathe();
      ranked[rankOf(path.toLowerCase(), wanted)]?.push(path);
    }
    const inOrder = (paths: string[]) => paths.sort((a, b) => a.length - b.length || (a < b ? -1 : 1)).slice(0, limit);
    return ranked.flatMap(inOrder).slice(0, limit);
  };
}
export type NameFinder = ReturnType<typeof createNameFinder>;

/** How well a path fits: its beginning, the beginning of its name, a part of its name, or any part; -1 if it does not. */
function rankOf(path: string, wanted: string): number {
  if (path.startsWith(wanted)) return 0;
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(wanted)) return 1;
  if (name.includes(wanted)) return 2;
  return path.includes(wanted) ? 3 : -1;
}
