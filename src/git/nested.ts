import { lstatSync, mkdirSync, renameSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Folder, openBelow } from "../lib/pinned/folder.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { readPlain } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import { withoutEnd } from "../lib/trim.ts";
import { isWithin } from "../lib/within.ts";
import type { Git } from "./command.ts";
import type { Repo } from "./repository.ts";

/** How many levels of repositories inside repositories are searched. */
const MAX_LEVELS = 10;
const MAX_OUTPUT = 20_000_000;

/** Another repository that a tree refers to. */
export interface Submodule {
  name: string;
  folder: string;
}

/**
 * The submodules of a tree: listed in `.gitmodules`, recorded as commits in the index, with paths free of links and "..".
 * Skips names and folders that git or the file system could interpret differently.
 */
export async function submodulesOf(git: Git, path: string): Promise<Submodule[]> {
  // Git would block on a pipe, and follow a link.
  if (!statsAt(join(path, ".gitmodules"))?.isFile()) return [];
  const [listed, links] = await Promise.all([
    git.run(path, ["config", "-f", ".gitmodules", "-z", "--get-regexp", "^submodule\\..*\\.path$"]),
    linksIn(git, path),
  ]);
  const named = listed.stdout.split("\0").flatMap((entry): Submodule[] => {
    const [, name, folder] = /^submodule\.(.*)\.path\n(.*)$/s.exec(entry) ?? [];
    return name === undefined || folder === undefined ? [] : [{ name, folder }];
  });
  const isInside = (name: string, other: string) => name.toLowerCase().startsWith(`${other.toLowerCase()}/`);
  return named.filter(
    ({ name, folder }) =>
      links.has(folder) && isPlain(name) && isPlain(folder) && !named.some((other) => isInside(name, other.name)),
  );
}

/** The folders of a tree that are recorded as commits of other repositories. */
async function linksIn(git: Git, path: string): Promise<Set<string>> {
  const staged = await git.run(path, ["ls-files", "--stage", "-z"], { maxOutput: MAX_OUTPUT });
  const links = staged.stdout.split("\0").filter((line) => line.startsWith("160000 "));
  return new Set(links.map((line) => line.slice(line.indexOf("\t") + 1)));
}

/** Whether every part of a path is an ordinary name on every file system that git knows. */
function isPlain(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: searches for control characters
  if (/[\u0000-\u001f\u007f\\=]|^-/.test(path)) return false;
  return path.split("/").every((part) => {
    const seen = part.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "");
    const meant = withoutEnd(seen, " .").toLowerCase();
    return meant !== "" && meant !== ".git" && meant !== "git~1" && !meant.startsWith(".git:");
  });
}

/**
 * Git's folder for a submodule that is checked out below a root; undefined if there is none, or if it would be outside the
 * checkout and its repository.
 */
export function submoduleAt({ root, commonDir }: Pick<Repo, "root" | "commonDir">, folder: string): string | undefined {
  return within(openBelow(root, folder), (open) => {
    const marker = statsOf(open, ".git");
    if (marker?.isDirectory()) return join(open.path, ".git");
    const read = marker?.isFile() ? readPlain(open, ".git", 10_000) : undefined;
    if (read === undefined || "absent" in read) return undefined;
    const text = read.bytes.toString("utf8");
    const named = text.startsWith("gitdir:") ? text.slice("gitdir:".length).trim() : "";
    const own = named === "" ? undefined : realOf(resolve(open.path, named));
    return own !== undefined && [root, commonDir].some((top) => isWithin(realOf(top), own)) ? own : undefined;
  });
}

/** Whether a folder of a tree, reached without links, has an entry of this name. */
export function hasEntry(top: string, folder: string, name: string): boolean {
  return within(openBelow(top, folder), (open) => statsOf(open, name) !== undefined) ?? false;
}

/**
 * Turns repositories that were created inside a worktree, as scaffolding tools do, into plain folders: git would record only
 * the id of their last commit. Their `.git` is kept in the run's folder; returns what was moved where.
 */
export async function unnest(git: Git, path: string): Promise<{ folder: string; keptAs: string }[]> {
  const moved: { folder: string; keptAs: string }[] = [];
  for (let round = 1; round <= MAX_LEVELS; round += 1) {
    const nested = await nestedIn(git, path);
    if (nested.length === 0) break;
    for (const folder of nested) {
      const keptAs = moveAside(path, folder, ".git");
      if (keptAs === undefined) continue;
      // If it was already added as a repository, its files would still be skipped.
      await git.must(path, ["update-index", "--force-remove", "--", folder]);
      moved.push({ folder, keptAs });
    }
  }
  return moved;
}

async function nestedIn(git: Git, path: string): Promise<string[]> {
  const [untracked, links, submodules] = await Promise.all([
    git.must(path, ["ls-files", "--others", "--exclude-standard", "-z"], { maxOutput: MAX_OUTPUT }),
    linksIn(git, path),
    submodulesOf(git, path),
  ]);
  // Only repositories are listed as folders here.
  const made = untracked.split("\0").filter((name) => name.endsWith("/"));
  const registered = new Set(submodules.map(({ folder }) => folder));
  const folders = new Set([...made.map((name) => name.replace(/\/$/, "")), ...links]);
  return [...folders].filter((folder) => !registered.has(folder) && hasEntry(path, folder, ".git"));
}

/**
 * Moves an entry of a worktree's folder into the run's folder and returns its new path; undefined if it is gone or reached
 * through a link.
 */
export function moveAside(top: string, folder: string, name: string, path = top): string | undefined {
  const kept = join(realOf(dirname(dirname(path))), "nested");
  return within(openBelow(top, folder), (open) => {
    if (statsOf(open, name) === undefined) return undefined;
    mkdirSync(kept, { recursive: true, mode: 0o700 });
    const keptAs = freeName(kept, basename(path), name === ".git" ? ".git" : "");
    renameSync(open.entry(name), keptAs);
    return keptAs;
  });
}

function freeName(folder: string, name: string, end: string): string {
  for (let count = 1; ; count += 1) {
    const path = join(folder, `${name}-${count}${end}`);
    if (!lstatSync(path, { throwIfNoEntry: false })) return path;
  }
}

function within<T>(folder: Folder | undefined, work: (folder: Folder) => T): T | undefined {
  if (folder === undefined) return undefined;
  try {
    return work(folder);
  } finally {
    folder.close();
  }
}
