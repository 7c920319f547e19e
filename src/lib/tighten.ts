import { ApprovalMode, type Budgets, type Limit, SandboxHeight, type SquadSafety } from "./safety-config.ts";

/** What holds for all, where nothing tighter is said. */
export interface Safety {
  sandbox: SandboxHeight;
  approvals: ApprovalMode;
  budgets: Budgets;
}

/** What holds for a squad: the tighter of what is said for all and for it. */
export function tightened({ sandbox, approvals, budgets }: Safety, own: SquadSafety): Safety {
  return {
    sandbox: higher(SandboxHeight.options, sandbox, own.sandbox),
    approvals: higher(ApprovalMode.options, approvals, own.approvals),
    budgets: smallerBudgets(budgets, own.budgets ?? {}),
  };
}

/** What a squad says for itself that would loosen what holds for all, each as a sentence. */
export function loosenedBy(all: Safety, own: SquadSafety): string[] {
  const held = tightened(all, own);
  const rungs = (["sandbox", "approvals"] as const).flatMap((key) =>
    own[key] === undefined || own[key] === held[key]
      ? []
      : [`${key}: ${own[key]} is looser than ${all[key]}, which holds for all.`],
  );
  const limits = Object.entries(own.budgets ?? {}).flatMap(([kind, limit]) =>
    Object.entries(limit ?? {}).flatMap(([unit, most]) => {
      const holds = all.budgets[kind as keyof Budgets]?.[unit as keyof Limit];
      return holds === undefined || most === undefined || most <= holds
        ? []
        : [`budgets.${kind}.${unit}: ${most} is more than ${holds}, which holds for all.`];
    }),
  );
  return [...rungs, ...limits];
}

/** The options stand from the loosest to the tightest. */
function higher<T extends string>(options: readonly T[], all: T, own: T | undefined): T {
  return own !== undefined && options.indexOf(own) > options.indexOf(all) ? own : all;
}

function smallerBudgets(all: Budgets, own: Budgets): Budgets {
  const kinds = [...new Set([...Object.keys(all), ...Object.keys(own)])] as (keyof Budgets)[];
  return Object.fromEntries(kinds.map((kind) => [kind, smallerLimit(all[kind] ?? {}, own[kind] ?? {})]));
}

function smallerLimit(all: Limit, own: Limit): Limit {
  const units = [...new Set([...Object.keys(all), ...Object.keys(own)])] as (keyof Limit)[];
  const least = (unit: keyof Limit) => Math.min(all[unit] ?? Number.POSITIVE_INFINITY, own[unit] ?? Number.POSITIVE_INFINITY);
  return Object.fromEntries(units.map((unit) => [unit, least(unit)]));
}
