import { existsSync, lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { copyPlainAt } from "../lib/pinned/copy.ts";
import { realOf } from "../lib/real-path.ts";
import type { ExecResult } from "../process/exec.ts";
import type { Git, GitOptions } from "./command.ts";

/** Enough for a repository with a million files. */
const MAX_INDEX_BYTES = 200_000_000;

export interface SnapshotDeps {
  git: Git;
  log: Log;
}

/** Git's view of a project's files, including uncommitted ones, without touching its index or branches. */
export interface Snapshots {
  /** The tree of the current files; null if git cannot tell, as outside a repository. Never rejects. */
  take(folder: string): Promise<string | null>;
  /** The files that differ between two trees, relative to the folder. */
  changed(folder: string, before: string | null, after: string | null): Promise<string[]>;
}

const DEADLINE_MS = 30_000;
const MAX_OUTPUT = 4_000_000;
const MAX_FILES = 500;

export function createSnapshots({ git, log }: SnapshotDeps): Snapshots {
  const waiting = new Map<string, Promise<string | null>>();
  const latest = new Map<string, Promise<unknown>>();

  const ask = (cwd: string, args: readonly string[], options: GitOptions = {}): Promise<ExecResult> =>
    git.run(cwd, args, { deadlineMs: DEADLINE_MS, maxOutput: MAX_OUTPUT, ...options });

  /** The index and object folders of a folder's repository. */
  async function placesOf(folder: string): Promise<{ index: string; commonDir: string } | undefined> {
    const plain = join(folder, ".git");
    if (lstatSync(plain, { throwIfNoEntry: false })?.isDirectory()) return { index: join(plain, "index"), commonDir: plain };
    const found = await ask(folder, ["rev-parse", "--git-path", "index", "--git-common-dir"]);
    const [index = "", commonDir = ""] = found.stdout.split("\n").map((line) => resolve(folder, line));
    return found.code === 0 && !git.isOwn(commonDir) ? { index, commonDir } : undefined;
  }

  async function snapshot(folder: string): Promise<string | null> {
    if (!isInRepository(folder)) return null;
    const own = await placesOf(folder);
    if (own === undefined) return unknown(folder, "it has no index that could be read");
    const temporary = mkdtempSync(join(realOf(tmpdir()), "io-index-"));
    try {
      const index = join(temporary, "index");
      // Copy the index: its stat data avoids reading unchanged files.
      copyPlainAt(join(realOf(dirname(own.index)), basename(own.index)), index, MAX_INDEX_BYTES);
      const through = { env: { GIT_INDEX_FILE: index }, writable: [temporary, own.commonDir] };
      const added = await ask(folder, ["add", "-A", "--sparse", "--ignore-errors", "--", "."], through);
      if (added.code !== 0 && (await ask(folder, ["check-ignore", "-q", "."])).code === 0)
        return unknown(folder, "the repository ignores it");
      const tree = await ask(folder, ["write-tree"], through);
      const written = tree.code === 0 ? tree : await withoutUnmerged(folder, through);
      return written.code === 0 ? written.stdout.trim() : unknown(folder, written.stderr);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  }

  /** An unfinished merge elsewhere in the repository does not matter here, but keeps git from writing a tree. */
  async function withoutUnmerged(folder: string, through: GitOptions): Promise<ExecResult> {
    const listed = await ask(folder, ["ls-files", "-u", "-z", "--full-name", "--", ":/"], through);
    const gone = listed.stdout.replace(
      /(^|\0)\d{1,7} ([0-9a-f]{1,64}) \d\t/g,
      (_, start: string, hash: string) => `${start}0 ${"0".repeat(hash.length)}\t`,
    );
    await ask(folder, ["update-index", "-z", "--index-info"], { ...through, input: gone });
    return ask(folder, ["write-tree"], through);
  }

  function unknown(folder: string, why: string): null {
    log.warn("git cannot list a project's files", { folder, error: why.slice(0, 500) });
    return null;
  }

  return {
    take(folder) {
      // A snapshot that has not started yet will include everything written so far, so all waiting callers share it.
      const shared = waiting.get(folder);
      if (shared) return shared;
      const mine = (latest.get(folder) ?? Promise.resolve())
        .then(() => {
          waiting.delete(folder);
          return snapshot(folder);
        })
        .catch((error: unknown) => unknown(folder, messageOf(error)));
      waiting.set(folder, mine);
      latest.set(folder, mine);
      void mine.then(() => {
        if (latest.get(folder) === mine) latest.delete(folder);
      });
      return mine;
    },
    async changed(folder, before, after) {
      if (before === null || after === null || before === after) return [];
      const args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--relative", before, after];
      const listed = await ask(folder, args);
      if (listed.code !== 0) return ["… which ones, git could not tell"];
      const files = listed.stdout.split("\0").filter((file) => file !== "");
      return files.length <= MAX_FILES ? files : [...files.slice(0, MAX_FILES), `… and ${files.length - MAX_FILES} more`];
    },
  };
}

function isInRepository(folder: string): boolean {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return true;
    if (dirname(at) === at) return false;
  }
}
