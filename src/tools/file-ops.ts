import { closeSync, type Dirent, fstatSync, readlinkSync, readSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf } from "../lib/errors.ts";
import { MAX_PICTURE_BYTES, pictureTypeOf } from "../lib/file-type.ts";
import { type Folder, makeFolder, openFolder } from "../lib/pinned/folder.ts";
import { fileId } from "../lib/pinned/identity.ts";
import { eachEntryOf, statsOf } from "../lib/pinned/list.ts";
import { inFolderOf, openPlain, readPlain } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { asData } from "../lib/untrusted.ts";
import { isWithin } from "../lib/within.ts";
import { deleteFile, editFile, LARGEST_TOLD, moveFile, type Target, tellEdit } from "./change-file.ts";
import { exchanged, failed, notAFile } from "./file-refusals.ts";
import type { PathGuard } from "./guard.ts";
import { reachEntryFrom, reachFrom } from "./policy.ts";
import { type Lines, linesOf, readLines } from "./read-lines.ts";
import { findFiles, searchFiles } from "./search/search.ts";
import { Refusal, type Tool, type ToolContext, ToolError, type ToolScope, type Touch, tool } from "./tool.ts";

export interface FileOpsDeps {
  guard: PathGuard;
  /** Whether it may write; if not, the model is not offered to. */
  write: boolean;
  /** The time limit of a search or find, in milliseconds. */
  searchMs?: number;
}

const READ_LIMIT = 8_000;
/** Of files over this many bytes, only the text on disk is read. */
const LARGEST_UNSAVED = 200_000;
const UNSAVED = "where it is not saved: on disk it is another. Edits and commands work on what is on disk.";
const LIST_LIMIT = 500;
const NOT_OPENED = new Set([".git", "node_modules"]);

const LineNumber = z.number().int().min(1);
const LOOKS = ["read", "list", "search", "find"] as const;
const Common = {
  path: z.string().min(1).max(4_096).optional(),
  recursive: z.boolean().optional().describe("list: subfolders too"),
  from: LineNumber.optional().describe("read: first line"),
  to: LineNumber.optional().describe("read: last line"),
  query: z.string().min(1).max(1_000).optional().describe("search: the text"),
  regex: z.boolean().optional(),
  glob: z.string().min(1).max(500).optional().describe("search, find: such as src/**/*.ts"),
  context: z.number().int().min(0).max(20).optional().describe("search: lines around"),
};
const ReadOnly = z.object({ operation: z.enum(LOOKS), ...Common });
const Edits = z
  .array(z.object({ old: z.string(), new: z.string(), all: z.boolean().optional() }).strict())
  .min(1)
  .max(100);
const ReadWrite = z.object({
  operation: z.enum([...LOOKS, "write", "edit", "move", "delete"]),
  ...Common,
  to: z
    .union([LineNumber, z.string().min(1).max(4_096)])
    .optional()
    .describe("read: last line; move: new path"),
  content: z.string().max(5_000_000).optional().describe("write: the whole new text"),
  edits: Edits.optional().describe("edit: exact old text, unique unless all"),
});
type Looking = z.infer<typeof ReadOnly>;

/** Reads and changes files, relative to the agent's folder. */
export function fileOps({ guard, write, searchMs = 10_000 }: FileOpsDeps): Tool {
  const description = `Read${write ? ", write, edit, move, delete" : ""}, list, search or find files in the working folder or by path. Read long files in parts. Search and find leave out what .gitignore names.`;
  const look = (args: Looking, context: ToolContext): Promise<string> => {
    const path = args.operation === "search" || args.operation === "find" ? (args.path ?? ".") : needed("path", args);
    const place = { path, real: reach(guard, path, "read", context) };
    switch (args.operation) {
      case "read":
        return read(path, place.real, args, guard, context);
      case "list":
        return list(path, place.real, args.recursive ?? false, guard, context.signal);
      case "search":
        return orFailed(
          path,
          "searched",
          searchFiles({ ...args, query: needed("query", args) }, place, { guard, forMs: searchMs, ...context }),
        );
      case "find":
        return orFailed(path, "searched", findFiles(needed("glob", args), place, { guard, forMs: searchMs, ...context }));
    }
  };
  const reading = tool({
    name: "file_ops",
    onHost: true,
    description,
    schema: ReadOnly,
    kind: "read",
    deadlineMs: 30_000,
    run: look,
  });
  if (!write) return reading;
  return tool({
    name: "file_ops",
    reading,
    onHost: true,
    description: `${description} A write replaces the whole file and makes missing folders.`,
    schema: ReadWrite,
    kind: ({ operation }) => (isLook(operation) ? "read" : "effect"),
    writes: ({ path, to }) => ({ paths: [path, to].filter((each) => typeof each === "string") }),
    deadlineMs: 30_000,
    async run({ to, content, edits, ...args }, context) {
      const { operation } = args;
      if (isLook(operation)) {
        if (typeof to === "string") throw new ToolError("to: is a line number for read.");
        return look({ ...args, operation, to }, context);
      }
      const path = needed("path", args);
      const entry = (each: string, index: number): Target => ({ path: each, real: reachEntry(guard, each, context, index) });
      switch (operation) {
        case "write":
          if (content === undefined)
            throw new ToolError('content: is missing; a write needs the whole new text ("" empties the file).');
          return replace(path, reach(guard, path, "write", context), content, guard, context);
        case "edit": {
          if (edits === undefined) throw new ToolError("edits: is missing; edit needs it.");
          const target = { path, real: reach(guard, path, "write", context) };
          return orFailed(path, "edited", editFile(target, edits, guard, context));
        }
        case "move":
          if (typeof to !== "string") throw new ToolError("to: is missing; move needs the new path.");
          return orFailed(path, "moved", moveFile(entry(path, 0), entry(to, 1), guard, context));
        case "delete":
          return orFailed(path, "deleted", deleteFile(entry(path, 0), guard, context));
      }
    },
  });
}

type Look = (typeof LOOKS)[number];
const isLook = (operation: string): operation is Look => LOOKS.some((look) => look === operation);

/** Returns an argument that only some operations need. */
function needed<K extends "path" | "query" | "glob">(
  name: K,
  args: { operation: string } & Partial<Record<K, string | undefined>>,
) {
  const value = args[name];
  if (value === undefined) throw new ToolError(`${name}: is missing; ${args.operation} needs it.`);
  return value;
}

async function orFailed(path: string, what: string, work: Promise<string>): Promise<string> {
  try {
    return await work;
  } catch (error) {
    throw codeOf(error) === undefined ? error : failed(path, what, error);
  }
}

/** The real path, checked here and not before the call, so that it is still true when it is used. */
function reach(guard: PathGuard, path: string, how: Touch["how"], scope: ToolScope): string {
  const reached = reachFrom(guard, path, how, scope);
  if ("refusal" in reached) throw new Refusal(reached.refusal);
  const { approved: [approved] = [] } = scope;
  if (approved && approved.path !== reached.real) throw exchanged(path);
  return reached.real;
}

/** The same for an entry that is moved or deleted: a link is not followed. */
function reachEntry(guard: PathGuard, path: string, scope: ToolScope, index: number): string {
  const reached = reachEntryFrom(guard, path, scope);
  if ("refusal" in reached) throw new Refusal(reached.refusal);
  const approved = scope.approved?.[index];
  if (approved && approved.path !== reached.real) throw exchanged(path);
  return reached.real;
}

interface WantedLines {
  from?: number | undefined;
  to?: number | undefined;
}

async function read(
  path: string,
  real: string,
  { from = 1, to = Number.POSITIVE_INFINITY }: WantedLines,
  guard: PathGuard,
  { approved: [approved] = [], cwd, editorText, signal, showPicture }: ToolContext,
): Promise<string> {
  if (to < from) throw new ToolError(`to: ${to} is before from: ${from}; name the first line first.`);
  if (dirname(real) === real) throw notAFile(path, "a folder", "read");
  const opened = inFolderOf(real, (folder) => openPlain(folder, basename(real)));
  if ("absent" in opened) throw notAFile(path, opened.absent, "read");
  const { handle } = opened;
  try {
    const stats = fstatSync(handle);
    if (approved?.file !== undefined && fileId(fstatSync(handle, { bigint: true })) !== approved.file) throw exchanged(path);
    // The path was checked a moment ago; this is the file that was really opened.
    if (guard.isSecretFile(stats))
      throw new Refusal(`${named(path, 300)} holds IO's own secrets or records; no tool may reach it.`);
    const picture = pictureTypeOf(readFirst(handle, 16));
    if (picture) {
      const told = `${named(path, 300)} is a picture, ${picture}, ${sizeOf(stats.size)}`;
      if (stats.size > MAX_PICTURE_BYTES) return `${told}: too large to be shown; at most ${sizeOf(MAX_PICTURE_BYTES)} are.`;
      if (!showPicture) return `${told}: it cannot be shown here.`;
      return `${told}: ${await showPicture(readFirst(handle, MAX_PICTURE_BYTES))}`;
    }
    const range = { from, to, characters: READ_LIMIT };
    if (editorText && isWithin(realOf(cwd), real) && stats.size <= LARGEST_UNSAVED) {
      const unsaved = await unsavedText(real, handle, editorText);
      if (unsaved === "") return `${named(path, 300)} is empty in the user's editor, ${UNSAVED}`;
      if (unsaved !== undefined)
        return `${showLines(path, linesOf(unsaved, range), to)}\n[This is the text in the user's editor, ${UNSAVED}]`;
    }
    const found = await readLines(handle, range, createBreath(signal));
    if (found === undefined) return `${named(path, 300)} is a binary file of ${sizeOf(stats.size)}; its bytes are not shown.`;
    if (found.total === 0) return `${named(path, 300)} is empty.`;
    return showLines(path, found, to);
  } catch (error) {
    throw codeOf(error) === undefined ? error : failed(path, "read", error);
  } finally {
    closeSync(handle);
  }
}

/** The text that the user's editor holds, if it differs from the one on disk. */
async function unsavedText(
  real: string,
  handle: number,
  editorText: NonNullable<ToolContext["editorText"]>,
): Promise<string | undefined> {
  const bytes = readFirst(handle, LARGEST_UNSAVED);
  const held = bytes.includes(0) ? undefined : await editorText(real);
  // Editors do not pass on the original line ends or the byte order mark.
  const plain = (text: string) => text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  return held === undefined || plain(held) === plain(Buffer.from(bytes).toString("utf8")) ? undefined : plain(held);
}

function readFirst(handle: number, most: number): Uint8Array {
  const bytes = Buffer.alloc(Math.min(most, fstatSync(handle).size));
  return bytes.subarray(0, readSync(handle, bytes, 0, bytes.length, 0));
}

/** Shows lines with their numbers, and notes what else there is to read. */
function showLines(path: string, { lines, first, total, counted, isCut }: Lines, to: number): string {
  const name = named(path, 300);
  const all = `${counted ? "" : "more than "}${total}`;
  if (lines.length === 0) throw new ToolError(`${name} has ${all} line${total === 1 ? "" : "s"}; there is no line ${first}.`);
  const last = first + lines.length - 1;
  const shown = lines.map((line, index) => `${first + index}\t${line}`).join("\n");
  const notes = [
    `Lines ${first} to ${last} of ${all} in ${name}.`,
    ...(isCut ? [`Line ${last} is longer than the ${READ_LIMIT} characters shown.`] : []),
    ...(last < Math.min(to, total) ? [`Read on with from: ${last + 1}.`] : []),
  ];
  return `${asData(shown)}\n[${notes.join(" ")}]`;
}

function replace(
  path: string,
  real: string,
  content: string,
  guard: PathGuard,
  { cwd, besides, approved: [approved] = [], onEdit }: ToolContext,
): string {
  if (dirname(real) === real) throw notAFile(path, "a folder", "written");
  let folder: Folder | undefined;
  try {
    folder = makeFolder(dirname(real), 0o777);
    const name = basename(real);
    const before = statsOf(folder, name);
    if (approved?.file !== undefined && fileId(before) !== approved.file) throw exchanged(path);
    if (before?.isDirectory()) throw notAFile(path, "a folder", "written");
    if (before && !before.isFile()) throw notAFile(path, before.isSymbolicLink() ? "a link" : "not a regular file", "written");
    const refusal = guard.refuse(real, "write", cwd, besides);
    if (refusal) throw new Refusal(refusal);
    const earlier = before ? readPlain(folder, name, LARGEST_TOLD) : undefined;
    replaceFile(folder, name, content, before ? { like: before } : { mode: 0o644 });
    if (!earlier || "bytes" in earlier) tellEdit(onEdit, real, earlier?.bytes ?? null, Buffer.from(content));
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
  breathe: Breath;
  lines: string[];
  more: boolean;
}

async function list(path: string, real: string, recursive: boolean, guard: PathGuard, signal: AbortSignal): Promise<string> {
  const walk: Walk = { guard, recursive, signal, breathe: createBreath(), lines: [], more: false };
  try {
    await listInto(walk, real, "");
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

async function listInto(walk: Walk, path: string, prefix: string): Promise<void> {
  const folder = openFolder(path);
  try {
    await listEntries(walk, folder, prefix);
  } finally {
    folder.close();
  }
}

async function listEntries(walk: Walk, folder: Folder, prefix: string): Promise<void> {
  const { guard, recursive, signal, lines } = walk;
  for (const entry of await firstEntries(folder, LIST_LIMIT + 1, walk.breathe)) {
    await walk.breathe();
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
        await listInto(walk, full, below);
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
        lines.push(`${name} (cannot be opened)`);
      }
    }
  }
}

/** The first entries by name, without holding all entries of a huge folder. */
async function firstEntries(folder: Folder, most: number, breathe: Breath): Promise<Dirent[]> {
  const byName = (a: Dirent, b: Dirent) => (a.name < b.name ? -1 : 1);
  let kept: Dirent[] = [];
  for await (const entry of eachEntryOf(folder, breathe)) {
    kept.push(entry);
    if (kept.length >= 4 * most) kept = kept.sort(byName).slice(0, most);
  }
  return kept.sort(byName).slice(0, most);
}

function describe(folder: Folder, own: string, name: string): string {
  try {
    const stats = statsOf(folder, own);
    if (!stats) return `${name} (gone)`;
    if (stats.isSymbolicLink()) return `${name} -> ${named(readlinkSync(folder.entry(own)), 1_000)}`;
    return stats.isFile() ? `${name}  ${sizeOf(Number(stats.size))}` : `${name} (not a regular file)`;
  } catch {
    // It disappeared or changed while the folder was read.
    return `${name} (gone)`;
  }
}

function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
