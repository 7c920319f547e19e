import { z } from "zod";
import type { Config } from "../lib/config.ts";
import { usageError } from "../lib/errors.ts";
import { findGitHubLogin, type GitHubLogin } from "./github.ts";
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
  /** Who is asked as, when the model is GitHub Copilot's. */
  login?: GitHubLogin;
  /** What a person should know of this choice, in sentences. */
  notes?: string[];
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
  const { login, passedOver } = wanted("copilot") ? await findGitHubLogin(env) : { passedOver: [] };
  if (login) return telling(fromGitHub(config, env, login), passedOver);
  if (forced === "copilot") {
    const reason = passedOver.map((why) => `${capital(why)}. `).join("");
    throw usageError(
      `IO_ENGINE is "copilot", but there is no login to ask with. ${reason}Set COPILOT_GITHUB_TOKEN, or log in with \`copilot login\`.`,
    );
  }

  const ollama = wanted("ollama") ? await fromOllama(config) : undefined;
  if (ollama) return telling(ollama, passedOver);
  if (forced === "ollama")
    throw usageError(
      `IO_ENGINE is "ollama", but nothing that has a model answers at ${config.ollamaUrl}. Start Ollama and pull a model.`,
    );

  return telling(
    { kind: "rehearsal", why: "the embedded rehearsal model: it only plays at being one", model: "rehearsal" },
    passedOver,
  );
}

/** The choice, with what was passed over on the way to it. */
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

function fromGitHub(config: Config, env: NodeJS.ProcessEnv, login: GitHubLogin): Choice {
  return { kind: "copilot", why: `GitHub Copilot, with ${login.name}`, model: env.COPILOT_MODEL || config.defaultModel, login };
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
