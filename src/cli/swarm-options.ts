import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { WriteStream } from "node:tty";
import { usageError } from "../lib/errors.ts";
import { type RunSettings, readRunSettings } from "../swarm/pipeline/settings.ts";
import type { RunProgress, RunView } from "../tui/run/view.ts";
import type { Shell } from "./output.ts";
import { createProgress } from "./progress.ts";

export const STAND_INS_OPTION = ["--stand-ins", "let other models serve for named ones that are not there"] as const;
export const DETACH_OPTION = ["--detach", "let it work in the background and return at once"] as const;
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

export function pathOf(runId: string): string {
  return `/api/runs/${encodeURIComponent(runId)}`;
}

/** The project of the current folder. */
export async function projectHere(): Promise<string> {
  const { projectAround } = await import("../swarm/run/checkout.ts");
  return projectAround(process.cwd());
}

/** Progress as plain lines on standard error. */
export function plainProgress({ env }: Shell): RunProgress {
  const write = (text: string) => void process.stderr.write(text);
  return createProgress({ write, colour: process.stderr.isTTY === true && !env.NO_COLOR });
}

/** The run's view on an interactive terminal, if there is one. */
export async function viewHere({ env }: Shell): Promise<RunView | undefined> {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY || env.CI || env.TERM === "dumb") return undefined;
  const { RunView } = await import("../tui/run/view.ts");
  return new RunView({ input, output: process.stderr as WriteStream, env });
}
