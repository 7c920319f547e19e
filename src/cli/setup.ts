import { type Command, Option } from "commander";
import { modeLine } from "../client/status.ts";
import { loadConfig, updateConfig } from "../home/config.ts";
import { ensureHome } from "../home/paths.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import { howToType } from "../lib/invocation.ts";
import type { Finding } from "../protocol/doctor.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import type { SetupFlags } from "./setup-flags.ts";
import type { Answered } from "./setup-trial.ts";

interface SetupOptions extends SetupFlags {
  yes?: boolean | undefined;
  test: boolean;
  json?: boolean | undefined;
}

/** The first-run questions: with prompts at a terminal, by flags or piped answers elsewhere. Writes once, at the end. */
export function setupCommand(program: Command, shell: Shell): void {
  program
    .command("setup")
    .description("choose a model, try it, and write a config.json that fits")
    .addOption(new Option("--engine <kind>", "which model answers").choices(["copilot", "provider", "ollama", "rehearsal"]))
    .option("--provider <name>", "such as openai, anthropic, azure or openrouter, or an address")
    .option("--base-url <address>", "the provider's or Ollama's address, if it is not the usual one")
    .option("--api-key <key>", 'its key; "-" reads it from standard input')
    .option("--api-key-env <variable>", "the variable that holds its key")
    .option("--model <name>", "the model to ask")
    .option("--github-token <token>", 'a token for GitHub Copilot; "-" reads it from standard input')
    .option("--telegram-token <token>", 'the token of a Telegram bot; "-" reads it from standard input')
    .option("--telegram-user <id>", "who may talk to that bot")
    .option("--port <number>", "the port of the API; 0 takes any free one")
    .option("--service", "have the system start IO at every login")
    .option("--no-test", "do not ask the model anything before writing")
    .option("--yes", "ask nothing: flags, and the defaults for everything else")
    .option(...JSON_OPTION)
    .action(({ json, yes, test, ...flags }: SetupOptions) => setUp(shell, flags, { json, yes, test }));
}

async function setUp(shell: Shell, flags: SetupFlags, { json, yes, test }: Omit<SetupOptions, keyof SetupFlags>): Promise<void> {
  const { paths } = shell;
  const before = loadConfig(paths.config);
  const { hasFlags } = await import("./setup-flags.ts");
  if (yes || hasFlags(flags)) {
    const { answersIn } = await import("./setup-flags.ts");
    const { findModels } = await import("./setup-found.ts");
    const { overridingSettings, formatTrial, tryOut } = await import("./setup-trial.ts");
    const given = hasFlags(flags)
      ? await answersIn(flags, shell, await findModels(before, shell.env))
      : { changes: {}, engine: undefined, service: false };
    overridingSettings(shell, given.engine).forEach(shell.note);
    const isToBeTried = test && given.engine !== undefined && given.engine !== "rehearsal";
    const finding = isToBeTried ? await tryOut(shell, given) : undefined;
    if (finding?.state === "failed")
      throw new UserError(`${formatTrial(finding)}\nNothing was written; --no-test writes it all the same.`);
    return finish(shell, given, finding, json);
  }
  if (shell.isTerminal) {
    const { askByKeys } = await import("./setup-keys.ts");
    return finish(shell, await askByKeys(shell, before), undefined, json);
  }
  const { askByLines } = await import("./setup-lines.ts");
  const { trial, ...given } = await askByLines(shell, before);
  if (trial) shell.note("Asking …");
  const finding = trial ? await (await import("./setup-trial.ts")).tryOut(shell, given) : undefined;
  await finish(shell, given, finding, json);
  if (finding?.state === "failed") process.exitCode = ExitCode.failed;
}

/** Writes the answers and prints the next steps. */
async function finish(
  shell: Shell,
  { changes, service }: Answered,
  finding: Finding | undefined,
  json: boolean | undefined,
): Promise<void> {
  const { paths } = shell;
  const before = loadConfig(paths.config) as Record<string, unknown>;
  ensureHome(paths);
  const needed = Object.entries(changes).filter(([key, value]) => value !== undefined || before[key] !== undefined);
  updateConfig(paths.config, Object.fromEntries(needed));
  const changed = needed.map(([key]) => key);
  const installed = service ? await installService(shell) : undefined;
  const { formatTrial } = await import("./setup-trial.ts");
  const text = [
    saidOf(shell, changed),
    ...(finding ? [formatTrial(finding)] : []),
    ...(installed ? [installed] : []),
    modeLine(loadConfig(paths.config).mode),
    ...[howToType({ env: shell.env, cwd: process.cwd() })].filter((line) => line !== undefined),
  ].join("\n");
  shell.print({ path: paths.config, changed, ...(finding && { model: finding }) }, shell.typed(text), { json });
}

async function installService(shell: Shell): Promise<string> {
  const { kindHere, openService } = await import("./service-manager.ts");
  const service = openService({ env: shell.env, paths: shell.paths, kind: kindHere() });
  const { started, trouble } = await service.install({ start: shell.daemon() === undefined });
  return `${service.path} is written${started ? ", and IO runs as a service" : trouble ? `; it is not started yet: ${trouble}` : ""}.`;
}

function saidOf({ paths, daemon, invocation }: Shell, changed: string[]): string {
  const next = daemon() ? '"io restart" lets the daemon follow it' : `"${invocation().io}" opens the chat`;
  const what = changed.length === 0 ? "nothing but the defaults was needed" : `${changed.join(", ")} set`;
  return `${paths.config}: ${what}. ${next}; "io doctor" checks everything.`;
}
