import { type FSWatcher, lstatSync, watch } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { flaw } from "./paths.ts";

/** What changed below `pages/` since it was last asked. */
export interface Changes {
  /** Page paths such as `pages/general/rust.md` that were made, changed or removed. */
  pages: Set<string>;
  /** True when changes may have been missed, and everything has to be looked at. */
  all: boolean;
}

export interface Watcher {
  /** False where the system does not report changes in time; then look before every answer. */
  readonly prompt: boolean;
  take(): Changes;
  close(): void;
}

/** With more reports than this at once, the system may have dropped some. */
const OVERRUN = 8_000;
/** Of more pages than this at once each is not looked at here, but all are compared, in slices. */
const MANY = 500;

/** Every folder below one that can hold pages. Files are not looked at, so this is quick however many pages there are. */
function* foldersIn(root: string, below = ""): Generator<string> {
  yield below;
  for (const item of entriesAt(join(root, below))) {
    const path = below === "" ? item.name : `${below}/${item.name}`;
    if (item.isDirectory() && flaw(`${path}/a.md`) === undefined) yield* foldersIn(root, path);
  }
}

/** Every page below a folder, links and hidden names left out; `onFolder` is told each folder before it is read. */
export function* walk(root: string, below = "", onFolder?: (below: string) => void): Generator<string> {
  onFolder?.(below);
  const deeper: string[] = [];
  for (const item of entriesAt(join(root, below))) {
    const path = below === "" ? item.name : `${below}/${item.name}`;
    if (item.isDirectory() && flaw(`${path}/a.md`) === undefined) deeper.push(path);
    else if (item.isFile() && flaw(path) === undefined) yield `pages/${path}`;
  }
  for (const folder of deeper) yield* walk(root, folder, onFolder);
}

/** Watches each folder by itself: a recursive watch would cost one handle a file on Linux. */
export function createWatcher(root: string, onNews: () => void): Watcher {
  const watchers = new Map<string, FSWatcher>();
  const touched = new Set<string>();
  let news = 0;
  let missed = false;
  let working = true;

  const drop = (folder: string) => {
    for (const [name, watcher] of watchers) {
      if (name !== folder && !name.startsWith(`${folder}/`)) continue;
      watcher.close();
      watchers.delete(name);
    }
  };
  const follow = (folder: string) => {
    if (watchers.has(folder) || !working) return;
    try {
      const watcher = watch(join(root, folder), { persistent: false }, (_event, name) => {
        news += 1;
        if (name === null || news > OVERRUN) missed = true;
        else touched.add(folder === "" ? name : `${folder}/${name}`);
        onNews();
      });
      watcher.on("error", () => {
        missed = true;
        drop(folder);
      });
      watchers.set(folder, watcher);
    } catch (error) {
      // The folder is gone again, or the system has no more watches: then we look instead of being told.
      if (codeOf(error) !== "ENOENT") working = false;
    }
  };
  const followAll = (below: string) => [...walk(root, below, follow)];
  for (const folder of foldersIn(root)) follow(folder);

  return {
    get prompt() {
      return working && process.platform === "linux";
    },
    take() {
      const pages = new Set<string>();
      const many = touched.size > MANY;
      for (const name of touched) {
        if (watchers.has(name)) {
          // A folder went or was renamed: which pages went with it is found by comparing everything.
          missed = true;
          drop(name);
        }
        if (many) continue;
        if (flaw(name) === undefined) pages.add(`pages/${name}`);
        if (flaw(`${name}/a.md`) === undefined && isFolder(join(root, name))) for (const page of followAll(name)) pages.add(page);
      }
      if (many) {
        missed = true;
        for (const folder of foldersIn(root)) follow(folder);
      }
      const all = missed;
      touched.clear();
      missed = false;
      news = 0;
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
