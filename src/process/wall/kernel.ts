import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** What every command behind the wall is without, whoever runs IO: powers, other processes' memory and messages, a terminal. */
export const CONFINED = ["--die-with-parent", "--unshare-user-try", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"];

/** A process list of its own; everything in it ends when its first process does. */
export const OWN_PROCESSES = ["--unshare-pid", "--new-session"];

/**
 * Devices of its own, and the kernel's settings read-only. The kernel lets root write many of them by its number alone, so
 * that dropping its capabilities is not enough: a core pattern would run a program outside the wall.
 */
export function kernelFiles({ processes }: { processes: boolean }): string[] {
  const settings = kernelSettings().flatMap((path) => ["--ro-bind-try", path, path]);
  return [
    "--dev",
    "/dev",
    ...(processes ? ["--proc", "/proc"] : ["--bind", "/proc", "/proc"]),
    ...settings,
    "--ro-bind-try",
    "/sys",
    "/sys",
  ];
}

/** The same where nobody has a reason to write anything of the kernel's: one mount in place of one for each setting. */
export function closedKernelFiles({ processes }: { processes: boolean }): string[] {
  return processes ? ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"] : kernelFiles({ processes });
}

/** Everything in /proc that is no process and could be written to somebody else's harm. */
function kernelSettings(): string[] {
  if (!existsSync("/proc/sys")) return [];
  return readdirSync("/proc")
    .filter((name) => !/^(?:\d+|self|thread-self|tty|sysvipc|pressure)$/.test(name))
    .map((name) => join("/proc", name))
    .filter((path) => {
      const found = lstatSync(path, { throwIfNoEntry: false });
      return found !== undefined && (found.isDirectory() || (found.isFile() && (found.mode & 0o222) !== 0));
    });
}
