import { type FileIdentity, identityAt, isSameFile } from "../lib/pinned/identity.ts";
import { named } from "../lib/quoted.ts";
import { locate, realOf } from "../lib/real-path.ts";
import type { PathGuard, Reached } from "./guard.ts";
import type { ToolScope } from "./tool.ts";

/** Names of arguments that contain a path, in any tool. */
const NAMES_A_PLACE = /(?:^|_)(?:path|dir|folder)$/;

/** Operations of file_ops for which the content of the file matters. */
const COUNTS_CONTENT = new Set(["read", "write", "edit"]);
const LOOKS = new Set(["read", "list", "search", "find"]);

export interface FileTarget {
  /** As the model spelled it. */
  path: string;
  reached: Reached;
}

/** The files and folders that a call of file_ops names: one, or two for a move. */
export function fileTargets(args: Record<string, unknown>, { cwd, besides }: ToolScope, guard: PathGuard): FileTarget[] {
  const { operation, path = ".", to } = args;
  const spelled = String(path);
  if (operation === "move" || operation === "delete")
    return [spelled, ...(operation === "move" && typeof to === "string" ? [to] : [])].map((each) => ({
      path: each,
      reached: guard.reachEntry(each, cwd, besides),
    }));
  return [{ path: spelled, reached: guard.reach(spelled, isLook(operation) ? "read" : "write", cwd, besides) }];
}

/** Whether an operation of file_ops changes nothing. */
export const isLook = (operation: unknown): boolean => LOOKS.has(String(operation));

/** The files and folders that a call would use, as they are now. An approval covers these and no others. */
export function placesOf(tool: string, args: Record<string, unknown>, scope: ToolScope, guard: PathGuard): FileIdentity[] {
  if (tool === "file_ops")
    return fileTargets(args, scope, guard).flatMap(({ reached }) =>
      "refusal" in reached ? [] : [identityAt(reached.real, { content: COUNTS_CONTENT.has(String(args.operation)) })],
    );
  const given = Object.entries(args).flatMap(([name, value]) =>
    NAMES_A_PLACE.test(name) && typeof value === "string" && !value.includes("\0") ? [locate(value, scope.cwd)] : [],
  );
  return [scope.cwd, ...given].map((path) => identityAt(realOf(path)));
}

/** The part of a question's hash that identifies the files and folders. */
export const identityOf = (places: readonly FileIdentity[]): string =>
  places.map(({ path, way, file = "" }) => [path, way, file].join("\n")).join("\n");

/** What to tell the model if one of the files or folders has changed. */
export function whatChanged(tool: string, places: readonly FileIdentity[]): string | undefined {
  const changed = places.find((place) => !isSameFile(place));
  return (
    changed &&
    `${tool} was not run: ${named(changed.path, 300)} is not what it was when it was allowed; it was exchanged or changed meanwhile. Look at what is there now, and call ${tool} again if it is still needed.`
  );
}
