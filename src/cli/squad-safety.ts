import { resolve } from "node:path";
import type { Command } from "commander";
import { usageError } from "../lib/errors.ts";
import type { SquadSafety } from "../lib/safety-config.ts";
import type { Squad } from "../protocol/squads.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import { squadRoute } from "./squad-route.ts";

interface SetOptions {
  sandbox?: string;
  approvals?: string;
  isolation?: string;
  budget?: string[];
  json?: boolean;
}

/** Where a squad works, and what it is held to beyond what holds for all. */
export function safetyCommands(squad: Command, shell: Shell): void {
  squad
    .command("move")
    .description("let a squad work in another folder, after its project was moved")
    .argument("<slug>")
    .argument("<folder>", "the project's new folder")
    .option(...JSON_OPTION)
    .action(async (slug: string, folder: string, options: { json?: boolean }) => {
      const moved = await shell.client().request<Squad>("PATCH", squadRoute(slug), { projectPath: resolve(folder) });
      shell.print(moved, `The squad "${moved.slug}" works on ${moved.projectPath} now.`, options);
    });

  squad
    .command("set")
    .description("hold a squad tighter than all (a higher wall, more questions, smaller budgets), or give each task a worktree")
    .argument("<slug>")
    .option("--sandbox <height>", "secrets or workspace; default: what holds for all")
    .option("--approvals <mode>", "none, wall or effects; default: what holds for all")
    .option("--isolation <kind>", "worktree: each task works on a branch of its own; none: in the project's folder")
    .option("--budget <limit...>", "kind.unit=number, such as task.tokens=200000; off takes them away")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: SetOptions) => {
      const safety = safetyOf(options);
      const { isolation } = options;
      const isSafety = Object.keys(safety).length > 0;
      if (!isSafety && isolation === undefined)
        throw usageError("Say what is to be set: --sandbox, --approvals, --isolation or --budget.");
      const changes = { ...(isSafety && { safety }), ...(isolation !== undefined && { isolation }) };
      const set = await shell.client().request<Squad>("PATCH", squadRoute(slug), changes);
      shell.print(set, `The squad "${set.slug}": ${tellSafety(set.safety)}; ${tellIsolation(set)}.`, options);
    });
}

export function tellIsolation({ isolation }: Squad): string {
  return isolation === "worktree" ? "each task in a worktree, on a branch of its own" : "tasks in the project's folder";
}

export function tellSafety({ sandbox, approvals, budgets }: SquadSafety): string {
  const limits = Object.entries(budgets ?? {}).flatMap(([kind, limit]) =>
    Object.entries(limit ?? {}).map(([unit, most]) => `${kind}.${unit}=${most}`),
  );
  return (
    [
      ...(sandbox ? [`sandbox ${sandbox}`] : []),
      ...(approvals ? [`approvals ${approvals}`] : []),
      ...(limits.length > 0 ? [`budgets ${limits.join(", ")}`] : []),
    ].join("; ") || "held as all are"
  );
}

/** `default` and `off` take back what was said. */
function safetyOf({ sandbox, approvals, budget }: SetOptions): Record<string, unknown> {
  return {
    ...(sandbox && { sandbox: sandbox === "default" ? null : sandbox }),
    ...(approvals && { approvals: approvals === "default" ? null : approvals }),
    ...(budget && { budgets: budget.includes("off") ? null : budgetsOf(budget) }),
  };
}

function budgetsOf(limits: readonly string[]): Record<string, Record<string, number>> {
  const budgets: Record<string, Record<string, number>> = {};
  for (const limit of limits) {
    const [kind, unit, number, rest] = limit.split(/[.=]/);
    if (!kind || !unit || rest !== undefined || !number || !Number.isFinite(Number(number)))
      throw usageError(`--budget ${limit}: say it as kind.unit=number, such as task.tokens=200000.`);
    budgets[kind] = { ...budgets[kind], [unit]: Number(number) };
  }
  return budgets;
}
