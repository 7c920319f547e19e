import { type FSWatcher, lstatSync, watch } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { pathProblem } from "./paths.ts";

/** What changed below `pages/` since the last call. */
export interface Changes {
  /** Paths such as `pages/general/rust.md` of created, changed or removed pages. */
  pages: Set<string>;
  /** True if changes may have been missed and everything has to be checked. */
  all: boolean;
}

export interface Watcher {
  /** False if the system does not report changes in time; then check the files before every answer. */
  readonly prompt: boolean;
  take(): Changes;
  close(): void;
}

/** With more events at once, the system may have dropped some. */
const MAX_EVENTS = 8_000;
/** With more touched names at once, all pages are compared in slices instead. */
const MANY = 500;

/** Every folder below `root` that can contain pages. Does not touch files, so it is fast with any number of pages. */
function* foldersIn(root: string, below = ""): Generator<string> {
  yield below;
  for (const item of entriesAt(join(root, below))) {
    const path = below === "" ? item.name : `${below}/${item.name}`;
    if (item.isDirectory() && pathProblem(`${path}/a.md`) === undefined) yield* foldersIn(root, path);
  }
}

/** Every page below a folder, without links and hidden names. Calls `onFolder` before reading each folder. */
export function* walk(root: string, below = "", onFolder?: (below: string) => void): Generator<string> {
  onFolder?.(below);
  const deeper: string[] = [];
  for (const item of entriesAt(join(root, below))) {
    const path = below === "" ? item.name : `${below}/${item.name}`;
    if (item.isDirectory() && pathProblem(`${path}/a.md`) === undefined) deeper.push(path);
    else if (item.isFile() && pathProblem(path) === undefined) yield `pages/${path}`;
  }
  for (const folder of deeper) yield* walk(root, folder, onFolder);
}

/** Watches each folder separately: on Linux a recursive watch takes one handle per file. */
export function createWatcher(root: string, onChange: () => void): Watcher {
  const watchers = new Map<string, FSWatcher>();
  const touched = new Set<string>();
  let events = 0;
  let missed = false;
  let isAvailable = true;

  const unwatch = (folder: string) => {
    for (const [name, watcher] of watchers) {
      if (name !== folder && !name.startsWith(`${folder}/`)) continue;
      watcher.close();
      watchers.delete(name);
    }
  };
  const watchFolder = (folder: string) => {
    if (watchers.has(folder) || !isAvailable) return;
    try {
      const watcher = watch(join(root, folder), { persistent: false }, (_event, name) => {
        events += 1;
        if (name === null || events > MAX_EVENTS) missed = true;
        else touched.add(folder === "" ? name : `${folder}/${name}`);
        onChange();
      });
      watcher.on("error", () => {
        missed = true;
        unwatch(folder);
      });
      watchers.set(folder, watcher);
    } catch (error) {
      // ENOENT: the folder is gone again. Anything else: no watches left, so poll instead.
      if (codeOf(error) !== "ENOENT") isAvailable = false;
    }
  };
  const watchAll = (below: string) => [...walk(root, below, watchFolder)];
  for (const folder of foldersIn(root)) watchFolder(folder);

  return {
    get prompt() {
      return isAvailable && process.platform === "linux";
    },
    take() {
      const pages = new Set<string>();
      const many = touched.size > MANY;
      for (const name of touched) {
        if (watchers.has(name)) {
          // A folder was removed or renamed: compare everything to find its pages.
          missed = true;
          unwatch(name);
        }
        if (many) continue;
        if (pathProblem(name) === undefined) pages.add(`pages/${name}`);
        if (pathProblem(`${name}/a.md`) === undefined && isFolder(join(root, name)))
          for (const page of watchAll(name)) pages.add(page);
      }
      if (many) {
        missed = true;
        for (const folder of foldersIn(root)) watchFolder(folder);
      }
      const all = missed;
      touched.clear();
      missed = false;
      events = 0;
      return { pages, all };
    },
    close() {
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
