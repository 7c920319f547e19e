import { closeSync, fstatSync, readlinkSync, readSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { codeOf } from "../lib/errors.ts";
import { type Folder, makeFolder, withFolder } from "../lib/pinned/folder.ts";
import { entriesOf, statsOf } from "../lib/pinned/list.ts";
import { type Absent, inFolderOf, openPlain } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { named } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import type { PathGuard } from "./guard.ts";
import { reachFrom } from "./policy.ts";
import { Refusal, type Tool, type ToolContext, ToolError, type ToolScope, type Touch, tool } from "./tool.ts";

export interface FileOpsDeps {
  guard: PathGuard;
  /** Whether it may write; without it the model is not even offered to. */
  write: boolean;
}

const READ_LIMIT = 8_000;
const LIST_LIMIT = 500;
const NOT_OPENED = new Set([".git", "node_modules"]);

const Common = { path: z.string().min(1).max(4_096), recursive: z.boolean().optional().describe("list subfolders too") };
const ReadOnly = z.object({ operation: z.enum(["read", "list"]), ...Common });
const ReadWrite = z.object({
  operation: z.enum(["read", "write", "list"]),
  ...Common,
  content: z.string().max(5_000_000).optional().describe("the whole new text, for write"),
});

/** Reads, writes and lists files, relative to the folder the agent stands in. */
export function fileOps({ guard, write }: FileOpsDeps): Tool {
  const description = `Read${write ? ", write" : ""} or list files. Relative paths stand in the working folder.`;
  const look = async (operation: "read" | "list", path: string, recursive: boolean | undefined, context: ToolContext) => {
    const real = reach(guard, path, "read", context);
    return operation === "read" ? read(path, real, guard) : list(path, real, recursive ?? false, guard, context.signal);
  };
  if (!write) {
    return tool({
      name: "file_ops",
      onHost: true,
      description,
      schema: ReadOnly,
      kind: "read",
      deadlineMs: 30_000,
      run: ({ operation, path, recursive }, context) => look(operation, path, recursive, context),
    });
  }
  return tool({
    name: "file_ops",
    onHost: true,
    description: `${description} A write replaces the whole file and makes missing folders.`,
    schema: ReadWrite,
    kind: ({ operation }) => (operation === "write" ? "effect" : "read"),
    deadlineMs: 30_000,
    async run({ operation, path, recursive, content }, context) {
      if (operation !== "write") return look(operation, path, recursive, context);
      if (content === undefined)
        throw new ToolError('content: is missing; a write needs the whole new text ("" empties the file).');
      return replace(path, reach(guard, path, "write", context), content, guard);
    },
  });
}

/** Where a path really leads, judged here and not before the call, so that it is still true when it is used. */
function reach(guard: PathGuard, path: string, how: Touch["how"], scope: ToolScope): string {
  const reached = reachFrom(guard, path, how, scope);
  if ("refusal" in reached) throw new Refusal(reached.refusal);
  return reached.real;
}

function read(path: string, real: string, guard: PathGuard): string {
  if (dirname(real) === real) throw notAFile(path, "a folder", "read");
  const opened = inFolderOf(real, (folder) => openPlain(folder, basename(real)));
  if ("absent" in opened) throw notAFile(path, opened.absent, "read");
  const { handle } = opened;
  try {
    const stats = fstatSync(handle);
    // The path was judged a moment ago; this is the file that it really led to.
    if (guard.isSecretFile(stats))
      throw new Refusal(`${named(path, 300)} holds IO's own secrets or records; no tool may reach it.`);
    const room = Buffer.alloc(READ_LIMIT * 4);
    const bytesRead = readSync(handle, room, 0, room.length, 0);
    const bytes = room.subarray(0, bytesRead);
    const text = textOf(bytes, bytesRead < stats.size);
    if (text === undefined) return `${named(path, 300)} is a binary file of ${sizeOf(stats.size)}; its bytes are not shown.`;
    if (text.length <= READ_LIMIT && bytesRead >= stats.size) return text === "" ? `${named(path, 300)} is empty.` : asData(text);
    return `${asData(text.slice(0, READ_LIMIT))}\n[Only the first ${READ_LIMIT} characters of ${named(path, 300)} are shown; the whole file has ${stats.size} bytes.]`;
  } catch (error) {
    throw codeOf(error) === undefined ? error : failed(path, "read", error);
  } finally {
    closeSync(handle);
  }
}

function notAFile(path: string, absent: Absent, what: "read" | "written"): ToolError {
  if (absent === "missing") return failed(path, what, { code: "ENOENT" });
  if (absent === "not permitted") return failed(path, what, { code: "EACCES" });
  if (absent === "a folder")
    return new ToolError(`${named(path, 300)} is a folder; ${what === "read" ? 'use operation "list"' : "name a file in it"}.`);
  if (absent === "a link")
    return new ToolError(`${named(path, 300)} was changed into a link meanwhile and is not ${what}. Look at it and try again.`);
  return new ToolError(`${named(path, 300)} is not a regular file and is not ${what}.`);
}

/** The text in the bytes, or undefined when they are none. */
function textOf(bytes: Uint8Array, more: boolean): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: more });
  } catch {
    // Not UTF-8, so not a text that could be shown.
    return undefined;
  }
}

function replace(path: string, real: string, content: string, guard: PathGuard): string {
  if (dirname(real) === real) throw notAFile(path, "a folder", "written");
  let folder: Folder | undefined;
  try {
    folder = makeFolder(dirname(real), 0o777);
    const name = basename(real);
    const before = statsOf(folder, name);
    if (before?.isDirectory()) throw notAFile(path, "a folder", "written");
    if (before && !before.isFile()) throw notAFile(path, before.isSymbolicLink() ? "a link" : "not a regular file", "written");
    const refusal = guard.refuse(real, "write", "/");
    if (refusal) throw new Refusal(refusal);
    replaceFile(folder, name, content, before ? { like: before } : { mode: 0o644 });
    return `${before ? "Replaced" : "Wrote"} ${named(path, 300)} (${Buffer.byteLength(content)} bytes).`;
  } catch (error) {
    throw codeOf(error) === undefined ? error : failed(path, "written", error);
  } finally {
    folder?.close();
  }
}

interface Walk {
  guard: PathGuard;
  recursive: boolean;
  signal: AbortSignal;
  lines: string[];
  more: boolean;
}

function list(path: string, real: string, recursive: boolean, guard: PathGuard, signal: AbortSignal): string {
  const walk: Walk = { guard, recursive, signal, lines: [], more: false };
  try {
    withFolder(real, (folder) => listInto(walk, folder, ""));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    const found = codeOf(error) === "ENOTDIR" ? inFolderOf(real, (folder) => statsOf(folder, basename(real))) : undefined;
    if (!found || "absent" in found) throw failed(path, "listed", error);
    return found.isFile()
      ? `${named(path, 300)} is a file of ${sizeOf(Number(found.size))}.`
      : `${named(path, 300)} is not a regular file.`;
  }
  const { lines, more } = walk;
  if (lines.length === 0) return `${named(path, 300)} is an empty folder.`;
  return `${asData(lines.join("\n"))}${more ? `\n[Only the first ${LIST_LIMIT} entries are shown; list a subfolder to see more.]` : ""}`;
}

function listInto(walk: Walk, folder: Folder, prefix: string): void {
  const { guard, recursive, signal, lines } = walk;
  for (const entry of entriesOf(folder).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (lines.length >= LIST_LIMIT || signal.aborted) {
      walk.more = true;
      return;
    }
    const full = join(folder.path, entry.name);
    const below = `${prefix}${entry.name}/`;
    const name = named(below, 1_000);
    if (!entry.isDirectory()) lines.push(describe(folder, entry.name, named(`${prefix}${entry.name}`, 1_000)));
    else if (!recursive) lines.push(name);
    else if (NOT_OPENED.has(entry.name) || guard.refuse(full, "read", folder.path)) lines.push(`${name} (not opened)`);
    else {
      lines.push(name);
      try {
        withFolder(full, (inner) => listInto(walk, inner, below));
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
        lines.push(`${name} (cannot be opened)`);
      }
    }
  }
}

function describe(folder: Folder, own: string, name: string): string {
  try {
    const stats = statsOf(folder, own);
    if (!stats) return `${name} (gone)`;
    if (stats.isSymbolicLink()) return `${name} -> ${named(readlinkSync(folder.entry(own)), 1_000)}`;
    return stats.isFile() ? `${name}  ${sizeOf(Number(stats.size))}` : `${name} (not a regular file)`;
  } catch {
    // It went away, or changed, while the folder was being read.
    return `${name} (gone)`;
  }
}

function failed(path: string, what: string, error: unknown): ToolError {
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

function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
