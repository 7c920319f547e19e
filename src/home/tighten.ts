import { higherWall, moreApprovals, type Protection, squadProtection, stricterMode } from "./modes.ts";
import type { Budgets, Limit, Mode, SquadSafety } from "./safety-config.ts";

/** Global settings. A squad may only be stricter. */
export interface Safety extends Protection {
  mode: Mode;
  budgets: Budgets;
}

/** The settings of a squad: the stricter of the global ones and its own. */
export function tightened({ mode, sandbox, approvals, budgets }: Safety, own: SquadSafety): Safety {
  const held = squadProtection(own);
  return {
    mode: stricterMode(mode, own.mode),
    sandbox: higherWall(sandbox, held.sandbox),
    approvals: moreApprovals(approvals, held.approvals),
    budgets: smallerBudgets(budgets, own.budgets ?? {}),
  };
}

/** The squad's settings that would loosen the global ones, each as a sentence. */
export function loosenedBy(all: Safety, own: SquadSafety): string[] {
  const held = {
    mode: stricterMode(all.mode, own.mode),
    sandbox: higherWall(all.sandbox, own.sandbox),
    approvals: moreApprovals(all.approvals, own.approvals),
  };
  const rungs = (["mode", "sandbox", "approvals"] as const).flatMap((key) =>
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

function smallerBudgets(all: Budgets, own: Budgets): Budgets {
  const kinds = [...new Set([...Object.keys(all), ...Object.keys(own)])] as (keyof Budgets)[];
  return Object.fromEntries(kinds.map((kind) => [kind, smallerLimit(all[kind] ?? {}, own[kind] ?? {})]));
}

function smallerLimit(all: Limit, own: Limit): Limit {
  const units = [...new Set([...Object.keys(all), ...Object.keys(own)])] as (keyof Limit)[];
  const least = (unit: keyof Limit) => Math.min(all[unit] ?? Number.POSITIVE_INFINITY, own[unit] ?? Number.POSITIVE_INFINITY);
  return Object.fromEntries(units.map((unit) => [unit, least(unit)]));
}
