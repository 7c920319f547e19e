import type { Command } from "commander";
import { type Config, type ConfigKey, loadConfig, parseConfig, updateConfig } from "../lib/config.ts";
import { ExitCode, messageOf, UserError, usageError } from "../lib/errors.ts";
import { ensureHome } from "../lib/paths.ts";
import type { Finding } from "../protocol/doctor.ts";
import { type Answers, openAnswers } from "./input.ts";
import type { Shell } from "./output.ts";
import type { Ask } from "./setup-provider.ts";

type Changes = { [K in ConfigKey]?: unknown };

/** The first-run questions. What is not asked, or not answered, stays as it is. */
export function setupCommand(program: Command, shell: Shell): void {
  program
    .command("setup")
    .description("a few questions, and a config.json that fits the answers")
    .option("--yes", "take the default for every question")
    .option("--json", "print one JSON document")
    .action(async ({ json, yes }: { json?: boolean; yes?: boolean }) => {
      const { paths } = shell;
      const before = loadConfig(paths.config);
      ensureHome(paths);
      const answers = yes ? undefined : openAnswers(shell.isTerminal);
      try {
        const changes = answers ? await askAll(shell, answers, before) : {};
        updateConfig(paths.config, changes);
        const model = answers && (await offerTrial(shell, answers));
        const changed = Object.keys(changes);
        const text = [saidOf(shell, changed), ...(model ? [shown(model)] : [])].join("\n");
        shell.print({ path: paths.config, changed, ...(model && { model }) }, text, { json });
        if (model?.state === "failed") process.exitCode = ExitCode.failed;
      } finally {
        answers?.close();
      }
    });
}

async function askAll(shell: Shell, answers: Answers, before: Config): Promise<Changes> {
  const ask: Ask = async (question, { fallback = "", hidden = false, check }) => {
    for (;;) {
      const typed = (await answers.next(`${question}${fallback === "" ? "" : ` [${fallback}]`}: `, { hidden })) || fallback;
      try {
        if (typed !== fallback) check?.(typed);
        return typed;
      } catch (error) {
        if (!shell.isTerminal) throw usageError(messageOf(error), error);
        shell.note(messageOf(error));
      }
    }
  };
  const changes: Changes = {};
  const fits = (more: Changes) => void parseConfig(given({ ...before, ...changes, ...more }), "config.json");
  const { askProvider } = await import("./setup-provider.ts");
  const provider = await askProvider(ask, {
    before: before.provider,
    env: shell.env,
    note: shell.note,
    fits: (draft) => fits({ provider: draft }),
  });
  if (provider !== "as it is") changes.provider = provider;
  if (provider === undefined || (provider === "as it is" && before.provider === undefined)) {
    const model = await ask("Default model", { fallback: before.defaultModel, check: (defaultModel) => fits({ defaultModel }) });
    if (model !== before.defaultModel) changes.defaultModel = model;
  }
  const port = await ask("Port of the API (0 takes any free one)", {
    fallback: String(before.port),
    check: (answer) => fits({ port: numberOf(answer) }),
  });
  if (numberOf(port) !== before.port) changes.port = numberOf(port);
  return changes;
}

/** One real request, if the person wants it. What was answered is written down by now, whatever happens here. */
async function offerTrial(shell: Shell, answers: Answers): Promise<Finding | undefined> {
  let answer: string | undefined;
  try {
    answer = await answers.next("Ask the model something now, to see that it answers? yes or no [yes]: ");
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    process.exitCode = ExitCode.interrupted;
  }
  if (answer === undefined || !/^(y(es)?)?$/i.test(answer)) return undefined;
  answers.close();
  shell.note("Asking …");
  const { model } = await import("../daemon/doctor.ts");
  const findings = await model({ paths: shell.paths, env: shell.env, actor: "setup" });
  return findings.find(({ state }) => state === "failed") ?? findings.at(-1);
}

function saidOf({ paths, daemon }: Shell, changed: string[]): string {
  const next = daemon() ? '"io restart" lets the daemon follow it' : '"io" opens the chat';
  const what = changed.length === 0 ? "nothing but the defaults was needed" : `${changed.join(", ")} set`;
  return `${paths.config}: ${what}. ${next}; "io doctor" checks everything.`;
}

function shown({ state, found, remedy }: Finding): string {
  const sign = { ok: "The model works", warning: "Take note", failed: "The model does not answer" }[state];
  return `${sign}: ${found}${remedy ? `\n${remedy}` : ""}`;
}

function given(config: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

function numberOf(answer: string): number {
  if (!/^\d+$/.test(answer)) throw usageError(`"${answer}" is not a whole number.`);
  return Number(answer);
}
