import type { Mode, SandboxHeight } from "../../home/safety-config.ts";

/** What a sandboxed command may see and do. */
export interface SandboxProfile {
  /** Its own folder; by default the folder it runs in. */
  place?: string;
  /** "read": at "workspace", it may write only to temporary folders. */
  access?: "write" | "read";
  /** Other folders that it may write. */
  writable?: readonly string[];
  /** Folders and files that it may read although a workspace hides them. */
  readable?: readonly string[];
  /** Folders and files that it may not write, wherever they are visible. */
  frozen?: readonly string[];
  /**
   * It may write only to these folders, at every height. Read-only paths need no mounts to protect them, so this is also the
   * fastest sandbox to set up.
   */
  closed?: boolean;
  /** The mode it works in, if not the global one. */
  mode?: Mode | undefined;
  /** The height it requests. Counts only if stricter than the configured one. */
  height?: SandboxHeight;
  /** A person allowed it outside the sandbox: it sees and writes what the user can, except IO's own folder. */
  outside?: boolean;
  /** A program of IO's own that needs the user's login. */
  withLogins?: boolean;
  /** Network access for a program of IO's own, where commands have none. */
  network?: boolean;
}

/** One path that is mounted into the sandbox. */
export interface Grant {
  path: string;
  write: boolean;
}

/** Bind-mounts each path, deepest last; read-only wins ties. */
export function bindAll(grants: readonly Grant[]): string[] {
  const depth = (path: string) => path.split("/").filter((part) => part !== "").length;
  const ordered = [...grants].sort((a, b) => depth(a.path) - depth(b.path) || Number(b.write) - Number(a.write));
  return ordered.flatMap(({ path, write }) => [write ? "--bind-try" : "--ro-bind-try", path, path]);
}
