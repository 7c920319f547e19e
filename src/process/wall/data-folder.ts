import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import type { Grant } from "./profile.ts";

/** A file in the empty folder that replaces the data folder; identifies sandboxed processes from outside. */
export const MARK = ".behind-the-wall";

/** The parts of the data folder that commands see besides their own worktree. Everything else is hidden. */
export function shownInside(home: string): Grant[] {
  return [
    { path: join(home, "wiki", "pages"), write: true },
    { path: join(home, "wiki", "sources"), write: false },
    { path: join(home, "skills"), write: false },
    { path: sentFiles(home), write: false },
  ];
}

/** Files that people sent, which commands may be asked to read. */
export const sentFiles = (home: string): string => join(home, "files");

/** Mounts an empty folder over the data folder. */
export function cover(home: string): string[] {
  return ["--tmpfs", home, "--dir", join(home, MARK)];
}

/** Makes that empty folder read-only, once everything visible is mounted in it. */
export function seal(home: string): string[] {
  return ["--remount-ro", home];
}

/** Mounts something empty over the other paths at which the data folder is reachable. */
export function hideOthers(places: readonly string[]): string[] {
  return places
    .filter((place) => existsSync(place))
    .flatMap((place) =>
      lstatSync(place).isDirectory() ? ["--tmpfs", place, "--remount-ro", place] : ["--ro-bind", "/dev/null", place],
    );
}
