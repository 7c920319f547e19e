import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { bring, installedIn } from "../git/dependencies.ts";
import { openRepo, type Repo } from "../git/repository.ts";
import type { Log } from "../lib/log.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import type { Redactor } from "../lib/redact.ts";
import { projectEnvironment } from "../process/environment.ts";
import { exec } from "../process/exec.ts";
import type { Stand, Wrap } from "../process/sandbox.ts";

export interface InstallerDeps {
  wrap: Wrap;
  env: NodeJS.ProcessEnv;
  redactor: Redactor;
  log: Log;
}

export interface Installing {
  repo: Repo;
  /** The top of the tree that is to have it. */
  path: string;
  scratch: string;
  /** Where what was installed is kept, by the hash of what asked for it. */
  kept: string;
  /** What the checkout on the daemon's host has installed. */
  names: readonly string[];
  stand: Stand;
  signal: AbortSignal;
}

/** By what is to be there and the file that says so: how it is made. The first file that is there decides. */
const WAYS: Record<string, readonly (readonly [file: string, command: string])[]> = {
  node_modules: [
    ["pnpm-lock.yaml", "pnpm install --frozen-lockfile"],
    ["yarn.lock", "yarn install --immutable || yarn install --frozen-lockfile"],
    ["package-lock.json", "npm ci --no-audit --no-fund"],
    ["npm-shrinkwrap.json", "npm ci --no-audit --no-fund"],
    ["package.json", "npm install --no-audit --no-fund --no-package-lock"],
  ],
  ".venv": [["requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt"]],
  venv: [["requirements.txt", "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt"]],
  vendor: [
    ["composer.lock", "composer install --no-interaction"],
    ["Gemfile.lock", "bundle config set --local path vendor/bundle && bundle install"],
    ["go.mod", "go mod vendor"],
  ],
};
/** What else decides what is installed, where it is there. */
const SETTINGS = ["package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml"];
const DEADLINE_MS = 15 * 60_000;
const MAX_FILE = 20_000_000;
const TAIL = 600;

/** Gives a tree on a worker what the checkout has installed: made once for each state of the files that ask for it. */
export function createInstaller({ wrap, env, redactor, log }: InstallerDeps) {
  async function make(command: string, cwd: string, { stand, signal }: Installing): Promise<string | undefined> {
    const [program, ...args] = await wrap(["/bin/sh", "-c", command], cwd, { ...stand, network: true });
    const theirs = { ...projectEnvironment(env, redactor), CI: "true" };
    const { code, output } = await exec(program, args, { cwd, env: theirs, deadlineMs: DEADLINE_MS, signal, maxOutput: 100_000 });
    return code === 0 ? undefined : redactor.clean(output).trim().slice(-TAIL);
  }

  return {
    /** Answers with what could not be had, in words for whoever works there; "" if nothing is missing. */
    async install(what: Installing): Promise<string> {
      const { repo, path, scratch, kept, names, signal } = what;
      const missing: string[] = [];
      const isThere = (name: string) => existsSync(join(path, name));
      for (const name of names) {
        const cwd = join(path, dirname(name));
        const way = WAYS[basename(name)]?.find(([file]) => existsSync(join(cwd, file)));
        if (!way || isThere(name) || !existsSync(cwd)) continue;
        const [file, command] = way;
        const from = join(kept, hashOf([process.platform, process.arch, name, command, ...textsOf(cwd, file)]));
        if (existsSync(join(from, name))) {
          await bring({
            from,
            to: path,
            names: names.filter((each) => existsSync(join(from, each))),
            scratch,
            share: true,
            signal,
          });
          continue;
        }
        const before = new Set(names.filter(isThere));
        const failure = await make(command, cwd, what);
        signal.throwIfAborted();
        if (failure !== undefined) {
          log.warn("what a project needs could not be installed", { name, command, failure });
          missing.push(`${name} (${command}): ${failure}`);
          continue;
        }
        const tree = await openRepo(repo.git, path);
        const own = new Set(tree ? installedIn({ root: path, ignored: tree.ignored }) : []);
        // One command installs for all packages of a workspace. What it is looked for by comes last: then all of it is there.
        const made = names.filter((each) => each !== name && own.has(each) && !before.has(each));
        const whole = own.has(name) ? [...made, name] : made;
        for (const each of whole) mkdirSync(join(from, dirname(each)), { recursive: true, mode: 0o700 });
        await bring({ from: path, to: from, names: whole, scratch, share: true, signal });
      }
      return missing.length === 0 ? "" : `\n\nOn this host the following could not be installed:\n${missing.join("\n")}`;
    },
  };
}

const hashOf = (asked: readonly string[]) => createHash("sha256").update(JSON.stringify(asked)).digest("hex").slice(0, 32);

/** All that says what is to be installed, and from where. */
function textsOf(cwd: string, file: string): string[] {
  return [file, ...SETTINGS].map((each) => smallTextAt(join(cwd, each), MAX_FILE) ?? "");
}
export type Installer = ReturnType<typeof createInstaller>;
