import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { isWithin } from "../../lib/within.ts";

interface Mount {
  device: string;
  /** The folder of the file system that is mounted. */
  root: string;
  /** The mount point. */
  at: string;
}

/** Finds other paths to a folder; searches again only after the mounts change. */
export function watchOtherMountPoints(folder: string, read = readMounts): () => string[] {
  let known = { mountinfo: "", places: [] as string[] };
  return () => {
    const mountinfo = read();
    if (mountinfo !== known.mountinfo) known = { mountinfo, places: otherMountPoints(folder, mountinfo) };
    return known.places;
  };
}

/** Other paths at which mounts show a folder or a part of it. None are known without /proc. */
export function otherMountPoints(folder: string, mountinfo = readMounts()): string[] {
  const mounts = mountinfo.split("\n").flatMap(readMount);
  const holder = mounts.findLast(
    ({ at }) =>
      isWithin(at, folder) &&
      !mounts.some((other) => other.at.length > at.length && isWithin(at, other.at) && isWithin(other.at, folder)),
  );
  if (!holder) return [];
  const inside = join(holder.root, relative(holder.at, folder));
  const shown = mounts
    .filter(({ device }) => device === holder.device)
    .flatMap(({ root, at }) => {
      if (isWithin(root, inside)) return [join(at, relative(root, inside))];
      return isWithin(inside, root) ? [at] : [];
    });
  return [...new Set(shown)].filter((place) => !isWithin(folder, place));
}

function readMounts(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    // This system does not list its mounts.
    return "";
  }
}

function readMount(line: string): Mount[] {
  const [, , device, root, at] = line.split(" ");
  if (device === undefined || root === undefined || at === undefined) return [];
  const plain = (path: string) =>
    path.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return [{ device, root: plain(root), at: plain(at) }];
}
