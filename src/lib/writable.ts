import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "./errors.ts";
import { fileError } from "./file-errors.ts";

/** The path itself, or its deepest existing parent. */
export function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** Why a folder cannot be written or created; undefined if it can. */
export function obstacleTo(folder: string): string | undefined {
  const there = nearestExisting(folder);
  if (!statSync(there).isDirectory()) return `${there} is a file where a folder is needed. Move that file away.`;
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return fileError(error)?.message ?? messageOf(error);
  }
}
