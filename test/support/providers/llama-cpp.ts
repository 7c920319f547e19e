import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, listOf, objectOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface LlamaCppOptions {
  /** The path of its model, which is also its name. */
  model?: string;
  /** Its `--ctx-size`, for one slot. */
  contextSize?: number;
  trainedContext?: number;
  /** Its `--api-key`. */
  key?: string;
  /** Whether it was started with `--jinja`, which tools require. */
  jinja?: boolean;
  /** Whether the model list contains `meta.n_ctx`, which older builds omit. */
  listsContext?: boolean;
  /** How many requests find the model still loading. */
  loading?: number;
  script?: Script;
  count?: Counter;
}

const llamaCpp = completionsDialect({
  extra: { system_fingerprint: "b7000-abcdef0" },
  error: ({ status, message, type = "invalid_request_error", more }) => ({ error: { code: status, message, type, ...more } }),
  busy: () => ({ status: 503, type: "unavailable_error", message: "no slot available" }),
  midStream: ({ failure }) => ({ error: { code: 500, message: failure?.message, type: "server_error" } }),
});

/** The llama.cpp server: it serves its one model under any requested name. */
export function startLlamaCpp(options: LlamaCppOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const {
    model = "/models/llama-3.2-3b-q4_k_m.gguf",
    contextSize = 4_096,
    trainedContext = 131_072,
    count = estimateTokens,
  } = options;
  let loading = options.loading ?? 0;
  return startProvider({ base: "/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    if (loading-- > 0) return refuse({ status: 503, type: "unavailable_error", message: "Loading model" }, llamaCpp);
    const route = `${request.method} ${request.path.split("?")[0]?.replace(/^\/v1/, "")}`;
    if (route === "GET /health") return json({ status: "ok" });
    if (route === "GET /models") return json(list());
    const key = options.key;
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}` && request.headers["x-api-key"] !== key)
      return refuse({ status: 401, type: "authentication_error", message: "Invalid API Key" }, llamaCpp);
    if (route === "GET /props")
      return json({ default_generation_settings: { n_ctx: contextSize }, total_slots: 1, model_path: model, chat_template: "" });
    if (route === "POST /chat/completions") return chat(request, ask);
    return refuse({ status: 404, type: "not_found_error", message: "File Not Found" }, llamaCpp);
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse({ status: 400, message: "Failed to parse request body as JSON" }, llamaCpp);
    const body = request.body;
    const fault = chatFault(body, options.jinja ?? true) ?? lengthFault(body, contextSize, count);
    if (fault) return refuse(fault, llamaCpp);
    const servedAs = String(body.model ?? "gpt-3.5-turbo");
    return speak(askedOf(body, { servedAs, window: contextSize, maxOutput: contextSize, count }), ask, llamaCpp);
  }

  function list(): Json {
    const meta = {
      vocab_type: 2,
      n_vocab: 128_256,
      n_ctx_train: trainedContext,
      n_embd: 3_072,
      n_params: 3_212_749_888,
      size: 2_011_539_712,
    };
    const seen = (options.listsContext ?? true) ? { ...meta, n_ctx: contextSize } : meta;
    const data = [{ id: model, object: "model", created: 1_735_689_600, owned_by: "llamacpp", meta: seen }];
    return { models: [{ name: model, model, capabilities: ["completion"] }], object: "list", data };
  }
}

function chatFault(body: Json, jinja: boolean): Fault | undefined {
  if (!Array.isArray(body.messages)) return { status: 400, message: "'messages' is required" };
  if (listOf(body.tools).length > 0 && !jinja)
    return { status: 500, type: "server_error", message: "tools param requires --jinja flag" };
  const hollow = body.messages
    .map(objectOf)
    .find(({ role, content, tool_calls: calls }) => role === "assistant" && content == null && calls == null);
  return hollow === undefined
    ? undefined
    : { status: 400, message: "Assistant message must contain either 'content' or 'tool_calls'!" };
}

function lengthFault(body: Json, context: number, count: Counter): Fault | undefined {
  const tokens = count(body.messages) + count(body.tools);
  if (tokens < context) return undefined;
  return {
    ...{ status: 400, type: "exceed_context_size_error", more: { n_prompt_tokens: tokens, n_ctx: context } },
    message: `request (${tokens} tokens) exceeds the available context size (${context} tokens), try increasing it`,
  };
}

function json(body: unknown): Reply {
  return { kind: "json", status: 200, body };
}
