import { homedir } from "node:os";
import { resolve } from "node:path";
import { UserError } from "../lib/errors.ts";
import { realOf } from "../lib/real-path.ts";
import type { SandboxHeight } from "../lib/safety-config.ts";
import { findPrograms, type Programs } from "./programs.ts";
import { type Seen, secretsView, type View, workspaceView } from "./wall/heights.ts";
import { CONFINED, closedKernelFiles, kernelFiles, OWN_PROCESSES } from "./wall/kernel.ts";
import { watchOtherPlaces } from "./wall/other-mounts.ts";
import { probeSandbox, type SandboxStatus } from "./wall/probe.ts";
import type { Stand } from "./wall/stand.ts";

export { probeSandbox, type SandboxStatus, type Stand };

export interface Sandbox {
  status(): Promise<SandboxStatus>;
  /** Every program whose own settings a model could have written is run through it. */
  wrap: Wrap;
}

/**
 * The program and arguments that run a command behind the wall. At the height "secrets" as well hidden as this machine can;
 * what cannot be kept at the height "workspace" is a UserError.
 */
export type Wrap = (argv: readonly [string, ...string[]], cwd: string, stand?: Stand) => Promise<[string, ...string[]]>;

/** Runs a command as it stands. */
export const unwrapped: Wrap = async (argv) => [...argv];

/** What the sandbox asks about IO's own files. */
export interface OwnFiles {
  /** The files and folders that no command may write just now. */
  readOnly(): string[];
}

/** What config.json says about the wall. */
export interface WallSettings {
  sandbox: SandboxHeight;
  /** What a workspace shows besides the project. */
  sandboxRead: readonly string[];
  sandboxNetwork: boolean;
}

export interface SandboxDeps {
  /** The data folder. */
  home: string;
  guard: OwnFiles;
  settings?: () => WallSettings;
  /** HOME and PATH say what a workspace hides and what it needs to run programs. */
  env?: NodeJS.ProcessEnv;
  /** Where bubblewrap is found. */
  programs?: Pick<Programs, "find">;
  probe?: () => Promise<SandboxStatus>;
}

const DEFAULTS: WallSettings = { sandbox: "secrets", sandboxRead: [], sandboxNetwork: true };

/** What to do where "workspace" cannot be kept. */
export const WORKSPACE_REMEDY =
  'Install bubblewrap (apt install bubblewrap), allow user namespaces (docs/security.md says how), or set "sandbox" to "secrets" in config.json.';

/** Runs commands under bubblewrap where it works. */
export function createSandbox(deps: SandboxDeps): Sandbox {
  const { guard, settings = () => DEFAULTS, env = process.env } = deps;
  const programs = deps.programs ?? findPrograms({ env, closed: [deps.home] });
  const { probe = () => probeSandbox(programs.find("bwrap")) } = deps;
  const home = realOf(deps.home);
  const userHome = realOf(env.HOME || homedir());
  const others = watchOtherPlaces(home);
  const status = probe();
  const kernel = status.then((found) =>
    found.kind === "open" ? { open: [], closed: [] } : { open: kernelFiles(found), closed: closedKernelFiles(found) },
  );

  return {
    status: () => status,
    async wrap(argv, cwd, stand = {}) {
      const { sandbox, sandboxRead, sandboxNetwork } = settings();
      const height = sandbox === "workspace" || stand.height === "workspace" ? "workspace" : "secrets";
      const found = await status;
      if (found.kind === "open") {
        if (height === "secrets") return [...argv];
        throw new UserError(
          `Commands are set to run in a workspace, which is not possible here: ${found.detail}. ${WORKSPACE_REMEDY}`,
        );
      }
      const frozen = [...(stand.frozen ?? []), ...guard.readOnly()];
      const folder = realOf(cwd);
      const view: View = {
        ...{ home, userHome, env, cwd: folder, kernel: (await kernel)[stand.closed ? "closed" : "open"] },
        others: others(),
        stand: { ...stand, frozen },
      };
      const readable = sandboxRead.map((path) => resolve(userHome, path.replace(/^~(?:\/|$)/, "")));
      const network = sandboxNetwork || stand.network === true;
      const seen: Seen = height === "secrets" ? secretsView(view) : workspaceView({ ...view, readable, network });
      if (!seen.sees(folder)) throw new UserError(outOfSight(folder, height));
      const confined = [...CONFINED, ...(found.processes ? OWN_PROCESSES : [])];
      const bwrap = programs.find("bwrap");
      if (bwrap.path === undefined) throw new UserError(`Nothing was run: ${bwrap.why}.`);
      return [bwrap.path, ...confined, ...seen.args, "--chdir", folder, "--", ...argv];
    },
  };
}

function outOfSight(folder: string, height: SandboxHeight): string {
  return height === "secrets"
    ? `${folder} lies in IO's own folder, which commands do not see. Choose a folder outside it.`
    : `${folder} is out of sight: commands see their own project and no other folder. The user can show it with "sandboxRead" in config.json.`;
}
