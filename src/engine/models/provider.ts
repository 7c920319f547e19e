import type { ModelConfig } from "../../home/config.ts";
import type { Wire } from "../wire/dialect.ts";
import { PRESETS, presetAt } from "./presets.ts";

/** A custom model provider, from the config or the environment. */
export interface Provider {
  type: "openai" | "azure" | "anthropic";
  baseUrl: string;
  wireApi: "completions" | "responses";
  apiKey?: string;
  bearerToken?: string;
  headers?: Record<string, string>;
  apiVersion?: string;
  /** The user's own facts about its models. */
  models?: readonly ModelConfig[];
  proxy?: string;
}

/** The addresses for requests and for the model list, derived from any form of the provider's address. */
export interface Endpoint {
  ask(wire: Wire, model: string): string;
  list: string;
  /** The provider's address without the path of its API. */
  origin: string;
  headers: Record<string, string>;
  /** The model named in the address, as in an Azure portal's. */
  model: string | undefined;
}

const SUFFIX: Record<Wire, string> = { completions: "/chat/completions", responses: "/responses", messages: "/messages" };

export function endpointOf(provider: Provider): Endpoint {
  const headers = { "content-type": "application/json", ...credentials(provider), ...provider.headers };
  const url = new URL(provider.baseUrl);
  const path = url.pathname
    .replace(/\/{2,}/g, "/")
    .replace(/\/$/, "")
    .replace(/\/(?:chat\/completions|completions?|responses|messages|models)$/, "");
  const plain = { origin: url.origin, headers, model: undefined };
  if (provider.type === "azure") return { ...plain, ...azure(url, path, provider.apiVersion) };
  if (provider.type === "anthropic") {
    const root = `${url.origin}${path.replace(/\/v1$/, "")}/v1`;
    return { ...plain, ask: (wire) => `${root}${SUFFIX[wire]}`, list: `${root}/models?limit=1000` };
  }
  const root = `${url.origin}${apiPath(url, path)}`;
  const list = url.hostname === "models.github.ai" ? `${url.origin}/catalog/models` : `${root}/models`;
  return { ...plain, ask: (wire) => `${root}${SUFFIX[wire]}`, list };
}

/** API paths of providers: the presets, and others that are not at `/v1`. */
const USUAL_PATHS: Record<string, string> = {
  ...Object.fromEntries(
    PRESETS.flatMap(({ address, hosts }) => {
      const url = hosts && address ? new URL(address) : undefined;
      return url ? [[url.hostname, url.pathname]] : [];
    }),
  ),
  "models.inference.ai.azure.com": "",
  "api.fireworks.ai": "/inference/v1",
  "api.perplexity.ai": "",
  "generativelanguage.googleapis.com": "/v1beta/openai",
};

/** Completes an address that has only a host, part of the path, or a superfluous `/v1`. */
function apiPath({ hostname, port }: URL, path: string): string {
  const usual = USUAL_PATHS[hostname];
  if (usual !== undefined) return path === "" || path === "/v1" || usual.startsWith(`${path}/`) ? usual : path;
  // Ollama's own API is beside the OpenAI-compatible one.
  const isOllama = port === "11434" && /^\/api(?:\/|$)/.test(path);
  return isOllama ? "/v1" : path || "/v1";
}

/** The provider's type, corrected if the address implies another. */
export function typeOf({ type, baseUrl }: Pick<Provider, "type" | "baseUrl">): Provider["type"] {
  const { pathname } = new URL(baseUrl);
  const isAzure = presetAt(baseUrl)?.type === "azure" || /\/openai\/deployments\//.test(pathname);
  if (isAzure && /\/anthropic(?:\/|$)/.test(pathname)) return "anthropic";
  return isAzure && type === "openai" ? "azure" : type;
}

/** Azure's addresses: the `/openai/v1` API, or the older routes per deployment if a dated version is given. */
function azure(url: URL, path: string, given: string | undefined): Pick<Endpoint, "ask" | "list" | "model"> {
  const [, before = path, deployment] = /^(.*?)\/openai\/deployments\/([^/]+)/.exec(path) ?? [];
  // An `api-version` in a Foundry address belongs to Foundry's own routes, which are not used.
  const isFoundry = /\/models(?:\/|$)/.test(url.pathname);
  const root = `${url.origin}${before
    .replace(/\/models$/, "")
    .replace(/(?:\/openai)?(?:\/v1)?$/, "")
    .split("/api/projects/", 1)}`;
  const version = given ?? (isFoundry ? undefined : (url.searchParams.get("api-version") ?? undefined));
  const model = deployment === undefined ? undefined : decodeURIComponent(deployment);
  if (version === undefined || /^(?:v1|latest|preview)$/.test(version)) {
    const query = version === undefined || version === "v1" ? "" : `?api-version=${version}`;
    return { ask: (wire) => `${root}/openai/v1${SUFFIX[wire]}${query}`, list: `${root}/openai/v1/models${query}`, model };
  }
  const query = `?api-version=${encodeURIComponent(version)}`;
  return {
    ask: (wire, name) =>
      wire === "responses"
        ? `${root}/openai/responses${query}`
        : `${root}/openai/deployments/${encodeURIComponent(name)}${SUFFIX[wire]}${query}`,
    list: `${root}/openai/models${query}`,
    model,
  };
}

function credentials({ type, apiKey, bearerToken }: Provider): Record<string, string> {
  const version = type === "anthropic" ? { "anthropic-version": "2023-06-01" } : {};
  if (bearerToken) return { ...version, authorization: `Bearer ${bearerToken}` };
  if (!apiKey) return version;
  if (type === "anthropic") return { ...version, "x-api-key": apiKey };
  return type === "azure" ? { "api-key": apiKey } : { authorization: `Bearer ${apiKey}` };
}
