import { type BigIntStats, lstatSync } from "node:fs";
import { dirname } from "node:path";

/** Identifies a file or folder at one moment, so that a replacement can be detected later. */
export interface FileIdentity {
  /** Its real path. */
  path: string;
  /** Device and inode of every folder on the path and of the entry itself; empty for names that do not exist yet. */
  way: string;
  /** For a file whose content matters: values that change whenever it is written. */
  file?: string;
}

/** Identifies what is at a real path now. With `content`, a file that is written to later counts as replaced. */
export function identityAt(path: string, { content = false } = {}): FileIdentity {
  return { path, way: wayTo(path), ...(content && { file: fileId(statsAt(path)) }) };
}

export function isSameFile(place: FileIdentity): boolean {
  const now = identityAt(place.path, { content: place.file !== undefined });
  return now.way === place.way && now.file === place.file;
}

/** Values that change when a file is replaced, written or has its mode changed; "" if there is none. */
export function fileId(stats: BigIntStats | undefined): string {
  return stats ? [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(":") : "";
}

function wayTo(path: string): string {
  const stats = statsAt(path);
  const own = stats ? `${stats.dev}:${stats.ino}` : "";
  return dirname(path) === path ? own : `${wayTo(dirname(path))} ${own}`;
}

function statsAt(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // A parent is not a folder, or not accessible: nothing is there for us.
    return undefined;
  }
}
