import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, listOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface OpenRouterModel {
  contextLength: number;
  maxOutput: number;
  tools: boolean;
}

export interface OpenRouterOptions {
  key?: string;
  script?: Script;
  models?: Record<string, OpenRouterModel>;
  /** The most output tokens the account can pay for. Requests for more are refused, however few they would use. */
  affordable?: number;
  count?: Counter;
}

const ROUTED: Record<string, OpenRouterModel> = {
  "openai/gpt-4o": { contextLength: 128_000, maxOutput: 16_384, tools: true },
  "anthropic/claude-sonnet-4.5": { contextLength: 1_000_000, maxOutput: 64_000, tools: true },
  "google/gemma-2-9b-it": { contextLength: 8_192, maxOutput: 8_192, tools: false },
};

const openRouter = completionsDialect({
  extra: { provider: "OpenAI" },
  reasoningField: "reasoning",
  alwaysUsage: true,
  error: ({ status, message, more }) => ({ error: { message, code: status, ...more } }),
  busy: (kind, asked) => {
    if (kind === "quota") return broke;
    const raw = `${asked.model} is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits: https://openrouter.ai/settings/integrations`;
    const more = { metadata: { raw, provider_name: "OpenAI" } };
    return { status: kind === "rate" ? 429 : 503, message: "Provider returned error", more };
  },
  midStream: ({ failure }, base) => ({
    ...base,
    error: { code: failure?.code ?? 502, message: failure?.message },
    choices: [{ index: 0, delta: { content: "" }, finish_reason: "error", native_finish_reason: "error" }],
  }),
});

const broke: Fault = { status: 402, message: "Insufficient credits. Add more using https://openrouter.ai/settings/credits" };

/** OpenRouter: it sends comments while the client waits, and errors in the middle of a stream with status 200. */
export function startOpenRouter(options: OpenRouterOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const { key = "sk-or-v1-right-key-for-the-tests", models = ROUTED, count = estimateTokens } = options;
  return startProvider({ base: "/api/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    const route = `${request.method} ${request.path.split("?")[0]}`;
    if (route === "GET /api/v1/models")
      return { kind: "json", status: 200, body: { data: Object.entries(models).map(([id, model]) => card(id, model)) } };
    if (route !== "POST /api/v1/chat/completions")
      return { kind: "text", status: 404, text: "<!DOCTYPE html><html><body>Not Found</body></html>", type: "text/html" };
    const given = request.headers.authorization;
    if (given === undefined) return refuse({ status: 401, message: "No auth credentials found" }, openRouter);
    if (given !== `Bearer ${key}`) return refuse({ status: 401, message: "User not found." }, openRouter);
    return chat(request, ask);
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse({ status: 400, message: "Invalid JSON" }, openRouter);
    const body = request.body;
    const name = String(body.model ?? "");
    const model = models[name];
    if (!model) return refuse({ status: 400, message: `${name} is not a valid model ID` }, openRouter);
    const fault = chatFault(body, model);
    if (fault) return refuse(fault, openRouter);
    const room = { servedAs: name, window: model.contextLength, maxOutput: model.maxOutput, count };
    const reply = await speak(askedOf(body, room), ask, openRouter);
    if (reply.kind !== "events") return reply;
    return { ...reply, wire: { comments: ["OPENROUTER PROCESSING"], ...reply.wire } };
  }

  function chatFault(body: Json, { contextLength, maxOutput, tools }: OpenRouterModel): Fault | undefined {
    if (listOf(body.tools).length > 0 && !tools)
      return {
        status: 404,
        message:
          "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing",
      };
    const output = Number(body.max_completion_tokens ?? body.max_tokens ?? maxOutput);
    if (options.affordable !== undefined && output > options.affordable)
      return {
        status: 402,
        message: `This request requires more credits, or fewer max_tokens. You requested up to ${output} tokens, but can only afford ${options.affordable}. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account`,
      };
    const text = count(body.messages);
    const tooling = count(body.tools);
    const wanted = body.max_completion_tokens ?? body.max_tokens;
    const total = text + tooling + Number(wanted ?? 0);
    if (total <= contextLength) return undefined;
    const parts = [`${text} of text input`];
    if (tooling > 0) parts.push(`${tooling} of tool input`);
    if (wanted != null) parts.push(`${wanted} in the output`);
    return {
      status: 400,
      message: `This endpoint's maximum context length is ${contextLength} tokens. However, you requested about ${total} tokens (${parts.join(", ")}). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.`,
    };
  }
}

function card(id: string, { contextLength, maxOutput, tools }: OpenRouterModel): Json {
  return {
    ...{ id, canonical_slug: id, name: id, created: 1_735_689_600, context_length: contextLength, per_request_limits: null },
    architecture: { input_modalities: ["text"], output_modalities: ["text"], tokenizer: "Other" },
    top_provider: { context_length: contextLength, max_completion_tokens: maxOutput, is_moderated: false },
    supported_parameters: ["max_tokens", "temperature", ...(tools ? ["tools", "tool_choice"] : [])],
    pricing: { prompt: "0.0000025", completion: "0.00001" },
  };
}
