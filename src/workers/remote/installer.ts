import { dirname, join } from "node:path";
import type { Tree } from "../../git/worktrees.ts";
import type { Log } from "../../lib/log.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { SandboxProfile, Wrap } from "../../process/sandbox.ts";
import { findInstalls, type Install } from "../../project/installs.ts";
import { createPreparer, isInstalled, isPrepared, missingInstallMessage } from "../../project/prepare.ts";

export interface InstallerDeps {
  wrap: Wrap;
  env: NodeJS.ProcessEnv;
  redactor: Redactor;
  log: Log;
}

export interface Installing {
  /** The tree that needs the dependencies. */
  tree: Tree;
  /** The project's folder below the top, or "". */
  prefix: string;
  scratch: string;
  /** The cache of installed dependencies, by the hash of the files that ask for them. */
  kept: string;
  /** What the checkout on the daemon's host has installed. */
  names: readonly string[];
  profile: SandboxProfile;
  signal: AbortSignal;
}

/** Installs what the project's files ask for into a tree on a worker, once for each state of those files. */
export function createInstaller({ wrap, env, redactor, log }: InstallerDeps) {
  return {
    /** Returns what could not be installed, each with its reason. */
    async install({ tree, prefix, scratch, kept, names, profile, signal }: Installing): Promise<string[]> {
      const top = tree.path;
      const checkout = { root: top, names: [] };
      const folders = [prefix || ".", ...names.map((name) => dirname(name))];
      const wanted = findInstalls(top, [...new Set(folders)])
        .filter((each) => !isInstalled(each, checkout, top))
        .map((each) => asInCheckout(each, names));
      if (wanted.length === 0) return [];
      const preparer = createPreparer({ wrap, redactor, log, kept });
      const done = await preparer.prepare(wanted, { tree, checkout, profile, env, scratch, keep: true, signal });
      const missing = done.filter((each) => !isPrepared(each));
      if (missing.length > 0) log.warn("what a project needs could not be installed", { missing });
      return missing.map((each) => missingInstallMessage(each, "What needs it cannot run on this host."));
    },
  };
}
export type Installer = ReturnType<typeof createInstaller>;

/** Names the Python environment like the checkout's, because the project's commands may contain that name. */
function asInCheckout(install: Install, names: readonly string[]): Install {
  const has = (name: string) => names.includes(join(install.folder, name));
  if (install.file !== "requirements.txt" || has(".venv") || !has("venv")) return install;
  const rename = (word: string) => word.replace(/^\.venv(?=\/|$)/, "venv");
  const commands = install.commands.map(([program, ...args]) => [rename(program), ...args.map(rename)] as const);
  return { ...install, commands, makes: ["venv"] };
}
