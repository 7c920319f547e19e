import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** What every sandboxed command lacks, also as root: capabilities, other processes' memory and messages, a terminal. */
export const CONFINED = ["--die-with-parent", "--unshare-user-try", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"];

/** A PID namespace: everything in it ends with its first process. */
export const OWN_PROCESSES = ["--unshare-pid", "--new-session"];

/**
 * Private devices, and the kernel's settings read-only. Root may write many of them by user id alone, so dropping
 * capabilities is not enough: a core pattern would run a program outside the sandbox.
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

/** The same where nothing of the kernel needs to be writable: one mount instead of one per setting. */
export function closedKernelFiles({ processes }: { processes: boolean }): string[] {
  return processes ? ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"] : kernelFiles({ processes });
}

/** Everything in /proc besides processes whose writing could harm others. */
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
