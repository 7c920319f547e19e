import { z } from "zod";
import { type Config, DEFAULT_MODEL } from "../../home/config.ts";
import { usageError } from "../../lib/errors.ts";
import type { EngineKind } from "../port.ts";
import { createProxyChoice } from "../wire/proxy.ts";
import { createHttpTransport, type Transport } from "../wire/transport.ts";
import { SettingError, type SettingNames } from "./failures.ts";
import { findGitHubLogin, type GitHubLogin } from "./github.ts";
import { idleVariables, isKey, isVariable, keyAdvice } from "./keys.ts";
import { createOllama, type Ollama } from "./ollama.ts";
import { endpointOf, type Provider, typeOf } from "./provider.ts";

/** The chosen model, and how to reach it. */
export interface Choice {
  kind: EngineKind;
  /** Tells people which model was chosen and where it is. */
  why: string;
  model: string;
  /** The user named the model. It is used even if the provider's list does not contain it. */
  named: boolean;
  provider?: Provider;
  /** The GitHub login, if the model is GitHub Copilot's. */
  login?: GitHubLogin;
  /** Sentences that the user should read about this choice. */
  notes?: string[];
  /** Where the user finds the settings in use. */
  names: SettingNames;
}

const KINDS = ["copilot", "provider", "ollama", "rehearsal"] as const;

/** Chooses the first model source available: config, environment, GitHub Copilot, Ollama, and last the rehearsal model. */
export async function chooseEngine(config: Config, env: NodeJS.ProcessEnv): Promise<Choice> {
  const transport = createHttpTransport(createProxyChoice({ env }));
  const forced = env.IO_ENGINE || undefined;
  if (forced !== undefined && !KINDS.some((kind) => kind === forced)) {
    throw usageError(`IO_ENGINE: "${forced}" is not an engine. Allowed: ${KINDS.join(", ")}.`);
  }
  const wanted = (kind: EngineKind) => forced === undefined || forced === kind;

  const provider = wanted("provider") ? (fromConfig(config, env) ?? fromEnvironment(config, env)) : undefined;
  if (provider) return provider;
  if (forced === "provider") {
    throw new SettingError(
      'IO_ENGINE is "provider", but there is none.',
      "Set `provider` in config.json (`io setup` asks for it), or COPILOT_PROVIDER_BASE_URL.",
    );
  }
  const { login, passedOver } = wanted("copilot") ? await findGitHubLogin(env, config.githubToken) : { passedOver: [] };
  if (login) return telling(fromGitHub(config, env, login), passedOver);
  if (forced === "copilot") {
    const reason = passedOver.map((why) => `${capital(why)}. `).join("");
    throw usageError(
      `IO_ENGINE is "copilot", but there is no login to ask with. ${reason}Set COPILOT_GITHUB_TOKEN, or log in with \`io setup\` or \`copilot login\`.`,
    );
  }

  const ollama = wanted("ollama") ? await fromOllama(config, env, transport) : undefined;
  if (ollama) return telling(ollama, passedOver);
  if (forced === "ollama")
    throw new SettingError(
      `IO_ENGINE is "ollama", but nothing that has a model answers at ${config.ollamaUrl}.`,
      "Start Ollama and pull a model, or correct ollamaUrl in config.json.",
    );

  return telling(
    {
      kind: "rehearsal",
      why: "the embedded rehearsal model: it only plays at being one",
      model: "rehearsal",
      named: true,
      names: { address: "none: it is part of IO", key: "none", model: "none: it plays every model" },
    },
    passedOver,
  );
}

/** Adds the reasons why earlier candidates were rejected. */
function telling(choice: Choice, passedOver: string[]): Choice {
  if (passedOver.length === 0) return choice;
  const reasons = passedOver.join("; ");
  return { ...choice, why: `${choice.why}; ${reasons}`, notes: passedOver.map((why) => `${capital(why)}.`) };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function fromConfig(config: Config, env: NodeJS.ProcessEnv): Choice | undefined {
  const { provider } = config;
  if (!provider) return undefined;
  const { apiKey: typed, apiKeyEnv, bearerTokenEnv, model, apiVersion, proxy, ...settings } = provider;
  const variable = (setting: string, name: string | undefined) =>
    name === undefined ? undefined : variableValue(`provider.${setting} in config.json`, name, env);
  const apiKey = typed?.trim() ?? variable("apiKeyEnv", apiKeyEnv);
  const bearerToken = variable("bearerTokenEnv", bearerTokenEnv);
  const key = bearerTokenEnv
    ? `${bearerTokenEnv}, named by provider.bearerTokenEnv in config.json`
    : typed
      ? "provider.apiKey in config.json"
      : apiKeyEnv && `${apiKeyEnv}, named by provider.apiKeyEnv in config.json`;
  return chosen("provider", `the provider of config.json at ${hostOf(provider.baseUrl)}`, {
    provider: {
      ...settings,
      ...(apiKey && { apiKey }),
      ...(bearerToken && { bearerToken }),
      ...(apiVersion && { apiVersion }),
      ...(proxy && { proxy }),
    },
    named: model,
    namedBy: "provider.model in config.json",
    config,
    names: {
      address: "provider.baseUrl in config.json",
      key: key ?? "none is set: provider.apiKey or provider.apiKeyEnv in config.json",
      wireApi: "provider.wireApi in config.json",
    },
    toName: (name) => `set provider.apiKeyEnv in config.json to ${isVariable(name) ? `"${name}"` : `the name of ${name}`}`,
    env,
  });
}

function fromEnvironment(config: Config, env: NodeJS.ProcessEnv): Choice | undefined {
  const baseUrl = env.COPILOT_PROVIDER_BASE_URL;
  if (!baseUrl) return undefined;
  const check = <T extends string>(name: string, allowed: readonly T[], fallback: T): T => {
    const value = env[name] || fallback;
    const found = allowed.find((one) => one === value);
    if (!found) throw usageError(`${name}: "${value}" is not allowed. Allowed: ${allowed.join(", ")}.`);
    return found;
  };
  if (!z.url({ protocol: /^https?$/ }).safeParse(baseUrl).success) {
    throw usageError(`COPILOT_PROVIDER_BASE_URL: "${baseUrl}" is not an http or https address.`);
  }
  const type = check("COPILOT_PROVIDER_TYPE", ["openai", "azure", "anthropic"] as const, "openai");
  const wireApi = check("COPILOT_PROVIDER_WIRE_API", ["completions", "responses"] as const, "completions");
  const apiKey = env.COPILOT_PROVIDER_API_KEY?.trim();
  const bearerToken = env.COPILOT_PROVIDER_BEARER_TOKEN?.trim();
  const key = bearerToken ? "COPILOT_PROVIDER_BEARER_TOKEN" : apiKey ? "COPILOT_PROVIDER_API_KEY" : undefined;
  return chosen("provider", `the provider of COPILOT_PROVIDER_BASE_URL at ${hostOf(baseUrl)}`, {
    provider: { type, baseUrl, wireApi, ...(apiKey && { apiKey }), ...(bearerToken && { bearerToken }) },
    named: env.COPILOT_MODEL,
    namedBy: "COPILOT_MODEL",
    config,
    names: {
      address: "COPILOT_PROVIDER_BASE_URL",
      key: key ?? "none is set: COPILOT_PROVIDER_API_KEY",
      wireApi: "COPILOT_PROVIDER_WIRE_API",
    },
    toName: (name) => `set COPILOT_PROVIDER_API_KEY${isVariable(name) ? ` to the value of ${name}` : ""}`,
    env,
  });
}

/** Reads the environment variable that a setting names. */
function variableValue(setting: string, name: string, env: NodeJS.ProcessEnv): string {
  if (isKey(name)) {
    const instead = setting.includes("bearer") ? "Put the token into a variable and name that" : "Move it to provider.apiKey";
    throw new SettingError(`${setting} holds a key and not the name of a variable.`, `${instead}; it is a secret either way.`);
  }
  const value = env[name]?.trim();
  if (value) return value;
  const others = idleVariables(env).filter((other) => other !== name);
  const known = others.length > 0 ? ` Set are: ${others.join(", ")}.` : "";
  throw new SettingError(
    `${setting}: the variable ${name} is not set.`,
    `Set it where IO is started, or name another there.${known}`,
  );
}

/** Completes a provider with its model: the one named with it, the one in its address, or the config's default. */
function chosen(
  kind: EngineKind,
  why: string,
  {
    provider: given,
    named,
    namedBy,
    config,
    names,
    toName,
    env,
  }: {
    provider: Provider;
    named: string | undefined;
    namedBy: string;
    config: Config;
    names: Omit<SettingNames, "model">;
    toName: (variable: string) => string;
    env: NodeJS.ProcessEnv;
  },
): Choice {
  const provider = { ...given, type: typeOf(given) };
  const inAddress = endpointOf(provider).model;
  const model = named || inAddress || config.defaultModel;
  const by = named ? namedBy : inAddress ? names.address : "defaultModel in config.json";
  const advice = keyAdvice({
    key: provider.bearerToken ?? provider.apiKey,
    setting: names.key,
    toName,
    baseUrl: provider.baseUrl,
    address: names.address,
    type: provider.type,
    env,
  });
  return {
    kind,
    why,
    model,
    named: Boolean(named || inAddress),
    provider,
    names: { ...names, model: by, keyAdvice: advice },
  };
}

function fromGitHub(config: Config, env: NodeJS.ProcessEnv, login: GitHubLogin): Choice {
  return {
    kind: "copilot",
    why: `GitHub Copilot, with ${login.name}`,
    model: env.COPILOT_MODEL || config.defaultModel,
    named: Boolean(env.COPILOT_MODEL),
    login,
    names: {
      address: "GitHub's own",
      key: login.variable ?? login.name,
      model: env.COPILOT_MODEL ? "COPILOT_MODEL" : "defaultModel in config.json",
    },
  };
}

async function fromOllama(config: Config, env: NodeJS.ProcessEnv, transport: Transport): Promise<Choice | undefined> {
  const ollama = createOllama(config.ollamaUrl, transport);
  const names = (await ollama.names()) ?? [];
  if (names.length === 0) return undefined;
  const wanted = env.COPILOT_MODEL || config.defaultModel;
  const named = wanted !== DEFAULT_MODEL;
  const found = names.find((name) => name === wanted) ?? names.find((name) => name === `${wanted}:latest`);
  const model = found ?? (named ? wanted : await firstToTalk(names, ollama));
  if (model === undefined) return undefined;
  const baseUrl = new URL("/v1", config.ollamaUrl).href;
  return {
    kind: "ollama",
    why: `Ollama at ${hostOf(baseUrl)}`,
    model,
    named: true,
    provider: { type: "openai", baseUrl, wireApi: "completions" },
    names: {
      address: "ollamaUrl in config.json",
      key: "none: Ollama asks for none",
      model: env.COPILOT_MODEL ? "COPILOT_MODEL" : "defaultModel in config.json",
    },
  };
}

/** The first chat model, preferring those that support tools. Only the first 20 are checked. */
async function firstToTalk(names: readonly string[], ollama: Ollama): Promise<string | undefined> {
  const facts = (await Promise.all(names.slice(0, 20).map((name) => ollama.facts(name)))).filter(({ chats }) => chats !== false);
  return (facts.find(({ tools }) => tools) ?? facts[0])?.id;
}

function hostOf(url: string): string {
  return new URL(url).host;
}
