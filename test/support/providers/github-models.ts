import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json } from "./json.ts";
import { chatFault } from "./openai-chat-rules.ts";
import { OPENAI_MODELS } from "./openai-models.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface GitHubModelsOptions {
  token?: string;
  script?: Script;
  /** Models by `publisher/name`, each with the OpenAI model whose rules apply. */
  models?: Record<string, string>;
  /** The most tokens in a request, far below the model's window. */
  maxInput?: number;
  /** A token without the permission for models. */
  unpermitted?: string;
  count?: Counter;
}

const CATALOG = { "openai/gpt-4.1": "gpt-4.1", "openai/gpt-4o-mini": "gpt-4o-mini", "openai/gpt-5-mini": "gpt-5-mini" };

const githubModels = completionsDialect({
  error: ({ message, code, type, param }) => ({
    error: { code, message, ...(type === undefined ? { details: message } : { type, param }) },
  }),
  busy: () => {
    const message = "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 33322 seconds before retrying.";
    return { status: 429, code: "RateLimitReached", message, headers: { "retry-after": "33322" } };
  },
});

/** GitHub Models: model names include a publisher, and requests are limited to far less than the model's window. */
export function startGitHubModels(options: GitHubModelsOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const { token = "github_pat_right_token_for_the_tests", models = CATALOG, maxInput = 8_000, count = estimateTokens } = options;
  const names = new Map(Object.entries(models));
  return startProvider({ base: "/inference", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    const fault = doorFault(request.headers.authorization);
    if (fault) return refuse(fault, githubModels);
    const route = `${request.method} ${request.path.split("?")[0]}`;
    if (route === "GET /catalog/models")
      return { kind: "json", status: 200, body: [...names].map(([id, model]) => card(id, model)) };
    if (route === "POST /inference/chat/completions") return chat(request, ask);
    return { kind: "text", status: 404, text: "404 page not found", type: "text/plain" };
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse({ status: 400, code: "bad_request", message: "Invalid JSON" }, githubModels);
    const body = request.body;
    const name = String(body.model ?? "");
    const rules = OPENAI_MODELS[names.get(name) ?? ""];
    if (!rules) return refuse({ status: 400, code: "unknown_model", message: `Unknown model: ${name}` }, githubModels);
    const short = name.slice(name.indexOf("/") + 1);
    if (count(body.messages) + count(body.tools) > maxInput) {
      const message = `Request body too large for ${short} model. Max size: ${maxInput} tokens.`;
      return refuse({ status: 413, code: "tokens_limit_reached", message }, githubModels);
    }
    const fault = chatFault(body, rules, short);
    if (fault) return refuse(fault, githubModels);
    return speak(askedOf(body, { ...rules, servedAs: rules.snapshot, count }), ask, githubModels);
  }

  function doorFault(given: string | undefined): Fault | undefined {
    if (given === `Bearer ${token}`) return undefined;
    const unpermitted = options.unpermitted !== undefined && given === `Bearer ${options.unpermitted}`;
    const message = unpermitted ? "The `models` permission is required to access this endpoint" : "Bad credentials";
    return { status: 401, code: "unauthorized", message };
  }
}

function card(id: string, model: string): Json {
  const rules = OPENAI_MODELS[model];
  const [publisher, name] = id.split("/");
  return {
    ...{ id, name, publisher, registry: "azure-openai", capabilities: ["streaming", "tool-calling"], rate_limit_tier: "high" },
    limits: { max_input_tokens: rules?.window, max_output_tokens: rules?.maxOutput },
    ...{ supported_input_modalities: ["text"], supported_output_modalities: ["text"] },
  };
}
