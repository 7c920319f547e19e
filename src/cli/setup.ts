import type { Command } from "commander";
import { type Config, type ConfigKey, loadConfig, parseConfig, updateConfig } from "../lib/config.ts";
import { readDaemonFile } from "../lib/daemon-file.ts";
import { messageOf, usageError } from "../lib/errors.ts";
import { ensureHome } from "../lib/paths.ts";
import { openAnswers } from "./input.ts";
import type { Shell } from "./output.ts";

type Changes = { [K in ConfigKey]?: unknown };
/** Asks until the answer fits; an empty one takes the default. */
type Ask = (
  question: string,
  fallback: string,
  take: (answer: string) => Changes,
  options?: { hidden?: boolean },
) => Promise<string>;

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
      const changes = yes ? {} : await askAll(shell, before);
      updateConfig(paths.config, changes);
      const changed = Object.keys(changes);
      const next = readDaemonFile(paths.daemon) ? '"io restart" lets the daemon follow it' : '"io" opens the chat';
      const what = changed.length === 0 ? "nothing but the defaults was needed" : `${changed.join(", ")} set`;
      shell.print({ path: paths.config, changed }, `${paths.config}: ${what}. ${next}; "io doctor" checks everything.`, { json });
    });
}

async function askAll(shell: Shell, before: Config): Promise<Changes> {
  const answers = openAnswers(shell.isTerminal);
  let changes: Changes = {};
  const ask: Ask = async (question, fallback, take, options) => {
    for (;;) {
      const typed = (await answers.next(`${question}${fallback === "" ? "" : ` [${fallback}]`}: `, options)) || fallback;
      if (typed === fallback) return typed;
      try {
        const taken = take(typed);
        check({ ...before, ...changes, ...taken });
        changes = { ...changes, ...taken };
        return typed;
      } catch (error) {
        if (!shell.isTerminal) throw usageError(messageOf(error), error);
        shell.note(messageOf(error));
      }
    }
  };
  try {
    await askModel(ask, before);
    await ask("Port of the API (0 takes any free one)", String(before.port), (port) => ({ port: numberOf(port) }));
    await askTelegram(ask, before);
    return changes;
  } finally {
    answers.close();
  }
}

async function askModel(ask: Ask, before: Config): Promise<void> {
  const { provider } = before;
  const baseUrl = await ask(
    "Address of your own model provider, such as https://api.example.com/v1 (none: GitHub Copilot, Ollama or what the environment says)",
    provider?.baseUrl ?? "none",
    (url) => ({ provider: url === "none" ? undefined : { type: "openai", baseUrl: url } }),
  );
  if (baseUrl === "none") {
    await ask("Default model", before.defaultModel, (defaultModel) => ({ defaultModel }));
    return;
  }
  const same = provider?.baseUrl === baseUrl ? provider : undefined;
  let chosen: Record<string, unknown> = same ? { ...same } : { type: "openai", baseUrl };
  const set = (more: Record<string, unknown>) => {
    chosen = { ...chosen, ...more };
    return { provider: chosen };
  };
  await ask("Its protocol: openai, azure or anthropic", same?.type ?? "openai", (type) => set({ type }));
  await ask("Its model's name", same?.model ?? "", (model) => set({ model }));
  const known = same?.apiKeyEnv ?? (same?.apiKey === undefined ? "" : "the one that is set");
  await ask(
    "Its API key, or the name of the environment variable that holds it (not shown; empty: none)",
    known,
    (key) => set(/^[A-Z][A-Z0-9_]*$/.test(key) ? { apiKeyEnv: key, apiKey: undefined } : { apiKey: key, apiKeyEnv: undefined }),
    { hidden: true },
  );
}

async function askTelegram(ask: Ask, before: Config): Promise<void> {
  const wanted = await ask("Talk to IO on Telegram, yes or no", before.telegramEnabled ? "yes" : "no", (answer) => ({
    telegramEnabled: yesOrNo(answer),
  }));
  if (!yesOrNo(wanted)) return;
  const known = before.telegramBotToken === undefined ? "" : "the one that is set";
  await ask("The bot's token, from @BotFather (not shown)", known, (telegramBotToken) => ({ telegramBotToken }), {
    hidden: true,
  });
  await ask("Your own Telegram user id, a number", String(before.authorizedUserId ?? ""), (id) => ({
    authorizedUserId: numberOf(id),
  }));
}

function check(config: Record<string, unknown>): void {
  parseConfig(Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)), "config.json");
}

function numberOf(answer: string): number {
  if (!/^\d+$/.test(answer)) throw usageError(`"${answer}" is not a whole number.`);
  return Number(answer);
}

function yesOrNo(answer: string): boolean {
  if (/^y(es)?$/i.test(answer)) return true;
  if (/^no?$/i.test(answer)) return false;
  throw usageError(`"${answer}" is neither yes nor no.`);
}
