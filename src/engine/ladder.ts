import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Config } from "../lib/config.ts";
import { usageError } from "../lib/errors.ts";
import type { EngineKind } from "./port.ts";

/** Where the model comes from. */
export interface Choice {
  kind: EngineKind;
  /** Said to the person: which model was found and where. */
  why: string;
  model: string;
  provider?: {
    type: "openai" | "azure" | "anthropic";
    baseUrl: string;
    wireApi: "completions" | "responses";
    apiKey?: string;
    bearerToken?: string;
  };
  gitHubToken?: string;
}

const KINDS = ["copilot", "provider", "ollama", "rehearsal"] as const;

/** Takes the first model that is there: the config's provider, the environment's, GitHub Copilot, Ollama, the rehearsal model. */
export async function chooseEngine(config: Config, env: NodeJS.ProcessEnv): Promise<Choice> {
  const forced = env.IO_ENGINE || undefined;
  if (forced !== undefined && !KINDS.some((kind) => kind === forced)) {
    throw usageError(`IO_ENGINE: "${forced}" is not an engine. Allowed: ${KINDS.join(", ")}.`);
  }
  const wanted = (kind: EngineKind) => forced === undefined || forced === kind;

  const provider = wanted("provider") ? (fromConfig(config, env) ?? fromEnvironment(config, env)) : undefined;
  if (provider) return provider;
  if (forced === "provider") {
    throw usageError('IO_ENGINE is "provider", but there is none. Set `provider` in config.json, or COPILOT_PROVIDER_BASE_URL.');
  }
  const copilot = wanted("copilot") ? fromGitHub(config, env) : undefined;
  if (copilot) return copilot;
  if (forced === "copilot")
    return { kind: "copilot", why: "GitHub Copilot, with the login the runtime finds", model: config.defaultModel };

  const ollama = wanted("ollama") ? await fromOllama(config) : undefined;
  if (ollama) return ollama;
  if (forced === "ollama")
    throw usageError(
      `IO_ENGINE is "ollama", but nothing that has a model answers at ${config.ollamaUrl}. Start Ollama and pull a model.`,
    );

  return { kind: "rehearsal", why: "the embedded rehearsal model: it only plays at being one", model: "rehearsal" };
}

function fromConfig(config: Config, env: NodeJS.ProcessEnv): Choice | undefined {
  const { provider } = config;
  if (!provider) return undefined;
  const apiKey = provider.apiKey ?? (provider.apiKeyEnv ? env[provider.apiKeyEnv] : undefined);
  if (provider.apiKeyEnv && !apiKey) throw usageError(`provider.apiKeyEnv: the variable ${provider.apiKeyEnv} is not set.`);
  const { type, baseUrl, wireApi } = provider;
  return {
    kind: "provider",
    why: `the provider of config.json at ${hostOf(baseUrl)}`,
    model: provider.model ?? config.defaultModel,
    provider: { type, baseUrl, wireApi, ...(apiKey && { apiKey }) },
  };
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
  const { COPILOT_PROVIDER_API_KEY: apiKey, COPILOT_PROVIDER_BEARER_TOKEN: bearerToken } = env;
  return {
    kind: "provider",
    why: `the provider of COPILOT_PROVIDER_BASE_URL at ${hostOf(baseUrl)}`,
    model: env.COPILOT_MODEL || config.defaultModel,
    provider: { type, baseUrl, wireApi, ...(apiKey && { apiKey }), ...(bearerToken && { bearerToken }) },
  };
}

function fromGitHub(config: Config, env: NodeJS.ProcessEnv): Choice | undefined {
  const model = env.COPILOT_MODEL || config.defaultModel;
  for (const name of ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"]) {
    const gitHubToken = env[name];
    if (gitHubToken) return { kind: "copilot", why: `GitHub Copilot, with the token of ${name}`, model, gitHubToken };
  }
  return hasLogin(env) ? { kind: "copilot", why: "GitHub Copilot, with the login of the Copilot CLI", model } : undefined;
}

/** The Copilot CLI notes who is logged in in its own config file. */
function hasLogin(env: NodeJS.ProcessEnv): boolean {
  const file = join(env.COPILOT_HOME || join(env.HOME || homedir(), ".copilot"), "config.json");
  if (!existsSync(file)) return false;
  const text = readFileSync(file, "utf8");
  return /"(?:logged_in_users|loggedInUsers)"\s*:\s*\[\s*[{"]/.test(text);
}

const OllamaTags = z.looseObject({ models: z.array(z.looseObject({ name: z.string() })) });

async function fromOllama(config: Config): Promise<Choice | undefined> {
  try {
    const response = await fetch(new URL("/api/tags", config.ollamaUrl), { signal: AbortSignal.timeout(500) });
    const names = OllamaTags.parse(await response.json()).models.map((model) => model.name);
    const model = names.find((name) => name === config.defaultModel) ?? names[0];
    if (!model) return undefined;
    const baseUrl = new URL("/v1", config.ollamaUrl).href;
    return {
      kind: "ollama",
      why: `Ollama at ${hostOf(baseUrl)}`,
      model,
      provider: { type: "openai", baseUrl, wireApi: "completions", apiKey: "ollama" },
    };
  } catch {
    // Nothing answers there, or something that is not Ollama.
    return undefined;
  }
}

function hostOf(url: string): string {
  return new URL(url).host;
}
