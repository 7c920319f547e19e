import { accessSync, constants, realpathSync, type Stats, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, delimiter, dirname, isAbsolute, join, sep } from "node:path";
import { isExecutable } from "../lib/is-executable.ts";
import { realOf } from "../lib/real-path.ts";

/** Every program that IO itself starts. */
export const PROGRAMS = [
  "bwrap",
  "git",
  "gh",
  "npm",
  "node",
  "secret-tool",
  "security",
  "systemctl",
  "launchctl",
  "nats-server",
] as const;
export type ProgramName = (typeof PROGRAMS)[number];

/** The path of a program, or why it may not be started. */
export type FoundProgram = { path: string } | { path?: undefined; why: string };

export interface Programs {
  /** Checked at every start: a program that was replaced meanwhile is no longer started. */
  find(name: ProgramName): FoundProgram;
}

export interface ProgramsDeps {
  env: NodeJS.ProcessEnv;
  /** Folders that others can write to; programs there are ignored. */
  closed: readonly string[];
}

interface Pin {
  /** The path that is started: the file itself, or a link whose name the program needs to know its role. */
  path: string;
  real: string;
  /** Values that change when the file is replaced or edited; undefined if nobody with our permissions could do that. */
  state: string | undefined;
}

/** Finds every program once, as an absolute path; later changes of PATH or new files have no effect. */
export function findPrograms({ env, closed }: ProgramsDeps): Programs {
  const folders = (env.PATH ?? "/usr/local/bin:/usr/bin:/bin").split(delimiter);
  const avoided = closed.map((folder) => realOf(folder));
  const found = new Map(PROGRAMS.map((name) => [name, name === "node" ? pinned(process.execPath, name) : lookUp(name)]));

  function lookUp(name: ProgramName): Pin | string {
    const passedOver: string[] = [];
    for (const folder of new Set(folders)) {
      const candidate = join(folder === "" ? "." : folder, name);
      if (!isExecutable(candidate)) continue;
      const why = whyAvoided(folder, candidate, avoided);
      if (why === undefined) return pinned(candidate, name);
      passedOver.push(`${folder || "an empty entry"}: ${why}`);
    }
    const besides = passedOver.length === 0 ? "" : ` (passed over, ${passedOver.join("; ")})`;
    return `${name} was found in no folder of PATH that can be trusted${besides}`;
  }

  return {
    find(name) {
      const pin = found.get(name)!;
      if (typeof pin === "string") return { why: pin };
      if (pin.state === undefined || stateOf(pin) === pin.state) return { path: pin.path };
      return {
        why: `${pin.path} is not the file that it was when IO started. If you updated it, restart IO with "io restart"; if not, find out who did`,
      };
    },
  };
}

/** The PATH folders in which no command with our permissions could put a program; for root, the system folders. */
export function lastingPath({ PATH = "", HOME = homedir() }: NodeJS.ProcessEnv): string {
  const isRoot = process.getuid?.() === 0;
  const isLasting = (folder: string) => {
    if (!isAbsolute(folder) || !may(folder, constants.X_OK)) return false;
    const real = realOf(folder);
    const around = [folder, real].flatMap(withAncestors);
    if (!isRoot) return !around.some((place) => may(place, constants.W_OK));
    return (
      ![HOME, tmpdir()].some((place) => around.includes(realOf(place))) && !around.some((place) => isOpenToAll(statSync(place)))
    );
  };
  return PATH.split(delimiter).filter(isLasting).join(delimiter);
}

/** A file that is named like the program is started by its real path; others (snap, busybox, version managers) by link. */
function pinned(path: string, name: string): Pin {
  const real = realpathSync.native(path);
  const pin = { path: basename(real).startsWith(name) ? real : path, real, state: undefined };
  return { ...pin, state: canBeChanged(pin) ? stateOf(pin) : undefined };
}

function stateOf({ path, real }: Pin): string | undefined {
  try {
    if (realpathSync.native(path) !== real) return undefined;
    const { dev, ino, size, mtimeNs, ctimeNs, mode, uid } = statSync(real, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs, mode, uid].join(" ");
  } catch {
    // It is gone, which counts as a change.
    return undefined;
  }
}

/** Whether a command with our permissions could replace a program. */
function canBeChanged({ path, real }: Pin): boolean {
  return [path, real].flatMap(withAncestors).some((place) => may(place, constants.W_OK));
}

/** A path and all its parents except the root. */
function withAncestors(path: string): string[] {
  return dirname(path) === path ? [] : [path, ...withAncestors(dirname(path))];
}

function whyAvoided(folder: string, candidate: string, closed: readonly string[]): string | undefined {
  if (!isAbsolute(folder)) return "it depends on where IO is started";
  if (realOf(folder).split(sep).includes("node_modules")) return "it belongs to a project";
  const real = realpathSync.native(candidate);
  for (const place of [realOf(folder), dirname(real)]) {
    if (closed.some((each) => place === each || place.startsWith(each + sep))) return "others put files there";
    const stats = statSync(place);
    if (isOpenToAll(stats) && !(isSticky(stats) && isOurs(statSync(real)))) return "anybody can write there";
  }
  return isOpenToAll(statSync(real)) ? "anybody can write the file" : undefined;
}

const isOpenToAll = ({ mode }: Stats) => (mode & 0o002) !== 0;
const isSticky = ({ mode }: Stats) => (mode & 0o1000) !== 0;
const isOurs = ({ uid }: Stats) => uid === 0 || uid === process.getuid?.();

function may(path: string, how: number): boolean {
  try {
    accessSync(path, how);
    return true;
  } catch {
    // Missing, or no permission.
    return false;
  }
}
