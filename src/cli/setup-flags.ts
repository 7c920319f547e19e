import type { EngineKind } from "../engine/port.ts";
import { loadConfig } from "../home/config.ts";
import { usageError } from "../lib/errors.ts";
import { readInput } from "./input.ts";
import type { Shell } from "./output.ts";
import type { Found } from "./setup-found.ts";
import { type Ask, askProvider } from "./setup-provider.ts";
import { type Answered, type Changes, configWith } from "./setup-trial.ts";

export interface SetupFlags {
  engine?: EngineKind;
  provider?: string;
  baseUrl?: string;
  apiKey?: string;
  apiKeyEnv?: string;
  model?: string;
  githubToken?: string;
  port?: string;
  telegramToken?: string;
  telegramUser?: string;
  service?: boolean;
}

/** Whether any answer was given on the command line. */
export function hasFlags(flags: SetupFlags): boolean {
  return Object.values(flags).some((value) => value !== undefined);
}

/** The answers given by flags. Nobody is asked; an invalid answer is exit code 2. */
export async function answersIn(flags: SetupFlags, shell: Shell, found: Found): Promise<Answered> {
  const engine = flags.engine ?? engineIn(flags);
  const changes: Changes = {};
  if (engine === "copilot") Object.assign(changes, { provider: undefined }, await loginIn(flags, found));
  else if (flags.githubToken !== undefined) Object.assign(changes, await loginIn(flags, found));
  if (engine === "provider" || engine === "ollama") changes.provider = await providerIn(flags, shell, found, engine);
  if (engine === "rehearsal") changes.provider = undefined;
  if (flags.model !== undefined && (engine === "copilot" || engine === undefined)) changes.defaultModel = flags.model;
  if (flags.port !== undefined) changes.port = whole("--port", flags.port);
  if (flags.telegramToken !== undefined)
    Object.assign(changes, { telegramEnabled: true, telegramBotToken: await secret(flags.telegramToken) });
  if (flags.telegramUser !== undefined) changes.authorizedUserId = whole("--telegram-user", flags.telegramUser);
  configWith(shell, changes);
  // Ollama is stored as a provider, which takes precedence over everything else.
  return { changes, engine: engine === "ollama" ? "provider" : engine, service: flags.service === true };
}

function engineIn({ provider, baseUrl, apiKey, apiKeyEnv, githubToken }: SetupFlags): EngineKind | undefined {
  if (provider !== undefined || baseUrl !== undefined) return "provider";
  if (apiKey !== undefined || apiKeyEnv !== undefined)
    throw usageError("A key is of no use without its provider: add --provider <name> or --base-url <address>.");
  return githubToken === undefined ? undefined : "copilot";
}

async function loginIn({ githubToken }: SetupFlags, { login, passedOver }: Found): Promise<Changes> {
  if (githubToken !== undefined) return { githubToken: checkedToken(await secret(githubToken)) };
  if (login) return {};
  const why = passedOver.map((each) => `${each}. `).join("");
  throw usageError(
    `There is no login for GitHub Copilot. ${why}Add --github-token <token> ("-" reads it from standard input), set COPILOT_GITHUB_TOKEN, or run io setup in a terminal and log in there.`,
  );
}

/** Rejects tokens that GitHub would reject, with an explanation. */
export function checkedToken(token: string): string {
  if (token.startsWith("ghp_"))
    throw usageError(
      'This is a classic token (ghp_…), which GitHub Copilot does not take: make a fine-grained one with the permission "Copilot Requests".',
    );
  if (token === "" || /\s/.test(token)) throw usageError("This is no token: it is empty or has spaces in it.");
  return token;
}

async function providerIn(flags: SetupFlags, shell: Shell, found: Found, engine: "provider" | "ollama"): Promise<unknown> {
  const before = loadConfig(shell.paths.config).provider;
  const name = engine === "ollama" ? "ollama" : (flags.provider ?? flags.baseUrl);
  if (name === undefined) throw usageError("Which provider? Add --provider <name> or --base-url <address>.");
  if (engine === "ollama" && flags.baseUrl === undefined && !found.ollama)
    throw usageError("No Ollama answers here. Start it and pull a model, or say where it is with --base-url.");
  const given: Record<string, string | undefined> = {
    provider: name,
    address: flags.baseUrl ?? (engine === "ollama" ? found.ollama?.url : undefined),
    key: flags.apiKeyEnv ?? (flags.apiKey === undefined ? undefined : await secret(flags.apiKey)),
    model: flags.model,
  };
  const ask: Ask = async (_question, { id, fallback = "", check }) => {
    const answer = given[id] ?? fallback;
    if (answer !== fallback || id === "provider") check?.(answer);
    return answer;
  };
  const fits = (draft: unknown) => void configWith(shell, { provider: draft });
  const draft = await askProvider(ask, { before, env: shell.env, note: shell.note, fits });
  return draft === "as it is" ? before : draft;
}

/** "-" reads a secret from standard input, because process lists show arguments. */
async function secret(given: string): Promise<string> {
  return (given === "-" ? await readInput() : given).trim();
}

function whole(flag: string, typed: string): number {
  if (!/^\d{1,15}$/.test(typed)) throw usageError(`${flag}: found "${typed}"; allowed: a whole number.`);
  return Number(typed);
}
