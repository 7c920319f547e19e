import { sep } from "node:path";
import { named, oneLine } from "../lib/quoted.ts";
import { locate, realOf } from "../lib/real-path.ts";
import { findDestructiveCommand } from "../shell/destructive-commands.ts";
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
    if (scope.withheld?.includes(tool.name))
      return `${tool.name} was not run: another program asked for this, and only a person may have it done. Say what you would change, so that they can.`;
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
    const harm = findDestructiveCommand(args.command, { cwd, keep, onCut });
    if (harm === undefined && cut)
      return "The command was not run: it is too long to be looked through first. Write it into a file with file_ops, and run that.";
    return harm && `The command was not run: it would ${oneLine(harm, 400)}. Name the exact files or folders that are meant.`;
  };
}

/** The real path that a path leads to from the agent's folder, or why the call may not access it. */
export function reachFrom(guard: PathGuard, path: string, how: Touch["how"], scope: ToolScope): Reached {
  const reached = guard.reach(path, how, scope.cwd, scope.besides);
  return how === "read" ? reached : keptWithin(reached, path, scope);
}

/** The same for an entry that is moved or deleted. */
export function reachEntryFrom(guard: PathGuard, path: string, scope: ToolScope): Reached {
  return keptWithin(guard.reachEntry(path, scope.cwd, scope.besides), path, scope);
}

function keptWithin(reached: Reached, path: string, { within, besides = [] }: ToolScope): Reached {
  if ("refusal" in reached || within === undefined) return reached;
  if ([within, ...besides].some((folder) => isWithin(reached.real, realOf(folder)))) return reached;
  return {
    refusal: `${named(path, 300)} lies outside ${[within, ...besides].map((folder) => named(folder, 300)).join(" and ")}, ${besides.length === 0 ? "the tree" : "the trees"} you work in; write there and nowhere else.`,
  };
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}
