import { existsSync, statfsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { usageError } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";

/** Folders that belong to the system or to many users; a folder below most of them may well be a project. */
const SYSTEM = new Set(
  "/ /bin /boot /etc /home /lib /lib32 /lib64 /media /mnt /nix /opt /private /root /run /sbin /srv /tmp /usr /usr/bin /usr/lib /usr/local /usr/share /usr/src /var /var/lib /var/tmp /Applications /Library /System /Users /Volumes".split(
    " ",
  ),
);
/** The kernel generates everything below these on reading. */
const KERNEL = /^\/(?:proc|sys|dev)(?:\/|$)/;
/** Memory that anybody may use for files. */
const MEMORY = /^\/dev\/shm\/./;
/** Types of virtual file systems of the kernel: proc, sysfs, cgroup, debugfs, tracefs, securityfs, devpts, bpf. */
const WINDOWS = new Set([0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x1cd1, 0xcafe4a11]);

/** Refuses a folder that cannot be a project: reading all of it would take long, or never end. */
export function refuseSystemFolder(folder: string): void {
  const reason = reasonAgainst(folder);
  if (reason !== undefined)
    throw usageError(`${named(folder, 300)}: ${reason}. Give the folder of one project, such as ${join(homedir(), "app")}.`);
}

/** Whether a folder cannot be a project. */
export const isSystemFolder = (folder: string): boolean => reasonAgainst(folder) !== undefined;

function reasonAgainst(folder: string): string | undefined {
  if ((KERNEL.test(folder) && !MEMORY.test(folder)) || isWindow(folder))
    return "is made by the system as it is read, and holds devices or processes, not a project";
  // Whoever made such a folder a repository knows what belongs to it.
  if (folder !== "/" && existsSync(join(folder, ".git"))) return undefined;
  if (folder === realOf(homedir())) return "is a home, and holds more than a project";
  return SYSTEM.has(folder) ? "belongs to the system or holds the folders of many, and is not a project" : undefined;
}

function isWindow(folder: string): boolean {
  try {
    return WINDOWS.has(statfsSync(folder).type);
  } catch {
    // A folder of unknown file system type is treated like any other.
    return false;
  }
}
