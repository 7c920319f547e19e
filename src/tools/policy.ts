import { sep } from "node:path";
import { named } from "../lib/quoted.ts";
import { locate, realOf } from "../lib/real-path.ts";
import { findRuin } from "../shell/destructive-commands.ts";
import type { Policy } from "./gate.ts";
import type { PathGuard, Reached } from "./guard.ts";
import type { ToolScope, Touch } from "./tool.ts";

export interface PolicyDeps {
  guard: PathGuard;
  /** Folders that no command may delete whole, besides roots and homes. */
  keep: readonly string[];
}

/** Approves everything above a short hard floor: IO's secrets, IO's code, and what nobody wants deleted. */
export function createPolicy({ guard, keep }: PolicyDeps): Policy {
  return (tool, args, scope) => {
    for (const { path, how } of tool.touches?.(args) ?? []) {
      const reached = reachFrom(guard, path, how, scope);
      if ("refusal" in reached) return reached.refusal;
    }
    if (tool.name !== "shell" || typeof args.command !== "string") return undefined;
    const cwd = typeof args.working_dir === "string" ? locate(args.working_dir, scope.cwd) : scope.cwd;
    let cut = false;
    const onCut = () => {
      cut = true;
    };
    const ruin = findRuin(args.command, { cwd, keep, onCut });
    if (ruin === undefined && cut)
      return "The command was not run: it is too long to be looked through first. Write it into a file with file_ops, and run that.";
    return (
      ruin &&
      `The command was not run: it would delete ${named(ruin, 300)} and everything in it. Name the exact files or folders that are to go.`
    );
  };
}

/** Where a path leads from where the agent stands, or why it may not go there. */
export function reachFrom(guard: PathGuard, path: string, how: Touch["how"], { cwd, within }: ToolScope): Reached {
  const reached = guard.reach(path, how, cwd);
  if ("refusal" in reached || how === "read" || within === undefined || isWithin(reached.real, realOf(within))) return reached;
  return {
    refusal: `${named(path, 300)} lies outside ${named(within, 300)}, the tree you work in; write there and nowhere else.`,
  };
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}
