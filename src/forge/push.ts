import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { UserError } from "../lib/errors.ts";
import { oneLine } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { removeTree } from "../process/remove-tree.ts";

export interface PusherDeps {
  git: Git;
  /** A folder that no command can see. */
  scratch: string;
  clean: (text: string) => string;
}

export interface PushPlace {
  /** The repository's URL at the forge, without credentials. */
  url: string;
  token: string;
  signal: AbortSignal;
}

/** With `isRefused`, the forge refused the push; otherwise nobody knows whether it took the commit. */
export type Pushed = { commit: string } | { reason: string; isRefused: boolean };

/**
 * The token arrives on standard input and is piped to git's credential helper, so it never appears in an argument, variable,
 * setting or file. This script contains nothing that others wrote.
 */
const WITH_TOKEN = `IFS= read -r token
printf '%s\\n' "$token" | { exec 3<&0 </dev/null; exec "$@"; }`;
const HELPER = `!f() { test "$1" = get && IFS= read -r token <&3 && printf 'username=x-access-token\\npassword=%s\\n' "$token"; }; f`;

/** Matches git's report of a rejected branch. */
const REJECTED = /^!\t[^\t\n]*\t(.*)$/m;
const PUSH_MS = 300_000;
const LOOK_MS = 60_000;

/**
 * Pushes commits over HTTP. Git works in an empty repository of its own that only borrows the project's objects, so the
 * project's settings and hooks, which a model may have written, cannot influence where the token goes.
 */
export function createPusher({ git, scratch, clean }: PusherDeps) {
  async function withRepository<T>(work: (run: Run) => Promise<T>, { url, token, signal }: PushPlace): Promise<T> {
    const folder = join(realOf(scratch), `push-${randomBytes(8).toString("hex")}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { origin, protocol } = new URL(url);
    try {
      await git.must(folder, ["init", "--bare", "--quiet", "."], { writable: [folder] });
      return await work((args, { objects, into, deadlineMs }) =>
        git.run(folder, [`--git-dir=${folder}`, ...args], {
          ...{ writable: [folder, ...(into === undefined ? [] : [into])], signal, deadlineMs },
          ...{ script: WITH_TOKEN, input: `${token}\n`, fetchBy: [protocol.replace(":", "")] },
          settings: [`credential.${origin}.helper=${HELPER}`],
          ...(objects !== undefined && { readable: [objects], env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects } }),
          ...(into !== undefined && { env: { GIT_OBJECT_DIRECTORY: into } }),
        }),
      );
    } finally {
      await removeTree(folder);
    }
  }

  return {
    /** The remote commit of a branch; undefined if the branch does not exist. */
    head(branch: string, place: PushPlace): Promise<string | undefined> {
      return withRepository(async (run) => {
        const looked = await run(["ls-remote", "--", place.url, `refs/heads/${branch}`], { deadlineMs: LOOK_MS });
        if (looked.code !== 0)
          throw new UserError(`${hostOf(place.url)} could not be asked for its branches: ${why(looked, clean)}`);
        return /^([0-9a-f]{40,64})\trefs\/heads\//m.exec(looked.stdout)?.[1];
      }, place);
    },
    /** Pushes a commit to a branch, never with force. */
    push({ branch, commit, objects }: { branch: string; commit: string; objects: string }, place: PushPlace): Promise<Pushed> {
      return withRepository(async (run) => {
        const args = ["push", "--porcelain", "--no-verify", "--", place.url, `${commit}:refs/heads/${branch}`];
        const pushed = await run(args, { objects, deadlineMs: PUSH_MS });
        if (pushed.code === 0) return { commit };
        const isRefused = REJECTED.test(pushed.stdout) || /\b403\b|permission to .{1,200} denied/i.test(pushed.stderr);
        return { reason: why(pushed, clean), isRefused };
      }, place);
    },
    /**
     * Fetches a remote branch into a project's object directory and returns its last commit. No branch of the project moves,
     * and its settings and hooks have no effect. `known` is a commit that the project already has.
     */
    fetch(
      { branch, objects, known }: { branch: string; objects: string; known: string | null },
      place: PushPlace,
    ): Promise<string> {
      return withRepository(async (run) => {
        const fetched = async () => {
          const own = { into: objects, deadlineMs: PUSH_MS };
          if (known !== null) await run(["update-ref", "refs/io/known", known], own);
          const from = `+refs/heads/${branch}:refs/io/fetched`;
          const done = await run(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", place.url, from], own);
          return done.code === 0 ? run(["rev-parse", "--verify", "-q", "refs/io/fetched^{commit}"], own) : done;
        };
        const looked = await fetched();
        const commit = looked.stdout.trim();
        if (looked.code === 0 && /^[0-9a-f]{40,64}$/.test(commit)) return commit;
        throw new UserError(`${branch} could not be fetched from ${hostOf(place.url)}: ${why(looked, clean)}`, {
          trouble: "unavailable",
        });
      }, place);
    },
  };
}
export type Pusher = ReturnType<typeof createPusher>;

type Run = (args: readonly string[], options: { objects?: string; into?: string; deadlineMs: number }) => ReturnType<Git["run"]>;

const hostOf = (url: string) => new URL(url).host;

/** Why git or the forge failed, in one line. */
function why({ ending, stdout, stderr }: Awaited<ReturnType<Git["run"]>>, clean: (text: string) => string): string {
  if (ending === "deadline") return "it took too long";
  if (ending === "aborted") return "it was stopped";
  const rejected = REJECTED.exec(stdout)?.[1];
  const lines = stderr
    .split("\n")
    .map((line) => line.replace(/^(?:fatal|error|remote):\s*/, "").trim())
    .filter((line) => line !== "" && !/^(?:To |hint:|failed to push some refs)/.test(line));
  const told = [rejected, ...lines.slice(0, 4)].filter(Boolean).join(" · ");
  const remedy = /could not read Username|Authentication failed|HTTP 401/i.test(told) ? " (the token was not accepted)" : "";
  return `${oneLine(clean(told), 600) || "git gave no reason"}${remedy}`;
}
