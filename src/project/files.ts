import { closeSync, mkdtempSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { git } from "../git/command.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import type { OpenFile } from "../lib/pinned/read.ts";
import type { ExecResult } from "../process/exec.ts";

const MAX_FILES = 500_000;
const MAX_DEPTH = 64;
const SKIPPED = new Set(["node_modules", ".git", "dist", "target", "vendor", ".venv", "__pycache__", ".hg", ".svn"]);
/** Whether a folder of this name holds what others made. */
export const isSkipped = (name: string) => SKIPPED.has(name);
const SLICE_MS = 12;

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
  return listed.code === 0 ? [...new Set(listed.stdout.split("\0"))].filter((file) => file !== "") : undefined;
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
    for (const entry of entriesAt(join(root, folder.path))) {
      const path = folder.path === "" ? entry.name : `${folder.path}/${entry.name}`;
      if (entry.isFile()) files.push(path);
      else if (entry.isDirectory() && !SKIPPED.has(entry.name) && folder.depth < MAX_DEPTH)
        folders.push({ path, depth: folder.depth + 1 });
    }
  }
  return listing("folder", files);
}

/** Lets everything else have its turn every few milliseconds, and stops when told to. */
export function createBreath(signal?: AbortSignal): () => Promise<void> | undefined {
  let until = performance.now() + SLICE_MS;
  return () => {
    if (performance.now() < until) return undefined;
    signal?.throwIfAborted();
    return new Promise((resume) =>
      setImmediate(() => {
        until = performance.now() + SLICE_MS;
        resume();
      }),
    );
  };
}

/**
 * Hands a file to `take` piece by piece, each valid until the next, as long as `take` answers true. A file that fits
 * into the buffer is read at once; only a longer one makes the caller wait. Answers false if there is no such file.
 */
export function readPieces(
  opened: OpenFile,
  buffer: Buffer,
  take: (piece: Buffer) => boolean,
  breathe: () => Promise<void> | undefined,
): boolean | Promise<boolean> {
  if ("absent" in opened) return false;
  let file: number | undefined = opened.handle;
  try {
    const length = readSync(file, buffer, 0, buffer.length, null);
    if (length === 0 || !take(buffer.subarray(0, length)) || length < buffer.length) return true;
    const rest = readRest(file, buffer, take, breathe);
    file = undefined;
    return rest;
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
