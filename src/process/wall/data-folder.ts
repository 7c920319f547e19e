import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import type { Grant } from "./stand.ts";

/** Lies in the empty folder that stands in for the data folder, so that a process behind the wall can be told from outside. */
export const MARK = ".behind-the-wall";

/** What commands see of the data folder besides a worktree of their own. What is not named here is not there. */
export function shownInside(home: string): Grant[] {
  return [
    { path: join(home, "wiki", "pages"), write: true },
    { path: join(home, "wiki", "sources"), write: false },
    { path: join(home, "skills"), write: false },
    { path: sentFiles(home), write: false },
  ];
}

/** What people sent, which commands may be told to read. */
export const sentFiles = (home: string): string => join(home, "files");

/** Puts an empty folder over the data folder. */
export function cover(home: string): string[] {
  return ["--tmpfs", home, "--dir", join(home, MARK)];
}

/** Closes that empty folder, once everything that is to be seen in it is there. */
export function seal(home: string): string[] {
  return ["--remount-ro", home];
}

/** Puts something empty over the other places at which the data folder can be seen. */
export function hideOthers(places: readonly string[]): string[] {
  return places
    .filter((place) => existsSync(place))
    .flatMap((place) =>
      lstatSync(place).isDirectory() ? ["--tmpfs", place, "--remount-ro", place] : ["--ro-bind", "/dev/null", place],
    );
}
