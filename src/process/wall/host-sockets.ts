import { type Dirent, existsSync, lstatSync, mkdirSync, opendirSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { FolderNames } from "../../lib/folder-names.ts";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";

/** Programs whose sockets stay visible: they sign or run containers, and projects need them. */
const KEPT = ["SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST"];
/** Variables whose sockets are hidden even before they exist; for others only existing sockets count. */
const NAMES_A_SOCKET = /SOCK|DBUS|TMUX|SCREENDIR|RUNTIME_DIR|IPC|LISTEN|DISPLAY|AGENT|SESSION_MANAGER|HOOK/i;
const FOLDERS = [
  "/run/systemd/private",
  "/run/user",
  "/run/dbus",
  "/run/screen",
  "/run/uscreens",
  "/run/tmux",
  "/tmp/screens",
  "/tmp/uscreens",
  "/tmp/.X11-unix",
];
/** Prefixes of folders in /tmp where editors, terminals and ssh agents keep sockets. */
const IN_TMP = /^(?:ssh-|emacs\d|nvim\.|zellij-|abduco)/;
/** Sockets directly in /tmp of programs that run commands for anyone who connects, or hold keys. */
const SOCKETS_IN_TMP = /^(?:vscode-|kitty|mykitty|nvim|kwallet|dtach)/;
/** The largest directory that is listed whole, in bytes, and how many entries of a larger one are examined. */
const LARGE_TMP = 500_000;
const MAX_IN_TMP = 5_000;
/** Folders with much besides sockets: only the socket itself is hidden. */
const SHARED = ["/", "/tmp", "/var/tmp", "/run", "/dev/shm"];

export interface HostSocketsDeps {
  env: NodeJS.ProcessEnv;
  /** Paths that a command must see. No folder that contains one of them is hidden. */
  inUse: readonly string[];
  namesIn: FolderNames;
  uid?: number;
}

/**
 * Sockets of programs that start commands outside the sandbox for anyone who connects: those in the environment and the
 * usual ones. A folder of sockets is hidden as a whole, including sockets made later.
 */
export async function findHostSockets({
  env,
  inUse,
  namesIn,
  uid = process.getuid?.() ?? 0,
}: HostSocketsDeps): Promise<string[]> {
  const home = realOf(env.HOME || homedir());
  const terminals = join(env.TMUX_TMPDIR || "/tmp", `tmux-${uid}`);
  makeFolder(terminals);
  const named = [env.SCREENDIR, env.XDG_RUNTIME_DIR].flatMap((folder) => (folder && isAbsolute(folder) ? [realOf(folder)] : []));
  const sockets = Object.entries(env).flatMap(([name, value]) => (KEPT.includes(name) ? [] : socketsIn(name, value ?? "")));
  const isShared = (folder: string) => [...SHARED, home, ...inUse].some((place) => isWithin(folder, place));
  const hidden = [
    ...[...FOLDERS, terminals, join(home, ".screen")],
    ...keyHolders(home, env),
    ...(await inTmp(namesIn)),
    ...named.filter((folder) => !isShared(folder)),
    ...sockets.flatMap((socket) => {
      const folder = dirname(socket);
      return !isShared(folder) && containsOnlySockets(folder) ? [folder] : [socket];
    }),
  ];
  const found = [...new Set(hidden.filter((path) => existsSync(path)).map((path) => realOf(path)))];
  return found.filter((path) => !found.some((folder) => folder !== path && isWithin(folder, path)));
}

/** The arguments that hide them. The ssh agent stays reachable. */
export function hideHostSockets(sockets: readonly string[], { SSH_AUTH_SOCK }: NodeJS.ProcessEnv): string[] {
  const agent = SSH_AUTH_SOCK === undefined ? undefined : realOf(SSH_AUTH_SOCK);
  const kept = agent !== undefined && sockets.some((socket) => isWithin(socket, agent)) ? ["--bind-try", agent, agent] : [];
  return [...sockets.flatMap((path) => (isFolder(path) ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path])), ...kept];
}

/** Sockets of gpg and ssh agents, keyrings and shared ssh connections. */
function keyHolders(home: string, { GNUPGHOME, GNOME_KEYRING_CONTROL }: NodeJS.ProcessEnv): string[] {
  const ssh = join(home, ".ssh");
  const inSsh = entriesIn(ssh).flatMap((entry) => (entry.isDirectory() ? [join(ssh, entry.name)] : []));
  const keyrings = entriesIn(join(home, ".cache")).filter(({ name }) => name.startsWith("keyring-"));
  const named = [GNUPGHOME, GNOME_KEYRING_CONTROL].filter((path) => path !== undefined && isAbsolute(path)) as string[];
  const folders = [...named, join(home, ".gnupg"), ssh, join(home, ".local", "share", "wezterm"), ...inSsh];
  return [
    ...[join(ssh, "agent"), join(home, ".abduco"), ...keyrings.map(({ name }) => join(home, ".cache", name))],
    ...folders.flatMap((folder) => entriesIn(folder).flatMap((entry) => (entry.isSocket() ? [join(folder, entry.name)] : []))),
  ];
}

async function inTmp(namesIn: FolderNames): Promise<string[]> {
  const isDoor = (name: string) =>
    (IN_TMP.test(name) && isFolder(join("/tmp", name))) || (SOCKETS_IN_TMP.test(name) && isSocket(join("/tmp", name)));
  const isLarge = (statSync("/tmp", { throwIfNoEntry: false })?.size ?? 0) >= LARGE_TMP;
  const names = isLarge ? entriesIn("/tmp", MAX_IN_TMP).map(({ name }) => name) : await namesIn("/tmp");
  return names.flatMap((name) => (isDoor(name) ? [join("/tmp", name)] : []));
}

/** The first entries of a folder; none if it does not exist. */
function entriesIn(folder: string, most = 1_000): Dirent[] {
  const entries: Dirent[] = [];
  try {
    const open = opendirSync(folder, { bufferSize: 256 });
    try {
      for (let entry = open.readSync(); entry !== null && entries.length < most; entry = open.readSync()) entries.push(entry);
    } finally {
      open.closeSync();
    }
  } catch {
    // Missing, or inaccessible.
  }
  return entries;
}

/** The socket paths in a variable such as `unix:path=/run/x,guid=1` or `/tmp/tmux-0/default,7,0`. */
function socketsIn(name: string, value: string): string[] {
  if (value.length > 4_000 || (!NAMES_A_SOCKET.test(name) && !/^(?:\/[^:]*$|unix:)/.test(value))) return [];
  return value.split(/[,;:=\s]+/).flatMap((part) => {
    const path = part.startsWith("//") ? part.slice(1) : part;
    const isOne = isAbsolute(path) && (isSocket(path) || (NAMES_A_SOCKET.test(name) && !existsSync(path)));
    return isOne ? [realOf(path)] : [];
  });
}

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function isSocket(path: string): boolean {
  try {
    return lstatSync(realOf(path)).isSocket();
  } catch {
    return false;
  }
}

function containsOnlySockets(folder: string): boolean {
  try {
    return readdirSync(folder, { withFileTypes: true }).every((entry) => entry.isSocket() || /\.(?:lock|pid)$/.test(entry.name));
  } catch {
    return false;
  }
}

/** tmux uses an existing folder; one that it creates later would not be hidden. */
function makeFolder(path: string): void {
  try {
    if (isAbsolute(path) && !existsSync(path) && existsSync(dirname(path))) mkdirSync(path, { mode: 0o700 });
  } catch {
    // It exists, or no command can create it either.
  }
}

/** Container engines' sockets, which give access to every file on the machine. At "secrets" they stay visible for projects. */
export const CONTAINER_SOCKETS = [
  "/run/docker.sock",
  "/run/podman/podman.sock",
  "/run/containerd/containerd.sock",
  "/var/lib/incus/unix.socket",
  "/var/snap/lxd/common/lxd/unix.socket",
];
