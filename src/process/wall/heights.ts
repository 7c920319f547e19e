import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { dirname, relative } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import { anchors } from "./anchors.ts";
import { cover, hideOthers, seal, sentFiles, shownInside } from "./data-folder.ts";
import { hideDoors } from "./doors.ts";
import { bindAll, type Grant, type Stand } from "./stand.ts";
import { toolchains } from "./toolchains.ts";

/** What a view of the machine is made of. All folders are real ones, without links. */
export interface View {
  /** The data folder. */
  home: string;
  userHome: string;
  env: NodeJS.ProcessEnv;
  /** The devices, processes and settings of the kernel that are shown. */
  kernel: readonly string[];
  /** Other places at which mounts show the data folder. */
  others: readonly string[];
  stand: Stand;
  cwd: string;
}

/** The arguments that make a view, and whether a folder can be seen in it. */
export interface Seen {
  args: string[];
  sees: (folder: string) => boolean;
}

/** The whole machine as the user sees it, but for IO's own folder. */
export function secretsView(view: View): Seen {
  const { home, env, kernel, others, stand, cwd } = view;
  if (stand.closed) return closedView(view);
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = placeIn(home, stand.place ?? cwd);
  const writable: Grant[] = real(stand.writable).map((path) => ({ path, write: true }));
  const own: Grant[] = [...(place === undefined ? [] : [{ path: place, write: true }]), ...writable];
  const frozen: Grant[] = frozenIn(stand).map((path) => ({ path, write: false }));
  const inside = [
    ...shownInside(home),
    ...own.filter(isInside),
    ...frozen.filter((grant) => isInside(grant) && isBelow(own, grant)),
  ];
  // The user's own files are there already: only what is not to be written has to be said.
  const closed = frozen.filter((each) => !isInside(each));
  const kept = anchors([home, ...closed.map(({ path }) => path)], closed);
  const outside = [...writable.filter((each) => !isInside(each)), ...closed, ...kept];
  return {
    args: [
      ...["--bind", "/", "/", ...bindAll(outside), ...kernel, ...hideDoors(env), ...hideOthers(others)],
      ...withinCover(home, inside),
    ],
    sees: (folder) => isInSight(home, inside, folder),
  };
}

/** Of IO's own folder only what is shown; of the rest of the machine everything. */
function isInSight(home: string, inside: readonly Grant[], folder: string): boolean {
  return !isWithin(home, folder) || folder === home || isBelow(inside, { path: folder });
}

/** The same, where nothing can be written but what is named; for temporary files there is a folder of its own. */
function closedView({ home, env, kernel, others, stand, cwd }: View): Seen {
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = placeIn(home, stand.place ?? cwd);
  const shown: Grant[] = [...shownInside(home).map(({ path }) => path), ...(place === undefined ? [] : [place])].map((path) => ({
    path,
    write: false,
  }));
  const named = [...real(stand.writable), ...(place === undefined || stand.access === "read" ? [] : [place])];
  const own: Grant[] = [...new Set(named)].map((path) => ({ path, write: true }));
  const frozen = frozenIn(stand).filter((path) => isBelow(own, { path }));
  const closed: Grant[] = frozen.map((path) => ({ path, write: false }));
  const kept = anchors(frozen, closed).filter(({ path }) => isBelow(own, { path: dirname(path) }));
  const grants = [...own, ...closed, ...kept];
  const inside = [...shown.filter((each) => isInside(each) && !isBelow(own, each)), ...grants.filter(isInside)];
  return {
    args: [
      ...["--ro-bind", "/", "/", ...bindAll(grants.filter((each) => !isInside(each)))],
      ...[...kernel, ...hideDoors(env), ...hideOthers(others), ...withinCover(home, inside)],
      ...["--setenv", "TMPDIR", "/dev/shm"],
    ],
    sees: (folder) => isInSight(home, inside, folder),
  };
}

const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];
/** What only root could read in there. */
const PRIVATE = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/sudoers.d"];
const TEMPORARY = ["/tmp", "/var/tmp", "/run"];

/** Programs and nothing else, but for the command's own place. */
export function workspaceView(view: View & { readable: readonly string[]; network: boolean }): Seen {
  const { home, userHome, env, kernel, others, stand, cwd, readable, network } = view;
  const isInside = ({ path }: Grant) => isWithin(home, path);
  const place = placeIn(home, stand.place ?? cwd, userHome);
  const system = SYSTEM.filter((path) => existsSync(path));
  const own: Grant[] = [
    ...(place === undefined ? [] : [{ path: place, write: stand.access !== "read" }]),
    ...real(stand.writable).map((path) => ({ path, write: true })),
  ];
  const read: Grant[] = [
    ...toolchains(env.PATH ?? "", { userHome, shown: system }),
    ...real([...readable, ...(stand.readable ?? [])]),
  ].map((path) => ({ path, write: false }));
  const frozen = frozenIn(stand).map((path) => ({ path, write: false }));
  const isSent = ({ path }: Grant) => isWithin(sentFiles(home), path);
  const grants = [
    ...own,
    ...read.filter((each) => !isInside(each) || isSent(each)),
    ...frozen.filter((each) => isBelow(own, each)),
  ];
  const shown = [...system, ...grants.map(({ path }) => path)];
  return {
    args: [
      ...(network ? [] : ["--unshare-net"]),
      ...[...system.flatMap(showSystem), ...PRIVATE.flatMap(blank), ...kernel],
      ...[...TEMPORARY.flatMap((path) => ["--tmpfs", path]), ...nameServers(), "--tmpfs", userHome],
      ...bindAll(grants.filter((each) => !isInside(each))),
      ...hideOthers(others.filter((path) => shown.some((folder) => isWithin(folder, path)))),
      ...withinCover(home, grants.filter(isInside)),
      // Between the places that are shown lies nothing: what is written there would be lost without a word.
      ...["--remount-ro", "/", "--setenv", "TMPDIR", "/tmp"],
    ],
    sees: (folder) => {
      if (folder === userHome || folder === home || TEMPORARY.includes(folder)) return true;
      const inSight = isWithin(home, folder) ? grants.filter(isInside).map(({ path }) => path) : shown;
      return inSight.some((each) => isWithin(each, folder));
    },
  };
}

/** The data folder with nothing in it but these. */
function withinCover(home: string, grants: readonly Grant[]): string[] {
  if (!existsSync(home)) return [];
  return [...cover(home), ...bindAll(grants.filter(({ path }) => existsSync(path))), ...seal(home)];
}

/** A folder that holds the data folder or the user's home is nobody's place, nor is one inside the data folder but for a worktree. */
function placeIn(home: string, folder: string, userHome = home): string | undefined {
  const path = realOf(folder);
  if (isWithin(path, home) || isWithin(path, userHome)) return undefined;
  if (isWithin(home, path) && !/^runs\/[^/]+\/worktrees\/[^/]/.test(relative(home, path))) return undefined;
  return path;
}

function isBelow(grants: readonly Grant[], { path }: { path: string }): boolean {
  return grants.some((grant) => isWithin(grant.path, path));
}

function real(paths: readonly string[] | undefined): string[] {
  return (paths ?? []).map((path) => realOf(path));
}

function frozenIn({ frozen = [] }: Stand): string[] {
  return real(frozen.filter((path) => existsSync(path)));
}

function showSystem(path: string): string[] {
  return lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

/** Some systems keep the file that names the name servers in /run. */
function nameServers(): string[] {
  const file = realOf("/etc/resolv.conf");
  return isWithin("/run", file) ? ["--ro-bind-try", file, file] : [];
}

function blank(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink()) return [];
  return found.isDirectory() ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path];
}
