import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { plainEnvironment } from "../process/environment.ts";
import type { ExecResult } from "../process/exec.ts";
import type { Wrap } from "../process/sandbox.ts";
import { git } from "./command.ts";

export interface SnapshotDeps {
  /** Keeps a program that a project's own settings may start away from what the agents may not see either. */
  wrap: Wrap;
  /** The environment for git. */
  env: () => NodeJS.ProcessEnv;
  log: Log;
}

/** What git says of a project's files, uncommitted ones included, without touching its index or its branches. */
export interface Snapshots {
  /** The tree of the files as they are now; null where git cannot tell, as outside a repository. Never rejects. */
  take(folder: string): Promise<string | null>;
  /** The files that differ between two trees, relative to the folder. */
  changed(folder: string, before: string | null, after: string | null): Promise<string[]>;
}

const DEADLINE_MS = 30_000;
const MAX_OUTPUT = 4_000_000;
const MAX_FILES = 500;

export function createSnapshots({ wrap, env, log }: SnapshotDeps): Snapshots {
  const waiting = new Map<string, Promise<string | null>>();
  const latest = new Map<string, Promise<unknown>>();

  /** Through an index of our own, if one is given. */
  const ask = (cwd: string, args: readonly string[], index?: string, input?: string): Promise<ExecResult> =>
    git(cwd, args, {
      wrap,
      environment: plainEnvironment(env()),
      ...(index && { env: { GIT_INDEX_FILE: index } }),
      ...(input !== undefined && { input }),
      deadlineMs: DEADLINE_MS,
      maxOutput: MAX_OUTPUT,
    });

  async function indexOf(folder: string): Promise<string | undefined> {
    const plain = join(folder, ".git");
    if (statSync(plain, { throwIfNoEntry: false })?.isDirectory()) return join(plain, "index");
    const found = await ask(folder, ["rev-parse", "--git-path", "index"]);
    return found.code === 0 ? resolve(folder, found.stdout.trim()) : undefined;
  }

  async function snapshot(folder: string): Promise<string | null> {
    if (!isInRepository(folder)) return null;
    const own = await indexOf(folder);
    if (own === undefined) return unknown(folder, "it has no index that could be read");
    const temporary = mkdtempSync(join(tmpdir(), "io-index-"));
    try {
      const index = join(temporary, "index");
      // What git already knows of each file saves reading it again.
      if (existsSync(own)) copyFileSync(own, index);
      const added = await ask(folder, ["add", "-A", "--ignore-errors", "--", "."], index);
      if (added.code !== 0 && (await ask(folder, ["check-ignore", "-q", "."])).code === 0)
        return unknown(folder, "the repository ignores it");
      const tree = await ask(folder, ["write-tree"], index);
      const written = tree.code === 0 ? tree : await withoutUnmerged(folder, index);
      return written.code === 0 ? written.stdout.trim() : unknown(folder, written.stderr);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  }

  /** A merge that waits elsewhere in the repository is nothing to this folder, yet it keeps git from writing a tree. */
  async function withoutUnmerged(folder: string, index: string): Promise<ExecResult> {
    const listed = await ask(folder, ["ls-files", "-u", "-z", "--full-name", "--", ":/"], index);
    const gone = listed.stdout.replace(
      /(^|\0)\d{1,7} ([0-9a-f]{1,64}) \d\t/g,
      (_, start: string, hash: string) => `${start}0 ${"0".repeat(hash.length)}\t`,
    );
    await ask(folder, ["update-index", "-z", "--index-info"], index, gone);
    return ask(folder, ["write-tree"], index);
  }

  function unknown(folder: string, why: string): null {
    log.warn("git could not tell what a project's files are", { folder, error: why.slice(0, 500) });
    return null;
  }

  return {
    take(folder) {
      // One that has not begun yet sees everything written until now, so it serves all who wait.
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
