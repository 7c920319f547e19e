import { readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { createBreath } from "../lib/breath.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { readPlain } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { statsAt } from "../lib/stats-at.ts";
import { exec } from "../process/exec.ts";

export interface Move {
  /** The roots of the tree it was made for, and of the one it will serve. */
  from: string;
  to: string;
  /** Its final path. */
  at: string;
}

const MAX_BYTES = 1_000_000;

/** Translates a path from one tree to the other; a path outside both is unchanged. */
export function moved(path: string, from: string, to: string): string {
  if (path === from) return to;
  return path.startsWith(`${from}/`) ? join(to, path.slice(from.length + 1)) : path;
}

/** The same for every path in a text, such as a list of folders. */
export function movedIn(text: string, from: string, to: string): string {
  const ends = (at: number) => at >= text.length || !/[\w.-]/.test(text[at]!);
  const starts = (at: number) => at === 0 || !/[\w./-]/.test(text[at - 1]!);
  let result = "";
  let done = 0;
  for (let at = text.indexOf(from); at >= 0; at = text.indexOf(from, at + from.length)) {
    if (!starts(at) || !ends(at + from.length)) continue;
    result += text.slice(done, at) + to;
    done = at + from.length;
  }
  return result + text.slice(done);
}

/**
 * Makes an installed folder work in another tree: rewrites absolute links into the first tree, and the paths in a Python
 * environment, including those of editable installs.
 */
export async function relocate(folder: string, move: Move, signal: AbortSignal): Promise<void> {
  for (const path of await fullLinksIn(folder, signal)) relink(path, join(move.at, relative(folder, path)), move);
  if (!statsAt(join(folder, "pyvenv.cfg"))?.isFile()) return;
  const breathe = createBreath(signal);
  for (const path of placesIn(folder)) {
    rewrite(path, move);
    await breathe();
  }
}

/** Absolute links. The system's `find` searches large folders many times faster than Node. */
async function fullLinksIn(folder: string, signal: AbortSignal): Promise<string[]> {
  const { code, stdout } = await exec("/usr/bin/find", [folder, "-type", "l", "-lname", "/*", "-print0"], {
    signal,
    maxOutput: 50_000_000,
  });
  signal.throwIfAborted();
  if (code === 0) return stdout.split("\0").filter((path) => path !== "");
  const breathe = createBreath(signal);
  const found: string[] = [];
  const waiting = [folder];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const entry of entriesAt(at)) {
      if (entry.isDirectory()) waiting.push(join(at, entry.name));
      else if (entry.isSymbolicLink()) found.push(join(at, entry.name));
    }
    await breathe();
  }
  return found;
}

/** The files of a Python environment that contain paths: its scripts, and its lists of editable installs. */
function placesIn(venv: string): string[] {
  const filesIn = (folder: string) =>
    entriesAt(folder)
      .filter((entry) => entry.isFile())
      .map(({ name }) => join(folder, name));
  const programs = ["bin", "Scripts"].flatMap((name) => filesIn(join(venv, name)));
  const libraries = ["lib", "lib64", "Lib"].flatMap((name) => [
    join(venv, name, "site-packages"),
    ...entriesAt(join(venv, name)).map((entry) => join(venv, name, entry.name, "site-packages")),
  ]);
  const lists = libraries.flatMap(filesIn).filter((path) => /\.(?:pth|egg-link)$|^__editable__.*\.py$/.test(basename(path)));
  return [join(venv, "pyvenv.cfg"), ...programs, ...new Set(lists)];
}

/** Rewrites an absolute link that leads into its own tree. */
function relink(path: string, future: string, { from, to }: Move): void {
  // A name in an unknown encoding is listed differently from how it reads.
  if (!statsAt(path)?.isSymbolicLink()) return;
  const target = readlinkSync(path);
  if (!target.startsWith("/")) return;
  const there = moved(resolve(target), from, to);
  if (there === target) return;
  unlinkSync(path);
  symlinkSync(relative(dirname(future), there), path);
}

function rewrite(path: string, { from, to }: Move): void {
  withFolder(dirname(path), (folder) => {
    const read = readPlain(folder, basename(path), MAX_BYTES);
    if ("absent" in read || read.bytes.includes(0)) return;
    const text = read.bytes.toString("utf8");
    const changed = movedIn(text, from, to);
    if (changed !== text) replaceFile(folder, basename(path), changed, { like: read.stats, durable: false });
  });
}
