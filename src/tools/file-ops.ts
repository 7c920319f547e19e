import { chmodSync, chownSync, constants, mkdirSync, type Stats } from "node:fs";
import { lstat, open, readdir, readlink, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf } from "../lib/errors.ts";
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
  const look = (operation: "read" | "list", path: string, recursive: boolean | undefined, context: ToolContext) => {
    const real = reach(guard, path, "read", context);
    return operation === "read" ? read(path, real) : list(path, real, recursive ?? false, guard, context.signal);
  };
  if (!write) {
    return tool({
      name: "file_ops",
      description,
      schema: ReadOnly,
      kind: "read",
      deadlineMs: 30_000,
      run: ({ operation, path, recursive }, context) => look(operation, path, recursive, context),
    });
  }
  return tool({
    name: "file_ops",
    description: `${description} A write replaces the whole file and makes missing folders.`,
    schema: ReadWrite,
    kind: ({ operation }) => (operation === "write" ? "effect" : "read"),
    deadlineMs: 30_000,
    async run({ operation, path, recursive, content }, context) {
      if (operation !== "write") return look(operation, path, recursive, context);
      if (content === undefined)
        throw new ToolError('content: is missing; a write needs the whole new text ("" empties the file).');
      return replace(path, reach(guard, path, "write", context), content);
    },
  });
}

/** Where a path really leads, judged here and not before the call, so that it is still true when it is used. */
function reach(guard: PathGuard, path: string, how: Touch["how"], scope: ToolScope): string {
  const reached = reachFrom(guard, path, how, scope);
  if ("refusal" in reached) throw new Refusal(reached.refusal);
  return reached.real;
}

async function read(path: string, real: string): Promise<string> {
  const stats = await statsOf(path, real);
  if (stats.isDirectory()) throw new ToolError(`${named(path, 300)} is a folder; use operation "list".`);
  if (!stats.isFile()) throw new ToolError(`${named(path, 300)} is not a regular file and is not read.`);
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: unknown) => {
    throw failed(path, "read", error);
  });
  try {
    const room = Buffer.alloc(READ_LIMIT * 4);
    const { bytesRead } = await file.read(room, 0, room.length, 0);
    const bytes = room.subarray(0, bytesRead);
    const text = textOf(bytes, bytesRead < stats.size);
    if (text === undefined) return `${named(path, 300)} is a binary file of ${sizeOf(stats.size)}; its bytes are not shown.`;
    if (text.length <= READ_LIMIT && bytesRead >= stats.size) return text === "" ? `${named(path, 300)} is empty.` : asData(text);
    return `${asData(text.slice(0, READ_LIMIT))}\n[Only the first ${READ_LIMIT} characters of ${named(path, 300)} are shown; the whole file has ${stats.size} bytes.]`;
  } finally {
    await file.close();
  }
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

async function replace(path: string, real: string, content: string): Promise<string> {
  const before = await stat(real).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw failed(path, "written", error);
  });
  if (before?.isDirectory()) throw new ToolError(`${named(path, 300)} is a folder; name a file in it.`);
  if (before && !before.isFile()) throw new ToolError(`${named(path, 300)} is not a regular file and is not written.`);
  try {
    mkdirSync(dirname(real), { recursive: true });
    writeFileAtomic(real, content, 0o644);
    if (before) keepOwner(real, before);
  } catch (error) {
    throw failed(path, "written", error);
  }
  return `${before ? "Replaced" : "Wrote"} ${named(path, 300)} (${Buffer.byteLength(content)} bytes).`;
}

function keepOwner(real: string, { mode, uid, gid }: Stats): void {
  try {
    if (process.getuid?.() === 0) chownSync(real, uid, gid);
  } finally {
    chmodSync(real, mode & 0o7777);
  }
}

async function list(path: string, real: string, recursive: boolean, guard: PathGuard, signal: AbortSignal): Promise<string> {
  const stats = await statsOf(path, real);
  if (!stats.isDirectory()) return `${named(path, 300)} is a file of ${sizeOf(stats.size)}.`;
  const lines: string[] = [];
  let more = false;
  const walk = async (folder: string, prefix: string): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      if (prefix === "") throw failed(path, "listed", error);
      lines.push(`${named(prefix, 1_000)} (cannot be opened)`);
      return [];
    });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (lines.length >= LIST_LIMIT || signal.aborted) {
        more = true;
        return;
      }
      const full = join(folder, entry.name);
      const name = `${prefix}${entry.name}`;
      if (!entry.isDirectory()) lines.push(await describe(full, name));
      else if (!recursive) lines.push(named(`${name}/`, 1_000));
      else if (NOT_OPENED.has(entry.name) || guard.refuse(full, "read", folder))
        lines.push(`${named(`${name}/`, 1_000)} (not opened)`);
      else {
        lines.push(named(`${name}/`, 1_000));
        await walk(full, `${name}/`);
      }
    }
  };
  await walk(real, "");
  if (lines.length === 0) return `${named(path, 300)} is an empty folder.`;
  return `${asData(lines.join("\n"))}${more ? `\n[Only the first ${LIST_LIMIT} entries are shown; list a subfolder to see more.]` : ""}`;
}

async function describe(full: string, name: string): Promise<string> {
  try {
    const stats = await lstat(full);
    if (stats.isSymbolicLink()) return `${named(name, 1_000)} -> ${named(await readlink(full), 1_000)}`;
    return stats.isFile() ? `${named(name, 1_000)}  ${sizeOf(stats.size)}` : `${named(name, 1_000)} (not a regular file)`;
  } catch {
    // It went away while the folder was being read.
    return `${named(name, 1_000)} (gone)`;
  }
}

async function statsOf(path: string, real: string): Promise<Stats> {
  return stat(real).catch((error: unknown) => {
    throw failed(path, "read", error);
  });
}

function failed(path: string, what: string, error: unknown): ToolError {
  const code = codeOf(error);
  const reason =
    code === "ENOENT"
      ? "it does not exist. List its folder to see what is there"
      : code === "ENOTDIR"
        ? `a part of the path before ${named(basename(path), 300)} is not a folder`
        : code === "EACCES" || code === "EPERM" || code === "EROFS"
          ? "the system does not permit it"
          : code === "ENOSPC"
            ? "the disk is full"
            : code === "ENAMETOOLONG"
              ? "the name is too long"
              : (code ?? named(String(error), 300));
  return new ToolError(`${named(path, 300)} cannot be ${what}: ${reason}.`, { cause: error });
}

function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
