import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../lib/errors.ts";
import { type ExecResult, exec } from "../lib/exec.ts";
import type { Log } from "../lib/log.ts";
import type { Wrap } from "../tools/sandbox.ts";

export interface SnapshotParts {
  /** Keeps a program that a project's own settings may start away from what the agents may not see either. */
  wrap: Wrap;
  /** The environment for git. */
  env: () => NodeJS.ProcessEnv;
  log: Log;
}

/** What git says of a project's files, uncommitted ones included, without touching its index or its branches. */
export interface Snapshots {
  /** The tree of the files as they are now; null outside a repository. Never rejects. */
  take(folder: string): Promise<string | null>;
  /** The files that differ between two trees, relative to the folder. */
  changed(folder: string, before: string | null, after: string | null): Promise<string[]>;
}

const DEADLINE_MS = 30_000;
const MAX_FILES = 500;
const QUIET = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.quotePath=false",
  "advice.addEmbeddedRepo=false",
  "gc.auto=0",
].flatMap((setting) => ["-c", setting]);

export function createSnapshots({ wrap, env, log }: SnapshotParts): Snapshots {
  const waiting = new Map<string, Promise<string | null>>();
  const latest = new Map<string, Promise<unknown>>();

  async function git(cwd: string, args: readonly string[], index?: string): Promise<ExecResult> {
    const [program, ...rest] = await wrap(["git", ...QUIET, ...args], cwd);
    const clean = Object.entries(env()).filter(([name]) => !name.startsWith("GIT_") || name === "GIT_EXEC_PATH");
    return exec(program, rest, {
      cwd,
      env: { ...Object.fromEntries(clean), GIT_TERMINAL_PROMPT: "0", LC_ALL: "C", ...(index && { GIT_INDEX_FILE: index }) },
      deadlineMs: DEADLINE_MS,
      maxOutput: 4_000_000,
    });
  }

  async function indexOf(folder: string): Promise<string | undefined> {
    const plain = join(folder, ".git");
    if (statSync(plain, { throwIfNoEntry: false })?.isDirectory()) return join(plain, "index");
    const found = await git(folder, ["rev-parse", "--git-path", "index"]);
    return found.code === 0 ? resolve(folder, found.stdout.trim()) : undefined;
  }

  async function snapshot(folder: string): Promise<string | null> {
    if (!isInRepository(folder)) return null;
    const own = await indexOf(folder);
    if (own === undefined) return null;
    const temporary = mkdtempSync(join(tmpdir(), "io-index-"));
    try {
      const index = join(temporary, "index");
      // What git already knows of each file saves reading it again.
      if (existsSync(own)) copyFileSync(own, index);
      await git(folder, ["add", "-A", "--ignore-errors", "--", "."], index);
      const tree = await git(folder, ["write-tree"], index);
      return tree.code === 0 ? tree.stdout.trim() : null;
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
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
        .catch((error: unknown) => {
          log.warn("git could not tell what a project's files are", { folder, error: messageOf(error) });
          return null;
        });
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
      const listed = await git(folder, args);
      if (listed.code !== 0) return [];
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
