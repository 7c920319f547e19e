import { basename } from "node:path";
import { codeOf } from "../lib/errors.ts";
import type { Absent } from "../lib/pinned/read.ts";
import { named } from "../lib/quoted.ts";
import { Refusal, ToolError } from "./tool.ts";

/** An approval covers only the very file that it was given for. */
export function exchanged(path: string): Refusal {
  return new Refusal(
    `${named(path, 300)} is not what it was when this was allowed; it was exchanged or changed meanwhile. Look at what is there now, and call file_ops again if it is still needed.`,
  );
}

/** Explains what was found instead of a regular file. */
export function notAFile(path: string, absent: Absent, what: "read" | "written" | "edited" | "found"): ToolError {
  if (absent === "missing") return failed(path, what, { code: "ENOENT" });
  if (absent === "not permitted") return failed(path, what, { code: "EACCES" });
  if (absent === "a folder")
    return new ToolError(`${named(path, 300)} is a folder; ${what === "read" ? 'use operation "list"' : "name a file in it"}.`);
  if (absent === "too large") return new ToolError(`${named(path, 300)} is too large and is not ${what}. Use shell for it.`);
  if (absent === "a link")
    return new ToolError(`${named(path, 300)} was changed into a link meanwhile and is not ${what}. Look at it and try again.`);
  return new ToolError(`${named(path, 300)} is not a regular file and is not ${what}.`);
}

/** Explains a failure of the file system. */
export function failed(path: string, what: string, error: unknown): ToolError {
  const code = codeOf(error);
  const reason =
    code === "ENOENT"
      ? "it does not exist. List its folder to see what is there"
      : code === "ENOTDIR"
        ? `a part of the path before ${basename(path)} is not a folder`
        : code === "EACCES" || code === "EPERM" || code === "EROFS"
          ? "the system does not permit it"
          : code === "ENOSPC"
            ? "the disk is full"
            : code === "ENAMETOOLONG"
              ? "the name is too long"
              : (code ?? String(error));
  return new ToolError(`${named(path, 300)} cannot be ${what}: ${reason}.`, { cause: error });
}
