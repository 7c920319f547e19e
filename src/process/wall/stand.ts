import type { SandboxHeight } from "../../lib/safety-config.ts";

/** Where a command stands behind the wall, and what it may do there. */
export interface Stand {
  /** The folder that is its own; without one, the folder it runs in. */
  place?: string;
  /** "read": it writes nowhere but in temporary folders, at the height "workspace". */
  access?: "write" | "read";
  /** Folders besides its own that it may write. */
  writable?: readonly string[];
  /** Folders and files that it may read although a workspace does not show them. */
  readable?: readonly string[];
  /** Folders and files that it may not write, wherever it can see them. */
  frozen?: readonly string[];
  /**
   * It writes nowhere but in the folders that are named here, at whatever height. What cannot be written needs no mount of its
   * own to stay as it is, so this is also the wall that is put up fastest.
   */
  closed?: boolean;
  /** The height it asks for. It counts only where it is higher than the one that is set. */
  height?: SandboxHeight;
  /** The network for a program of IO's own, where commands have none. */
  network?: boolean;
}

/** One place that is put into view. */
export interface Grant {
  path: string;
  write: boolean;
}

/** Binds every place onto itself. What lies deeper comes later and so decides; of two that are the same, the one that is read-only. */
export function bindAll(grants: readonly Grant[]): string[] {
  const depth = (path: string) => path.split("/").filter((part) => part !== "").length;
  const ordered = [...grants].sort((a, b) => depth(a.path) - depth(b.path) || Number(b.write) - Number(a.write));
  return ordered.flatMap(({ path, write }) => [write ? "--bind-try" : "--ro-bind-try", path, path]);
}
