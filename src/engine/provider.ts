import type { ModelConfig } from "../lib/config.ts";
import type { Wire } from "./wire/dialect.ts";

/** A model provider of one's own, as the config or the environment names it. */
export interface Provider {
  type: "openai" | "azure" | "anthropic";
  baseUrl: string;
  wireApi: "completions" | "responses";
  apiKey?: string;
  bearerToken?: string;
  headers?: Record<string, string>;
  apiVersion?: string;
  /** What a person says of its models. */
  models?: readonly ModelConfig[];
  proxy?: string;
}

/** Where a provider's models are asked and listed, from whatever form of its address a person had at hand. */
export interface Endpoint {
  ask(wire: Wire, model: string): string;
  list: string;
  /** The provider's address without the path of its API. */
  origin: string;
  headers: Record<string, string>;
  /** The model that the address itself names, as an Azure portal's does. */
  model: string | undefined;
}

const SUFFIX: Record<Wire, string> = { completions: "/chat/completions", responses: "/responses", messages: "/messages" };

export function endpointOf(provider: Provider): Endpoint {
  const headers = { "content-type": "application/json", ...credentials(provider), ...provider.headers };
  const url = new URL(provider.baseUrl);
  const path = url.pathname.replace(/\/+$/, "").replace(/\/(?:chat\/completions|completions|responses|messages|models)$/, "");
  const plain = { origin: url.origin, headers, model: undefined };
  if (provider.type === "azure") return { ...plain, ...azure(url, path, provider.apiVersion) };
  if (provider.type === "anthropic") {
    const root = `${url.origin}${path.replace(/\/v1$/, "")}/v1`;
    return { ...plain, ask: (wire) => `${root}${SUFFIX[wire]}`, list: `${root}/models?limit=1000` };
  }
  const root = `${url.origin}${path || usualPath(url.hostname)}`;
  const list = url.hostname === "models.github.ai" ? `${url.origin}/catalog/models` : `${root}/models`;
  return { ...plain, ask: (wire) => `${root}${SUFFIX[wire]}`, list };
}

/** Where providers keep their API when the address names only a host. */
function usualPath(host: string): string {
  if (host === "openrouter.ai") return "/api/v1";
  if (host === "models.github.ai") return "/inference";
  if (host === "models.inference.ai.azure.com") return "";
  return "/v1";
}

/** Azure serves by deployment: on routes without a version, or on those of the version that was named. */
function azure(url: URL, path: string, given: string | undefined): Pick<Endpoint, "ask" | "list" | "model"> {
  const [, before = path, deployment] = /^(.*?)\/openai\/deployments\/([^/]+)/.exec(path) ?? [];
  const root = `${url.origin}${before
    .replace(/\/openai(?:\/v1)?$/, "")
    .replace(/\/api\/projects\/.*$/, "")
    .replace(/^\/models$/, "")}`;
  const version = given ?? url.searchParams.get("api-version") ?? undefined;
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
