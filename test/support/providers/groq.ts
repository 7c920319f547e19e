import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect, openAiError } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, listOf, objectOf } from "./json.ts";
import { invalid, modelNotFound } from "./openai-faults.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface GroqModel {
  window: number;
  maxOutput: number;
  /** Whether it accepts `reasoning_effort`. */
  reasons?: boolean;
  /** If true, the model only transcribes audio. */
  audio?: boolean;
}

export interface GroqOptions {
  key?: string;
  script?: Script;
  models?: Record<string, GroqModel>;
  count?: Counter;
}

const SERVED: Record<string, GroqModel> = {
  "llama-3.3-70b-versatile": { window: 131_072, maxOutput: 32_768 },
  "openai/gpt-oss-120b": { window: 131_072, maxOutput: 65_536, reasons: true },
  "whisper-large-v3": { window: 448, maxOutput: 448, audio: true },
};
const UNSUPPORTED = ["logprobs", "logit_bias", "top_logprobs"];

const groq = completionsDialect({
  reasoningField: "reasoning",
  error: openAiError,
  busy: (kind, { model }) => {
    if (kind === "overloaded") return { status: 498, type: "flex_capacity", message: "Flex tier capacity exceeded" };
    const message = `Rate limit reached for model \`${model}\` in organization \`org_0\` service tier \`on_demand\` on tokens per minute (TPM): Limit 12000, Used 11000, Requested 2000. Please try again in 5s.`;
    return { status: 429, type: "tokens", code: "rate_limit_exceeded", message };
  },
});

/** Groq: OpenAI's completions below `/openai/v1`. It refuses some parameters, and its model list includes windows. */
export function startGroq(options: GroqOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const { key = "gsk_right_key_for_the_tests", models = SERVED, count = estimateTokens } = options;
  return startProvider({ base: "/openai/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    if (request.headers.authorization !== `Bearer ${key}`)
      return refuse({ ...invalid("Invalid API Key", null, "invalid_api_key"), status: 401 }, groq);
    const route = `${request.method} ${request.path.split("?")[0]}`;
    if (route === "GET /openai/v1/models")
      return { kind: "json", status: 200, body: { object: "list", data: Object.entries(models).map(card) } };
    if (route === "POST /openai/v1/chat/completions") return chat(request, ask);
    const message = `Unknown request URL: ${request.method} ${request.path}. Please check the URL for typos, or see the docs at https://console.groq.com/docs/`;
    return refuse({ ...invalid(message, null, "unknown_url"), status: 404 }, groq);
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse(invalid("invalid JSON"), groq);
    const body = request.body;
    const name = String(body.model ?? "");
    const model = models[name];
    if (!model) return refuse(modelNotFound(name), groq);
    const fault = chatFault(body, name, model) ?? lengthFault(body, model, count);
    if (fault) return refuse(fault, groq);
    return speak(askedOf(body, { servedAs: name, ...model, count }), ask, groq);
  }
}

function chatFault(body: Json, name: string, { reasons, audio }: GroqModel): Fault | undefined {
  if (audio) return invalid(`The model \`${name}\` does not support chat completions`);
  const strange = UNSUPPORTED.find((field) => body[field] != null);
  if (strange) return invalid(`property '${strange}' is unsupported`);
  if (body.n != null && body.n !== 1) return invalid("'n' : number must be at most 1");
  if (body.reasoning_effort != null && !reasons) return invalid("`reasoning_effort` is not supported with this model");
  const named = listOf(body.messages).findIndex((message) => objectOf(message).name !== undefined);
  if (named >= 0) return invalid(`'messages.${named}' : property 'name' is unsupported`);
  return undefined;
}

function lengthFault(body: Json, { window, maxOutput }: GroqModel, count: Counter): Fault | undefined {
  for (const field of ["max_tokens", "max_completion_tokens"]) {
    if (Number(body[field] ?? 0) > maxOutput)
      return invalid(
        `\`${field}\` must be less than or equal to \`${maxOutput}\`, the maximum value for \`${field}\` is less than the \`context_window\` for this model`,
      );
  }
  if (count(body.messages) + count(body.tools) < window) return undefined;
  return invalid("Please reduce the length of the messages or completion.", "messages", "context_length_exceeded");
}

function card([id, { window, maxOutput }]: [string, GroqModel]): Json {
  const facts = { active: true, context_window: window, public_apps: null, max_completion_tokens: maxOutput };
  return { id, object: "model", created: 1_733_447_754, owned_by: "Meta", ...facts };
}
