import { closeSync, mkdtempSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { createBreath } from "../lib/breath.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import type { OpenFile } from "../lib/pinned/read.ts";
import type { ExecResult } from "../process/exec.ts";

const MAX_FILES = 500_000;
const MAX_DEPTH = 64;
const SKIPPED = new Set(["node_modules", ".git", "dist", "target", "vendor", ".venv", "__pycache__", ".hg", ".svn"]);
/** Whether a folder of this name holds third-party or generated files. */
export const isSkipped = (name: string) => SKIPPED.has(name);

export interface Listing {
  source: "git" | "folder";
  /** Relative to the root, with forward slashes. */
  files: string[];
  truncated: boolean;
  /** Why git could not be asked, if it could not. */
  problem?: string | undefined;
}

/** The project's files as git sees them, without ignored ones, in a repository or not; without git, a walk finds them. */
export async function listFiles(git: Git, root: string, signal?: AbortSignal): Promise<Listing> {
  const own = await ask(git, root, listingOf(["-co"]), signal);
  if (own.ending === "not-started") return { ...(await walk(root, signal)), problem: own.stderr };
  const files = filesIn(own) ?? [];
  if (files.length > 0) return listing("git", files);
  return (await listOutside(git, root, signal)) ?? walk(root, signal);
}

const listing = (source: Listing["source"], files: string[]): Listing => ({
  source,
  files: files.slice(0, MAX_FILES),
  truncated: files.length > MAX_FILES,
});

/** Lists a folder outside any repository by means of an empty repository elsewhere. */
async function listOutside(git: Git, root: string, signal?: AbortSignal): Promise<Listing | undefined> {
  const temporary = mkdtempSync(join(tmpdir(), "io-list-"));
  try {
    if ((await ask(git, temporary, ["init", "-q", "--bare", "--template=", "."], signal, [temporary])).code !== 0)
      return undefined;
    const skipped = [...SKIPPED].flatMap((name) => ["-x", `${name}/`]);
    const place = [`--git-dir=${temporary}`, `--work-tree=${root}`];
    const found = filesIn(await ask(git, root, [...place, ...listingOf(["-o", ...skipped])], signal));
    if (!found) return undefined;
    const files = found.filter((file) => !file.endsWith("/"));
    // For a nested repository, git only names its folder.
    for (const folder of found.filter((file) => file.endsWith("/"))) {
      const inner = await listFiles(git, join(root, folder), signal);
      for (const file of inner.files) files.push(`${folder}${file}`);
    }
    return listing("folder", files);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const listingOf = (which: readonly string[]) => ["ls-files", ...which, "--exclude-standard", "-z"];

function filesIn({ code, stdout }: ExecResult): string[] | undefined {
  return code === 0 ? [...new Set(stdout.split("\0"))].filter((file) => file !== "") : undefined;
}

async function ask(
  git: Git,
  cwd: string,
  args: readonly string[],
  signal?: AbortSignal,
  writable: readonly string[] = [],
): Promise<ExecResult> {
  const result = await git.run(cwd, args, { deadlineMs: 60_000, maxOutput: 256_000_000, writable, ...(signal && { signal }) });
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

/**
 * Passes a file to `take` piece by piece, each valid until the next, as long as `take` returns true. A file that fits into the
 * buffer is read at once; only a longer one makes the caller wait. Returns false if there is no such file.
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
