import { closeSync, constants, mkdtempSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { git } from "../git/command.ts";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf } from "../lib/errors.ts";
import type { ExecResult } from "../process/exec.ts";

const MAX_FILES = 500_000;
const MAX_DEPTH = 64;
const SKIPPED = new Set(["node_modules", ".git", "dist", "target", "vendor", ".venv", "__pycache__", ".hg", ".svn"]);

/** Opens regular files only: a link is refused, a pipe does not wait for its other end. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export interface Listing {
  source: "git" | "folder";
  /** Relative to the root, with forward slashes. */
  files: string[];
  truncated: boolean;
}

/** The project's files as git sees them, ignored ones left out, in a repository or not; without git, what a walk finds. */
export async function listFiles(root: string, signal?: AbortSignal): Promise<Listing> {
  const own = (await listByGit(root, ["-co"], signal)) ?? [];
  if (own.length > 0) return listing("git", own);
  return (await listOutside(root, signal)) ?? walk(root, signal);
}

const listing = (source: Listing["source"], files: string[]): Listing => ({
  source,
  files: files.slice(0, MAX_FILES),
  truncated: files.length > MAX_FILES,
});

/** The files of a folder that has no repository, by way of an empty one elsewhere. */
async function listOutside(root: string, signal?: AbortSignal): Promise<Listing | undefined> {
  const temporary = mkdtempSync(join(tmpdir(), "io-list-"));
  try {
    if ((await ask(temporary, ["init", "-q", "--bare", "--template=", "."], signal)).code !== 0) return undefined;
    const skipped = [...SKIPPED].flatMap((name) => ["-x", `${name}/`]);
    const place = [`--git-dir=${temporary}`, `--work-tree=${root}`];
    const found = await listByGit(root, ["-o", ...skipped], signal, place);
    if (!found) return undefined;
    const files = found.filter((file) => !file.endsWith("/"));
    // Of a repository inside git says no more than where it is.
    for (const folder of found.filter((file) => file.endsWith("/"))) {
      const inner = await listFiles(join(root, folder), signal);
      for (const file of inner.files) files.push(`${folder}${file}`);
    }
    return listing("folder", files);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function listByGit(
  root: string,
  which: readonly string[],
  signal?: AbortSignal,
  place: readonly string[] = [],
): Promise<string[] | undefined> {
  const listed = await ask(root, [...place, "ls-files", ...which, "--exclude-standard", "-z"], signal);
  return listed.code === 0 ? namesIn(listed.stdout, createBreath(signal)) : undefined;
}

/** The names in a list of git's, each once. */
async function namesIn(list: string, breathe: Breath): Promise<string[]> {
  const names = new Set<string>();
  for (let at = 0; at < list.length; ) {
    const end = list.indexOf("\0", at);
    const name = list.slice(at, end < 0 ? undefined : end);
    if (name !== "") names.add(name);
    at = end < 0 ? list.length : end + 1;
    await breathe();
  }
  return [...names];
}

async function ask(cwd: string, args: readonly string[], signal?: AbortSignal): Promise<ExecResult> {
  const result = await git(cwd, args, { deadlineMs: 60_000, maxOutput: 256_000_000, ...(signal && { signal }) });
  signal?.throwIfAborted();
  return result;
}

async function walk(root: string, signal?: AbortSignal): Promise<Listing> {
  const files: string[] = [];
  const breathe = createBreath(signal);
  const folders = [{ path: "", depth: 0 }];
  for (let folder = folders.shift(); folder && files.length <= MAX_FILES; folder = folders.shift()) {
    await breathe();
    for (const entry of entriesOf(join(root, folder.path))) {
      const path = folder.path === "" ? entry.name : `${folder.path}/${entry.name}`;
      if (entry.isFile()) files.push(path);
      else if (entry.isDirectory() && !SKIPPED.has(entry.name) && folder.depth < MAX_DEPTH)
        folders.push({ path, depth: folder.depth + 1 });
    }
  }
  return listing("folder", files);
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (["EACCES", "EPERM", "ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "")) return [];
    throw error;
  }
}

/**
 * Hands a file to `take` piece by piece, each valid until the next, as long as `take` answers true. A file that fits
 * into the buffer is read at once; only a longer one makes the caller wait. Answers false if there is no such file.
 */
export function readPieces(
  path: string,
  buffer: Buffer,
  take: (piece: Buffer) => boolean,
  breathe: () => Promise<void> | undefined,
): boolean | Promise<boolean> {
  let file: number | undefined;
  try {
    file = openSync(path, FLAGS);
    const length = readSync(file, buffer, 0, buffer.length, null);
    if (length === 0 || !take(buffer.subarray(0, length)) || length < buffer.length) return true;
    const rest = readRest(file, buffer, take, breathe);
    file = undefined;
    return rest;
  } catch (error) {
    if (isNoFile(error)) return false;
    throw error;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

async function readRest(
  file: number,
  buffer: Buffer,
  take: (piece: Buffer) => boolean,
  breathe: () => Promise<void> | undefined,
): Promise<boolean> {
  try {
    for (;;) {
      await breathe();
      const length = readSync(file, buffer, 0, buffer.length, null);
      if (length === 0 || !take(buffer.subarray(0, length))) return true;
    }
  } finally {
    closeSync(file);
  }
}

/** The text of a small file of the project, or undefined if it is not a readable regular file of at most `limit` bytes. */
export function readText(root: string, file: string, limit = 1_000_000): string | undefined {
  let handle: number;
  try {
    handle = openSync(resolve(root, file), FLAGS);
  } catch (error) {
    if (isNoFile(error)) return undefined;
    throw error;
  }
  try {
    const buffer = Buffer.alloc(limit + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= limit; length += read)
      read = readSync(handle, buffer, length, limit + 1 - length, null);
    return length > limit ? undefined : buffer.toString("utf8", 0, length).replace(/^\uFEFF/, "");
  } catch (error) {
    if (isNoFile(error)) return undefined;
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Gone since it was listed, a link, a folder, a pipe, or not ours to read. */
function isNoFile(error: unknown): boolean {
  return [
    "ENOENT",
    "ENOTDIR",
    "ELOOP",
    "EMLINK",
    "EISDIR",
    "EACCES",
    "EPERM",
    "ENXIO",
    "EAGAIN",
    "EINVAL",
    "ENAMETOOLONG",
  ].includes(codeOf(error) ?? "");
}
