import { lstatSync, type Stats } from "node:fs";
import { codeOf } from "./errors.ts";

/**
 * lstat, or undefined if nothing is there or it is unknown: a parent is a file, links form a loop, a folder is
 * unreadable, a disk is gone.
 */
export function statsAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
