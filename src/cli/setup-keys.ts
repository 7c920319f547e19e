import { spawn } from "node:child_process";
import * as prompts from "@clack/prompts";
import { PRESETS } from "../engine/models/presets.ts";
import { findCopilotProgram } from "../engine/runtime/path.ts";
import type { Config } from "../home/config.ts";
import { ExitCode, messageOf, UserError } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import type { Shell } from "./output.ts";
import { checkedToken } from "./setup-flags.ts";
import { type Found, findModels } from "./setup-found.ts";
import { type Ask, askProvider } from "./setup-provider.ts";
import { type Answered, type Changes, configWith, formatTrial, overridingSettings, tryOut } from "./setup-trial.ts";

/** Prompts go to standard error, so that standard output contains only the result. */
const output = process.stderr;
const safe = (text: string) => terminalSafe(text).replaceAll("\n", " ");

/** The setup questions at a terminal, answered with arrow keys. Ctrl-C changes nothing. */
export async function askByKeys(shell: Shell, before: Config): Promise<Answered> {
  prompts.intro("IO: which model answers, and how to reach it", { output });
  const found = await findModels(before, shell.env);
  showFound(found);
  for (;;) {
    const { changes, engine } = await askEngine(shell, before, found);
    for (const note of overridingSettings(shell, engine)) prompts.log.warn(safe(shell.typed(note)), { output });
    if (engine !== "rehearsal" && !(await isGood(shell, { changes, engine }))) continue;
    Object.assign(changes, await askTelegram(before));
    const service =
      process.platform === "win32" ? false : await yes("Start IO at every login, as a service of the system?", false);
    return { changes, engine, service };
  }
}

function showFound({ login, passedOver, environment, ollama, keys }: Found): void {
  const lines = [
    ...(login ? [`GitHub Copilot: ${login.name}`] : []),
    ...passedOver.map((why) => `GitHub Copilot: ${why}`),
    ...(environment ? [`COPILOT_PROVIDER_BASE_URL: ${environment}`] : []),
    ...(ollama ? [`Ollama at ${ollama.url}: ${ollama.models.slice(0, 6).join(", ") || "no model is pulled yet"}`] : []),
    ...keys.map(({ preset, variable }) => `${preset.title}: ${variable} is set`),
  ];
  prompts.note(lines.map(safe).join("\n") || "No login, no key and no Ollama.", "Found here", { output });
}

/** Asks for the engine, and what it needs. */
async function askEngine(shell: Shell, before: Config, found: Found): Promise<{ changes: Changes; engine: Answered["engine"] }> {
  const keyed = new Set(found.keys.map(({ preset }) => preset.name));
  const hintFor = (name: string) => found.keys.find(({ preset }) => preset.name === name)?.variable;
  const presets = [...PRESETS]
    .filter(({ name }) => name !== "ollama")
    .sort((a, b) => Number(keyed.has(b.name)) - Number(keyed.has(a.name)));
  const picked = await answered(
    prompts.select<string>({
      message: "Which model is to answer?",
      maxItems: 14,
      initialValue: initialOf(before, found),
      options: [
        { value: "copilot", label: "GitHub Copilot", hint: safe(found.login?.name ?? "log in, or give a token") },
        {
          value: "ollama",
          label: "Ollama, on this machine",
          hint: found.ollama ? `${found.ollama.models.length} models` : "does not answer now",
        },
        ...(found.environment
          ? [{ value: "environment", label: "What COPILOT_PROVIDER_BASE_URL says", hint: safe(found.environment) }]
          : []),
        ...presets.map(({ name, title }) => {
          const variable = hintFor(name);
          return { value: name, label: title, ...(variable && { hint: `${variable} is set` }) };
        }),
        { value: "rehearsal", label: "None for now", hint: "the rehearsal model plays a few scenes" },
      ],
      output,
    }),
  );
  if (picked === "rehearsal") return { changes: { provider: undefined }, engine: "rehearsal" };
  if (picked === "environment") return { changes: { provider: undefined }, engine: "provider" };
  if (picked === "copilot") return { changes: { provider: undefined, ...(await askLogin(shell, found)) }, engine: "copilot" };
  const fits = (draft: unknown) => void configWith(shell, { provider: draft });
  const note = (text: string) => prompts.log.message(safe(text), { output });
  const provider = await askProvider(asking(picked, found), { before: before.provider, env: shell.env, note, fits });
  return { changes: provider === "as it is" ? {} : { provider }, engine: "provider" };
}

function initialOf(before: Config, { login, ollama, environment, keys }: Found): string {
  if (before.provider) {
    const { baseUrl } = before.provider;
    const known = PRESETS.find(({ address }) => address !== undefined && baseUrl.startsWith(new URL(address).origin));
    return known?.name ?? "other";
  }
  if (environment) return "environment";
  if (login) return "copilot";
  return keys[0]?.preset.name ?? (ollama && ollama.models.length > 0 ? "ollama" : "copilot");
}

/** Connects GitHub Copilot: with the existing login, a new login, or a token. */
async function askLogin(shell: Shell, { login }: Found): Promise<Changes> {
  const program = findCopilotProgram(shell.env);
  const way = await answered(
    prompts.select<string>({
      message: "How does IO log in to GitHub Copilot?",
      options: [
        ...(login ? [{ value: "found", label: `With ${safe(login.name)}` }] : []),
        ...(program ? [{ value: "login", label: "Log in now", hint: "GitHub's own page, or a code to type there" }] : []),
        { value: "token", label: "With a token", hint: 'fine-grained, with the permission "Copilot Requests"' },
      ],
      output,
    }),
  );
  if (way === "token") {
    const token = await answered(
      prompts.password({ message: "The token", validate: complaint((text) => void checkedToken(text.trim())), output }),
    );
    return { githubToken: token.trim() };
  }
  if (way === "login" && program !== undefined) {
    const code = await loginWith(program, shell.env);
    if (code !== 0) throw new UserError(`The login was not finished (exit ${code}). Nothing was changed.`);
  }
  return {};
}

/** The Copilot program asks and stores the login itself, using the terminal. */
function loginWith(program: string, env: NodeJS.ProcessEnv): Promise<number | null> {
  return new Promise((done) => {
    const child = spawn(program, ["login"], { env, stdio: "inherit" });
    child.once("error", () => done(null));
    child.once("close", (code) => done(code));
  });
}

/** Asks the questions about a provider with prompts. */
function asking(picked: string, { ollama }: Found): Ask {
  return async (question, { id, fallback = "", hidden, check, choices = [] }) => {
    if (id === "provider") return picked;
    if (id === "address" && picked === "ollama" && ollama) return ollama.url;
    if (choices.length > 0) {
      const known = choices.some(({ value }) => value === fallback);
      const options = [
        ...choices.map(({ value, hint }) => ({ value, label: safe(value), ...(hint && { hint }) })),
        ...(fallback !== "" && !known ? [{ value: fallback, label: safe(fallback), hint: "not in its list" }] : []),
        { value: "", label: "Another, by name" },
      ];
      const chosen = await answered(
        prompts.select<string>({ message: question, options, initialValue: fallback, maxItems: 12, output }),
      );
      if (chosen !== "") return chosen;
    }
    const validate = complaint((text) => {
      const answer = text.trim() || fallback;
      if (answer !== fallback) check?.(answer);
    });
    const shown = fallback !== "" && hidden ? ` (Enter: ${fallback})` : "";
    const message = `${question}${shown}`;
    const typed = hidden
      ? prompts.password({ message, validate, output })
      : prompts.text({ message, validate, output, ...(fallback !== "" && { placeholder: fallback, defaultValue: fallback }) });
    return ((await answered(typed)) ?? "").trim() || fallback;
  };
}

/** Tries the answers, and lets the person decide if that fails. False: ask again. */
async function isGood(shell: Shell, draft: Pick<Answered, "changes" | "engine">): Promise<boolean> {
  const busy = prompts.spinner({ output });
  busy.start("Asking it something, to see that it answers");
  const finding = await tryOut(shell, draft).catch((error: unknown) => {
    busy.error("It could not be asked");
    throw error;
  });
  if (finding === undefined || finding.state === "ok") {
    busy.stop(safe(finding ? formatTrial(finding) : "It answers."));
    return true;
  }
  busy.stop(safe(shell.typed(formatTrial(finding))));
  const next = await answered(
    prompts.select<string>({
      message: "What now?",
      options: [
        { value: "again", label: "Choose again" },
        { value: "keep", label: "Keep it all the same" },
      ],
      initialValue: finding.state === "failed" ? "again" : "keep",
      output,
    }),
  );
  return next === "keep";
}

async function askTelegram(before: Config): Promise<Changes> {
  if (before.telegramBotToken) return {};
  if (!(await yes("Talk to IO through a Telegram bot of yours, too?", false))) return {};
  const check = complaint((text) => {
    if (!/^\d+:[\w-]{20,}$/.test(text.trim())) throw new UserError("A bot's token looks like 123456:ABC…; @BotFather gives it.");
  });
  const token = await answered(prompts.password({ message: "The bot's token, from @BotFather", validate: check, output }));
  return { telegramEnabled: true, telegramBotToken: token.trim() };
}

async function yes(message: string, initialValue: boolean): Promise<boolean> {
  return answered(prompts.confirm({ message, initialValue, output }));
}

function complaint(check: (text: string) => void): (text: string | undefined) => string | undefined {
  return (text) => {
    try {
      check(text ?? "");
      return undefined;
    } catch (error) {
      return safe(messageOf(error));
    }
  };
}

async function answered<T>(asked: Promise<T>): Promise<Exclude<T, symbol>> {
  const answer = await asked;
  if (!prompts.isCancel(answer)) return answer as Exclude<T, symbol>;
  throw new UserError("Interrupted. Nothing was changed.", { exitCode: ExitCode.interrupted });
}
