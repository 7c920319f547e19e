import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { usageError } from "../lib/errors.ts";
import { type RunSettings, readRunSettings } from "../swarm/pipeline/settings.ts";
import type { Shell } from "./output.ts";
import type { ProgressDeps } from "./progress.ts";

export const STAND_INS_OPTION = ["--stand-ins", "let other models serve for named ones that are not there"] as const;
export const JSON_OPTION = ["--json", "print one JSON document"] as const;
export const VERBOSE_OPTION = ["-v, --verbose", "show what the agents say"] as const;
export const ISSUE_ARGUMENT = ["[issue...]", "the issue, in words; else ISSUE_BODY"] as const;

/** The settings of a command that needs an issue: from a plan, from words, or from the environment. */
export function settingsFor(shell: Shell, words: readonly string[], plan: string | undefined): RunSettings & { issue: string } {
  const settings = readRunSettings(shell.env, { words: plan ? readPlan(plan) : words.join(" "), issueNeeded: true });
  return { ...settings, issue: settings.issue ?? "" };
}

function readPlan(file: string): string {
  const path = resolve(file);
  if (!existsSync(path)) throw usageError(`${path}: there is no such plan. Make one with: swarm plan "<issue>"`);
  const text = readFileSync(path, "utf8");
  if (text.trim() === "") throw usageError(`${path}: the plan is empty.`);
  return text;
}

/** The project that the person stands in. */
export async function projectHere(): Promise<string> {
  const { projectAround } = await import("../swarm/run/checkout.ts");
  return projectAround(process.cwd());
}

export function progressOn(shell: Shell): ProgressDeps {
  return {
    write: (text) => process.stderr.write(text),
    live: false,
    colour: process.stderr.isTTY === true && !shell.env.NO_COLOR,
    columns: () => process.stderr.columns || 80,
    rows: () => process.stderr.rows || 24,
  };
}
