import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { dirname, relative } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import { anchors } from "./anchors.ts";
import { cover, hideOthers, seal, sentFiles, shownInside } from "./data-folder.ts";
import { hideHostSockets } from "./host-sockets.ts";
import { bindAll, type Grant, type SandboxProfile } from "./profile.ts";
import { toolchains } from "./toolchains.ts";

/** The parts of a sandbox's view of the machine. All folders are real paths. */
export interface View {
  /** The data folder. */
  home: string;
  userHome: string;
  env: NodeJS.ProcessEnv;
  /** Arguments for devices, processes and kernel settings. */
  kernel: readonly string[];
  /** Other mount points of the data folder. */
  others: readonly string[];
  /** Sockets, and folders of sockets, of programs that would start commands outside. */
  hostSockets: readonly string[];
  profile: SandboxProfile;
  cwd: string;
}

/** The arguments that set up a view, and whether a folder is visible in it. */
export interface MountPlan {
  args: string[];
  sees: (folder: string) => boolean;
}

/** The whole machine as the user sees it, except IO's own folder. */
export function secretsView(view: View): MountPlan {
  const { home, env, kernel, others, hostSockets, profile, cwd } = view;
  if (profile.closed) return closedView(view);
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = projectFolderOf(home, profile.place ?? cwd);
  const writable: Grant[] = real(profile.writable).map((path) => ({ path, write: true }));
  const own: Grant[] = [...(place === undefined ? [] : [{ path: place, write: true }]), ...writable];
  const frozen: Grant[] = frozenIn(profile).map((path) => ({ path, write: false }));
  const inside = [
    ...shownInside(home),
    ...own.filter(isInside),
    ...frozen.filter((grant) => isInside(grant) && isBelow(own, grant)),
  ];
  // The user's own files are already visible and writable, so only the read-only ones need a mount.
  const closed = frozen.filter((each) => !isInside(each));
  const kept = anchors([home, ...closed.map(({ path }) => path)], closed);
  const outside = [...writable.filter((each) => !isInside(each)), ...closed, ...kept];
  return {
    args: [
      ...["--bind", "/", "/", ...bindAll(outside), ...kernel, ...hideHostSockets(hostSockets, env), ...hideOthers(others)],
      ...withinCover(home, inside),
    ],
    sees: (folder) => isVisible(home, inside, folder),
  };
}

/** Whether a folder is visible: of IO's own folder only what is listed, of the rest of the machine everything. */
export function isVisible(home: string, inside: readonly Grant[], folder: string): boolean {
  return !isWithin(home, folder) || folder === home || isBelow(inside, { path: folder });
}

/** The same view, but read-only except for listed folders. Temporary files go to the private /dev/shm. */
function closedView({ home, env, kernel, others, hostSockets, profile, cwd }: View): MountPlan {
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = projectFolderOf(home, profile.place ?? cwd);
  const shown: Grant[] = [...shownInside(home).map(({ path }) => path), ...(place === undefined ? [] : [place])].map((path) => ({
    path,
    write: false,
  }));
  const named = [...real(profile.writable), ...(place === undefined || profile.access === "read" ? [] : [place])];
  const own: Grant[] = [...new Set(named)].map((path) => ({ path, write: true }));
  const frozen = frozenIn(profile).filter((path) => isBelow(own, { path }));
  const closed: Grant[] = frozen.map((path) => ({ path, write: false }));
  const kept = anchors(frozen, closed).filter(({ path }) => isBelow(own, { path: dirname(path) }));
  const grants = [...own, ...closed, ...kept];
  const inside = [...shown.filter((each) => isInside(each) && !isBelow(own, each)), ...grants.filter(isInside)];
  return {
    args: [
      ...["--ro-bind", "/", "/", ...bindAll(grants.filter((each) => !isInside(each)))],
      ...[...kernel, ...hideHostSockets(hostSockets, env), ...hideOthers(others), ...withinCover(home, inside)],
      ...["--setenv", "TMPDIR", "/dev/shm"],
    ],
    sees: (folder) => isVisible(home, inside, folder),
  };
}

const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];
/** Entries of the system folders that only root may read. */
const PRIVATE = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/sudoers.d"];
const TEMPORARY = ["/tmp", "/var/tmp", "/run"];

export interface WorkspaceView extends View {
  readable: readonly string[];
  network: boolean;
}

/** Shows only programs, the command's own folder, and what the settings and the profile add. */
export function workspaceView(view: WorkspaceView): MountPlan {
  const { home, userHome, env, kernel, others, hostSockets, profile, cwd, readable, network } = view;
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = projectFolderOf(home, profile.place ?? cwd, userHome);
  const system = SYSTEM.filter((path) => existsSync(path));
  const own: Grant[] = [
    ...(place === undefined ? [] : [{ path: place, write: profile.access !== "read" }]),
    ...real(profile.writable).map((path) => ({ path, write: true })),
  ];
  const read: Grant[] = [
    ...toolchains(env.PATH ?? "", { userHome, shown: system }),
    ...real([...readable, ...(profile.readable ?? [])]),
  ].map((path) => ({ path, write: false }));
  const frozen = frozenIn(profile).map((path) => ({ path, write: false }));
  const isSent = ({ path }: Grant) => isWithin(sentFiles(home), path);
  const grants = [
    ...own,
    ...read.filter((each) => !isInside(each) || isSent(each)),
    ...frozen.filter((each) => isBelow(own, each)),
  ];
  const shown = [...system, ...grants.map(({ path }) => path)];
  const isShown = (path: string) => shown.some((folder) => isWithin(folder, path));
  return {
    args: [
      ...(network ? [] : ["--unshare-net"]),
      ...[...system.flatMap(showSystem), ...PRIVATE.flatMap(blank), ...kernel],
      ...[...TEMPORARY.flatMap((path) => ["--tmpfs", path]), ...nameServers(), "--tmpfs", userHome],
      ...bindAll(grants.filter((each) => !isInside(each))),
      ...hideOthers([...others, ...hostSockets].filter(isShown)),
      ...withinCover(home, grants.filter(isInside)),
      // Nothing else exists between the mounted folders: files written there would be lost silently, so it is read-only.
      ...["--remount-ro", "/", "--setenv", "TMPDIR", "/tmp"],
    ],
    sees: (folder) => {
      if (folder === userHome || folder === home || TEMPORARY.includes(folder)) return true;
      const inSight = isWithin(home, folder) ? grants.filter(isInside).map(({ path }) => path) : shown;
      return inSight.some((each) => isWithin(each, folder));
    },
  };
}

/** Shows the data folder with only these paths in it. */
export function withinCover(home: string, grants: readonly Grant[]): string[] {
  if (!existsSync(home)) return [];
  return [...cover(home), ...bindAll(grants.filter(({ path }) => existsSync(path))), ...seal(home)];
}

/** The data folder, its parents and the home are never a project; inside the data folder only worktrees and scratch folders are. */
export function projectFolderOf(home: string, folder: string, userHome = home): string | undefined {
  const path = realOf(folder);
  if (isWithin(path, home) || isWithin(path, userHome)) return undefined;
  if (isWithin(home, path) && !/^(?:runs\/[^/]+\/worktrees|work)\/[^/]/.test(relative(home, path))) return undefined;
  return path;
}

export function isBelow(grants: readonly Grant[], { path }: { path: string }): boolean {
  return grants.some((grant) => isWithin(grant.path, path));
}

export function real(paths: readonly string[] | undefined): string[] {
  return (paths ?? []).map((path) => realOf(path));
}

export function frozenIn({ frozen = [] }: SandboxProfile): string[] {
  return real(frozen.filter((path) => existsSync(path)));
}

function showSystem(path: string): string[] {
  return lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

/** Some systems keep resolv.conf in /run. */
function nameServers(): string[] {
  const file = realOf("/etc/resolv.conf");
  return isWithin("/run", file) ? ["--ro-bind-try", file, file] : [];
}

function blank(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink()) return [];
  return found.isDirectory() ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path];
}
