import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, extname, isAbsolute, join, resolve } from "node:path";
import { findHomesBeside } from "../home/data-folder.ts";
import { higherWall, protectionOf } from "../home/modes.ts";
import type { Mode, SandboxHeight } from "../home/safety-config.ts";
import { UserError } from "../lib/errors.ts";
import { createFolderNames } from "../lib/folder-names.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import { findPrograms, type Programs } from "./programs.ts";
import { createCaches } from "./wall/caches.ts";
import { type MountPlan, secretsView, type View, workspaceView } from "./wall/heights.ts";
import { createRecordSearch, hiddenWorktrees, recordsAround } from "./wall/hidden-worktrees.ts";
import { findHostSockets } from "./wall/host-sockets.ts";
import { CONFINED, closedKernelFiles, kernelFiles, kernelFilesOnReadOnlyRoot, OWN_PROCESSES } from "./wall/kernel.ts";
import { watchOtherMountPoints } from "./wall/other-mounts.ts";
import { probeSandbox, type SandboxStatus } from "./wall/probe.ts";
import type { SandboxProfile } from "./wall/profile.ts";
import { projectView } from "./wall/project-view.ts";
import { createTemporaries } from "./wall/temporary.ts";

export { probeSandbox, type SandboxProfile, type SandboxStatus };

export interface Sandbox {
  status(): Promise<SandboxStatus>;
  /** The configured sandbox height for a command, whether or not this machine supports it. */
  height(profile?: SandboxProfile): SandboxHeight;
  /** Wraps every program whose settings a model could have written. */
  wrap: Wrap;
}

/**
 * The program and arguments that run a command in the sandbox. At "secrets" it hides as much as this machine can; where
 * "workspace" is not possible, it throws a UserError.
 */
export type Wrap = (
  argv: readonly [string, ...string[]],
  cwd: string,
  profile?: SandboxProfile,
) => Promise<[string, ...string[]]>;

/** Runs a command without a sandbox. */
export const unwrapped: Wrap = async (argv) => [...argv];

/** What the sandbox needs to know about IO's own files. */
export interface OwnFiles {
  /** Files and folders that no command may write at the moment. */
  readOnly(): string[];
}

/** The sandbox settings of config.json. */
export interface WallSettings {
  /** Unset in "full". */
  mode?: Mode;
  /** Set explicitly; overrides the mode. */
  sandbox?: SandboxHeight | undefined;
  /** Paths that a workspace shows besides the project. */
  sandboxRead: readonly string[];
  sandboxNetwork: boolean;
}

export interface SandboxDeps {
  /** The data folder. */
  home: string;
  guard: OwnFiles;
  settings?: () => WallSettings;
  /** HOME and PATH decide what a workspace hides and which program folders it shows. */
  env?: NodeJS.ProcessEnv;
  /** The path of bubblewrap. */
  programs?: Pick<Programs, "find">;
  probe?: () => Promise<SandboxStatus>;
}

const DEFAULTS: WallSettings = { sandboxRead: [], sandboxNetwork: true };

const RECORDS_CACHE_MS = 30_000;

/** The remedy where "workspace" is not possible. */
export const WORKSPACE_REMEDY =
  'Install bubblewrap (apt install bubblewrap), allow user namespaces (docs/security.md says how), or set "sandbox" to "secrets" in config.json.';

/** Runs commands under bubblewrap where it works. */
export function createSandbox(deps: SandboxDeps): Sandbox {
  const { guard, settings = () => DEFAULTS, env = process.env } = deps;
  const programs = deps.programs ?? findPrograms({ env, closed: [deps.home] });
  const { probe = () => probeSandbox(programs.find("bwrap")) } = deps;
  const home = realOf(deps.home);
  const userHome = realOf(env.HOME || homedir());
  const others = watchOtherMountPoints(home);
  const status = probe();
  const recordsInside = createRecordSearch();
  // At "project" only old entries of /tmp are hidden, so a worktree that is new since the last search is visible.
  const oldRecordsInside = createRecordSearch(RECORDS_CACHE_MS);
  const namesIn = createFolderNames();
  const openTemporary = createTemporaries(join(home, "scratch", "temporary"), namesIn);
  const cachesOf = createCaches({ userHome, env });
  const kernel = status.then((found) =>
    found.kind === "open"
      ? { open: [], closed: [], onReadOnlyRoot: [] }
      : { open: kernelFiles(found), closed: closedKernelFiles(found), onReadOnlyRoot: kernelFilesOnReadOnlyRoot(found) },
  );

  const heightOf = (profile: SandboxProfile): SandboxHeight => {
    if (profile.outside) return "secrets";
    const { mode = "full", sandbox } = settings();
    return higherWall(protectionOf({ mode, sandbox }, profile.mode).sandbox, profile.height);
  };

  return {
    status: () => status,
    height: (profile = {}) => heightOf(profile),
    async wrap(argv, cwd, profile = {}) {
      const { sandboxRead, sandboxNetwork } = settings();
      const height = heightOf(profile);
      const found = await status;
      if (found.kind === "open") {
        // At "project" the shell tool asks a person instead.
        if (height !== "workspace") return [...argv];
        throw new UserError(
          `Commands are set to run in a workspace, which is not possible here: ${found.detail}. ${WORKSPACE_REMEDY}`,
        );
      }
      const ownFiles = guard.readOnly();
      makeMissing(ownFiles, home);
      const frozen = [...(profile.frozen ?? []), ...ownFiles];
      const folder = realOf(cwd);
      const inUse = [home, folder, ...(profile.place ? [realOf(profile.place)] : []), ...(profile.writable ?? [])];
      const [beside, hostSockets] = await Promise.all([findHomesBeside(home, namesIn), findHostSockets({ env, inUse, namesIn })]);
      const kernelArgs = await kernel;
      const view: View = {
        ...{ home, userHome, env, cwd: folder, kernel: kernelArgs[profile.closed ? "closed" : "open"] },
        others: [...others(), ...beside],
        hostSockets,
        profile: { ...profile, frozen },
      };
      const readable = sandboxRead.map((path) => resolve(userHome, path.replace(/^~(?:\/|$)/, "")));
      const network = sandboxNetwork || profile.network === true;
      const viewAt = async (wanted: SandboxHeight): Promise<MountPlan> => {
        // A command that writes only to given folders needs neither a temporary folder nor caches.
        if (wanted === "secrets" || (wanted === "project" && profile.closed)) return secretsView(view);
        if (wanted === "workspace") {
          const places = [realOf(profile.place ?? cwd), ...(profile.writable ?? []).map((path) => realOf(path))];
          return keepingWorktrees(
            view,
            (view) => workspaceView({ ...view, readable, network }),
            async (sees) => [...recordsAround(folder), ...(await Promise.all(places.filter(sees).map(recordsInside))).flat()],
          );
        }
        const agent = env.SSH_AUTH_SOCK && isAbsolute(env.SSH_AUTH_SOCK) ? [dirname(env.SSH_AUTH_SOCK)] : [];
        const read = [...frozen, ...(profile.readable ?? []), ...pathFolders(env), ...agent];
        const needed = [...inUse, userHome, ...read].map((path) => realOf(path));
        const project = realOf(profile.place ?? cwd);
        const temporary = await openTemporary({ project, needed, argv, hidden: [...view.others, ...hostSockets] });
        return keepingWorktrees(
          view,
          (view) =>
            projectView({
              ...view,
              kernel: kernelArgs.onReadOnlyRoot,
              temporary,
              cachesOf: (project) => cachesOf({ project, argv }),
            }),
          async () => [...recordsAround(folder), ...(temporary.isWhole ? [] : await oldRecordsInside(project))],
        );
      };
      const plan = await viewAt(height);
      if (!plan.sees(folder) || beside.some((path) => isWithin(path, folder)))
        throw new UserError(hiddenFolderMessage(folder, height));
      const confined = [...CONFINED, ...(found.processes ? OWN_PROCESSES : [])];
      const bwrap = programs.find("bwrap");
      if (bwrap.path === undefined) throw new UserError(`Nothing was run: ${bwrap.why}.`);
      return [bwrap.path, ...confined, ...plan.args, "--chdir", folder, "--", ...argv];
    },
  };
}

/** A sandbox in which git cannot prune the worktrees that are hidden from it. */
async function keepingWorktrees(
  view: View,
  viewOf: (view: View) => MountPlan,
  records: (sees: MountPlan["sees"]) => Promise<string[]>,
): Promise<MountPlan> {
  const plan = viewOf(view);
  if (view.profile.closed) return plan;
  const hidden = hiddenWorktrees(await records(plan.sees), plan.sees);
  if (hidden.length === 0) return plan;
  return viewOf({ ...view, profile: { ...view.profile, frozen: [...(view.profile.frozen ?? []), ...hidden] } });
}

/** A missing folder cannot be mounted over, and a command could create it, so it is created first. */
function makeMissing(paths: readonly string[], home: string): void {
  const isCovered = (path: string) => isWithin(home, path) || paths.some((other) => other !== path && isWithin(other, path));
  for (const path of paths) {
    if (existsSync(path) || extname(path) !== "" || isCovered(path)) continue;
    try {
      mkdirSync(path, { recursive: true, mode: 0o755 });
    } catch {
      // If IO may not create it, no command may either.
    }
  }
}

/** The absolute folders in PATH. */
function pathFolders({ PATH = "" }: NodeJS.ProcessEnv): string[] {
  return PATH.split(delimiter).filter((folder) => isAbsolute(folder));
}

function hiddenFolderMessage(folder: string, height: SandboxHeight): string {
  return height !== "workspace"
    ? `${folder} lies in IO's own folder, which commands do not see. Choose a folder outside it.`
    : `${folder} is out of sight: commands see their own project and no other folder. The user can show it with "sandboxRead" in config.json.`;
}
