import { resolve } from "node:path";
import type { Command } from "commander";
import type { SquadSafety } from "../home/safety-config.ts";
import { usageError } from "../lib/errors.ts";
import type { Squad } from "../protocol/squads.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import { squadRoute } from "./squad-route.ts";

interface SetOptions {
  mode?: string;
  sandbox?: string;
  approvals?: string;
  isolation?: string;
  budget?: string[];
  news?: string;
  check?: string[];
  json?: boolean;
}

/** Commands for a squad's folder and its own safety settings. */
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
    .description(
      "hold a squad tighter than all (a higher wall, more questions, smaller budgets), give each task a worktree, or say how its project is checked",
    )
    .argument("<slug>")
    .option("--mode <mode>", "plan, ask, auto or full; default: what holds for all")
    .option("--sandbox <height>", "secrets, project or workspace; default: what holds for all")
    .option("--approvals <mode>", "none, wall or effects; default: what holds for all")
    .option("--news <which>", "which news of its tasks goes out at once: all, urgent or none; default: all")
    .option("--isolation <kind>", "worktree: each task works on a branch of its own; none: in the project's folder")
    .option(
      "--check <command>",
      "a command that checks the project, in place of those that are found; repeat it for more; default: those that are found",
      (command: string, before: string[] = []) => [...before, command],
    )
    .option("--budget <limit...>", "kind.unit=number, such as task.tokens=200000; off takes them away")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: SetOptions) => {
      const safety = safetyOf(options);
      const { isolation } = options;
      const isSafety = Object.keys(safety).length > 0;
      if (!isSafety && isolation === undefined && options.check === undefined)
        throw usageError("Say what is to be set: --mode, --sandbox, --approvals, --isolation, --check, --news or --budget.");
      const changes = {
        ...(isSafety && { safety }),
        ...(isolation !== undefined && { isolation }),
        ...(options.check && { checks: checksOf(options.check) }),
      };
      const set = await shell.client().request<Squad>("PATCH", squadRoute(slug), changes);
      shell.print(
        set,
        `The squad "${set.slug}": ${formatSafety(set.safety)}; ${formatIsolation(set)}; ${formatChecks(set)}.`,
        options,
      );
    });
}

export function formatIsolation({ isolation }: Squad): string {
  return isolation === "worktree" ? "each task in a worktree, on a branch of its own" : "tasks in the project's folder";
}

export function formatChecks({ checks }: Squad): string {
  return checks ? `checked with ${checks.join("; ")}` : "checked with what is found in the project";
}

function checksOf(given: readonly string[]): string[] | null {
  if (given.length === 1 && given[0] === "default") return null;
  if (given.includes("default")) throw usageError("--check default takes back the others: give it alone.");
  return [...given];
}

export function formatSafety({ mode, sandbox, approvals, budgets, news }: SquadSafety): string {
  const limits = Object.entries(budgets ?? {}).flatMap(([kind, limit]) =>
    Object.entries(limit ?? {}).map(([unit, most]) => `${kind}.${unit}=${most}`),
  );
  return (
    [
      ...(mode ? [`mode ${mode}`] : []),
      ...(sandbox ? [`sandbox ${sandbox}`] : []),
      ...(approvals ? [`approvals ${approvals}`] : []),
      ...(news ? [`news: ${news}`] : []),
      ...(limits.length > 0 ? [`budgets ${limits.join(", ")}`] : []),
    ].join("; ") || "held as all are"
  );
}

/** `default` and `off` reset a setting. */
function safetyOf({ mode, sandbox, approvals, budget, news }: SetOptions): Record<string, unknown> {
  return {
    ...(mode && { mode: mode === "default" ? null : mode }),
    ...(sandbox && { sandbox: sandbox === "default" ? null : sandbox }),
    ...(approvals && { approvals: approvals === "default" ? null : approvals }),
    ...(news && { news: news === "default" ? null : news }),
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
