import type { PlannedCheck } from "../../protocol/plans.ts";

/** The checks that a person chose for a project, and how they chose them. */
export interface ChosenChecks {
  commands: readonly string[];
  from: string;
}

/** The commands that a person chose for a squad. */
export function chosenBy(squad: { slug: string; checks: readonly string[] | null } | undefined): ChosenChecks | null {
  return squad?.checks ? { commands: squad.checks, from: `io squad set ${squad.slug} --check` } : null;
}

/** Formats the checks that a run would use, for people. */
export function formatPlannedChecks(checks: readonly PlannedCheck[]): string[] {
  if (checks.length === 0) return ["Checks: none were found, so a result would count as untested."];
  return [
    "Checks:",
    ...checks.map(({ command, cwd, from, perPackage }) => {
      const origin = from === null ? "a guess: no file says so" : `from ${from}`;
      return `  ${command}${cwd === "." ? "" : ` (in ${cwd})`} — ${origin}${perPackage ? "; run for the packages that a change concerns" : ""}`;
    }),
  ];
}
