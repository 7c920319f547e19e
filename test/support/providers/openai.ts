import type { AtTheEnd } from "../home.ts";
import type { Asked, Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect, openAiError } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { hasLoneSurrogate, isObject, type Json, objectOf } from "./json.ts";
import { chatFault } from "./openai-chat-rules.ts";
import { invalid, keyFault, modelNotFound } from "./openai-faults.ts";
import { type ModelRules, OPENAI_MODELS, rulesFor } from "./openai-models.ts";
import { answerResponses } from "./openai-responses.ts";
import type { Reply } from "./reply.ts";
import { createResponsesMemory } from "./responses-memory.ts";
import { responsesDialect } from "./responses-wire.ts";
import { type Dialect, type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface OpenAiOptions {
  key?: string;
  script?: Script;
  /** Overrides for known models, or new models. */
  models?: Record<string, Partial<ModelRules>>;
  count?: Counter;
}

/** OpenAI's own API: completions, responses and the model list. */
export function startOpenAi(options: OpenAiOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const key = options.key ?? "sk-proj-right-key-for-the-tests-0000";
  const house: OpenAiHouse = { models: mergedModels(options.models), count: options.count ?? estimateTokens };
  const memory = createResponsesMemory(house.models);
  const responses = responsesDialect(memory, openAi);
  return startProvider(
    {
      base: "/v1",
      script: options.script,
      answer: (request, ask) => {
        const fault = routeFault(request) ?? keyFault(request.headers.authorization, key);
        if (fault) return refuse(fault, openAi);
        if (request.path.startsWith("/v1/models/")) return oneModel(request.path.slice("/v1/models/".length), house.models);
        if (request.path.startsWith("/v1/models")) return modelList(house.models);
        const unreadable = bodyFault(request);
        if (unreadable) return refuse(unreadable, openAi);
        return request.path.startsWith("/v1/responses")
          ? answerResponses(request, ask, { ...house, memory }, responses)
          : answerChat(request, ask, house, openAi);
      },
    },
    atTheEnd,
  );
}

/** The models of a server for OpenAI's models, and how it counts tokens. */
export interface OpenAiHouse {
  models: Record<string, ModelRules>;
  count: Counter;
}

export const openAi: Dialect = completionsDialect({
  extra: { service_tier: "default", system_fingerprint: "fp_44709d6fcb" },
  error: openAiError,
  busy: openAiBusy,
  headers: { "x-request-id": "req_0123456789abcdef", "openai-processing-ms": "12", "openai-version": "2020-10-01" },
});

/** Checks a completions request and lets the model answer it. */
export async function answerChat(request: Recorded, ask: Ask, house: OpenAiHouse, dialect: Dialect): Promise<Reply> {
  const body = objectOf(request.body);
  const name = String(body.model);
  const rules = rulesFor(house.models, name);
  if (!rules) return refuse(modelNotFound(name), dialect);
  const fault = endpointFault(rules) ?? chatFault(body, rules, name) ?? windowFault(body, rules, house.count);
  if (fault) return refuse(fault, dialect);
  return speak(askedOf(body, { ...rules, servedAs: rules.snapshot, count: house.count }), ask, dialect);
}

/** The error for a body that is not valid JSON or names no model. */
export function bodyFault(request: Recorded): Fault | undefined {
  if (!isObject(request.body) || hasLoneSurrogate(request.text))
    return invalid(
      "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)",
    );
  if (request.body.model === undefined) return invalid("you must provide a model parameter");
  return undefined;
}

export function windowFault(body: Json, rules: ModelRules, count: Counter): Fault | undefined {
  const messages = count(body.messages);
  const functions = count(body.tools);
  const total = messages + functions;
  const inFunctions = functions > 0 ? `, ${functions} in the functions` : "";
  const orFunctions = functions > 0 ? " or functions" : "";
  const say = (message: string) => invalid(message, "messages", "context_length_exceeded");
  if (rules.maxInput !== undefined && total > rules.maxInput)
    return say(
      `Input tokens exceed the configured limit of ${rules.maxInput} tokens. Your messages resulted in ${total} tokens. Please reduce the length of the messages${orFunctions}.`,
    );
  if (total > rules.window) {
    const parts = functions > 0 ? ` (${messages} in the messages${inFunctions})` : "";
    return say(
      `This model's maximum context length is ${rules.window} tokens. However, your messages resulted in ${total} tokens${parts}. Please reduce the length of the messages${orFunctions}.`,
    );
  }
  const output = Number(body.max_completion_tokens ?? body.max_tokens ?? 0);
  if (total + output <= rules.window) return undefined;
  const parts = functions > 0 ? `${inFunctions}, and ${output}` : `, ${output}`;
  const or = functions > 0 ? "messages, functions, or completion" : "messages or completion";
  return say(
    `This model's maximum context length is ${rules.window} tokens. However, you requested ${total + output} tokens (${messages} in the messages${parts} in the completion). Please reduce the length of the ${or}.`,
  );
}

export function mergedModels(changes: OpenAiOptions["models"] = {}): Record<string, ModelRules> {
  const models = { ...OPENAI_MODELS };
  for (const [name, change] of Object.entries(changes)) {
    const base = models[name] ?? { ...OPENAI_MODELS["gpt-4o"]!, snapshot: name };
    models[name] = { ...base, ...change };
  }
  return models;
}

export function modelList(models: Record<string, ModelRules>): Reply {
  const names = Object.entries(models).flatMap(([name, { snapshot }]) => (name === snapshot ? [name] : [name, snapshot]));
  const others = ["text-embedding-3-small", "whisper-1", "tts-1", "dall-e-3", "omni-moderation-latest"];
  const data = [...names, ...others].map(cardOf);
  return { kind: "json", status: 200, body: { object: "list", data } };
}

function oneModel(id: string, models: Record<string, ModelRules>): Reply {
  if (rulesFor(models, id)) return { kind: "json", status: 200, body: cardOf(id) };
  return refuse({ ...invalid(`The model '${id}' does not exist`, "model", "model_not_found"), status: 404 }, openAi);
}

function cardOf(id: string): Json {
  return { id, object: "model", created: 1_715_367_049, owned_by: "system" };
}

export function openAiBusy(kind: "rate" | "quota" | "overloaded", asked: Asked): Fault {
  if (kind === "rate")
    return {
      ...{ status: 429, type: "tokens", param: null, code: "rate_limit_exceeded" },
      message: `Rate limit reached for ${asked.model} in organization org-0123456789 on tokens per min (TPM): Limit 30000, Used 29500, Requested ${asked.inputTokens}. Please try again in 1s. Visit https://platform.openai.com/account/rate-limits to learn more.`,
    };
  if (kind === "quota")
    return {
      ...{ status: 429, type: "insufficient_quota", param: null, code: "insufficient_quota" },
      message:
        "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    };
  return {
    ...{ status: 503, type: "server_error", param: null, code: null },
    message: "The engine is currently overloaded, please try again later",
  };
}

function endpointFault({ responsesOnly }: ModelRules): Fault | undefined {
  if (!responsesOnly) return undefined;
  return {
    ...invalid("This model is only supported in v1/responses and not in v1/chat/completions.", "model"),
    status: 404,
  };
}

function routeFault({ method, path }: Recorded): Fault | undefined {
  const verbs: Record<string, string> = { "/v1/chat/completions": "POST", "/v1/responses": "POST", "/v1/models": "GET" };
  const verb = path.startsWith("/v1/models/") ? "GET" : verbs[path.split("?")[0] ?? ""];
  if (verb === undefined) return { ...invalid(`Invalid URL (${method} ${path})`), status: 404 };
  if (verb === method) return undefined;
  return {
    ...invalid(
      `Not allowed to ${method} on ${path}. (HINT: Perhaps you meant to use a different HTTP method?)`,
      null,
      "method_not_supported",
    ),
    status: 405,
  };
}
