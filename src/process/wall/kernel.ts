import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Isolates every sandboxed command, even root's: no capabilities, and its own shared memory, message queues and host name. */
export const CONFINED = ["--die-with-parent", "--unshare-user-try", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"];

/** A PID namespace, in which everything ends with its first process, and a session without the user's terminal. */
export const OWN_PROCESSES = ["--unshare-pid", "--new-session"];

/**
 * Private devices, and the kernel's settings read-only. Root may write many of them by user id alone, so dropping
 * capabilities is not enough: a core pattern would run a program outside the sandbox.
 */
export function kernelFiles({ processes }: { processes: boolean }): string[] {
  return [...kernelFilesOnReadOnlyRoot({ processes }), "--ro-bind-try", "/sys", "/sys"];
}

/** The same where /sys is read-only with everything else: each mount costs every command time. */
export function kernelFilesOnReadOnlyRoot({ processes }: { processes: boolean }): string[] {
  return [
    ...["--dev", "/dev", ...(processes ? ["--proc", "/proc"] : ["--bind", "/proc", "/proc"])],
    ...kernelSettings().flatMap((path) => ["--ro-bind-try", path, path]),
  ];
}

/** The same for commands that write no kernel files. A private /proc then takes one mount instead of one per setting. */
export function closedKernelFiles({ processes }: { processes: boolean }): string[] {
  return processes ? ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"] : kernelFiles({ processes });
}

/** The entries of /proc besides processes that a command could write to harm others. */
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
