import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect, openAiError } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, listOf, objectOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

/** A model that was pulled. */
export interface OllamaModel {
  /** Its capabilities in the answer of `/api/show`. */
  capabilities: readonly string[];
  family: string;
  /** The window it was trained with. */
  contextLength: number;
  /** The window it is loaded with, which is the one that applies. */
  loadedContext: number;
}

export interface OllamaOptions {
  script?: Script;
  /** By full name, including the tag. */
  models?: Record<string, Partial<OllamaModel>>;
  count?: Counter;
}

const usual: OllamaModel = {
  capabilities: ["completion", "tools"],
  family: "llama",
  contextLength: 131_072,
  loadedContext: 4_096,
};
const PULLED: Record<string, Partial<OllamaModel>> = {
  "nomic-embed-text:latest": { capabilities: ["embedding"], family: "nomic-bert", contextLength: 2_048, loadedContext: 2_048 },
  "llama3.2:latest": {},
  "gemma3:1b": { capabilities: ["completion"], family: "gemma3", contextLength: 32_768 },
  "qwen3:8b": { capabilities: ["completion", "tools", "thinking"], family: "qwen3", contextLength: 40_960 },
};

const ollama = completionsDialect({
  extra: { system_fingerprint: "fp_ollama" },
  reasoningField: "reasoning",
  wholeCalls: true,
  error: openAiError,
  busy: () => ({ status: 503, type: "api_error", message: "server busy, please try again.  maximum pending requests exceeded" }),
});

/** Ollama: it knows models by their tags, and silently cuts prompts to the window. */
export function startOllama(options: OllamaOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const models = new Map<string, OllamaModel>();
  for (const [name, model] of Object.entries(options.models ?? PULLED)) models.set(name, { ...usual, ...model });
  const count = options.count ?? estimateTokens;
  const loaded = new Set<string>();
  return startProvider({ base: "/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    const body = objectOf(request.body);
    switch (`${request.method} ${request.path.split("?")[0]}`) {
      case "GET /":
        return { kind: "text", status: 200, text: "Ollama is running", type: "text/plain; charset=utf-8" };
      case "GET /api/version":
        return json({ version: "0.13.5" });
      case "GET /api/tags":
        return json({ models: [...models].map(([name, model]) => ({ ...card(name, model), size: 2_019_393_189 })) });
      case "GET /api/ps":
        return json({ models: [...loaded].map((name) => running(name)) });
      case "POST /api/show":
        return show(String(body.model ?? body.name ?? ""));
      case "GET /v1/models":
        return json({ object: "list", data: [...models.keys()].map(listed) });
      case "POST /v1/chat/completions":
        return chat(request, ask);
      default:
        return { kind: "text", status: 404, text: "404 page not found", type: "text/plain" };
    }
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse(invalid("invalid character 'x' looking for beginning of value"), ollama);
    const body = request.body;
    const asked = String(body.model ?? "");
    const name = fullName(asked);
    const model = models.get(name);
    if (!model)
      return refuse(
        { ...invalid(`model "${asked}" not found, try pulling it first`), status: 404, type: "not_found_error" },
        ollama,
      );
    const fault = abilityFault(body, asked, name, model);
    if (fault) return refuse(fault, ollama);
    loaded.add(name);
    const kept = fitted(body, model.loadedContext, count);
    if (kept.dropped > 0)
      request.silently = `dropped ${kept.dropped} of ${listOf(body.messages).length} messages to fit ${model.loadedContext} tokens`;
    const room = { servedAs: asked, window: Number.POSITIVE_INFINITY, maxOutput: model.contextLength, count };
    return speak(askedOf(kept.body, room), ask, ollama);
  }

  function show(asked: string): Reply {
    const name = fullName(asked);
    const model = models.get(name);
    if (!model)
      return { kind: "json", status: 404, body: { error: `model '${asked}' not found` }, refusal: `model '${asked}' not found` };
    const info = { "general.architecture": model.family, [`${model.family}.context_length`]: model.contextLength };
    const { details, modified_at } = card(name, model);
    return json({ modelfile: "", template: "", details, model_info: info, capabilities: model.capabilities, modified_at });
  }

  function running(name: string): Json {
    const model = models.get(name) ?? usual;
    const { modified_at: _, ...rest } = card(name, model);
    return { ...rest, expires_at: "2038-01-01T00:00:00Z", size_vram: 0, context_length: model.loadedContext };
  }
}

function abilityFault(body: Json, asked: string, name: string, { capabilities }: OllamaModel): Fault | undefined {
  if (!capabilities.includes("completion")) return invalid(`"${asked}" does not support chat`);
  if (listOf(body.tools).length > 0 && !capabilities.includes("tools"))
    return invalid(`registry.ollama.ai/library/${name} does not support tools`);
  const effort = body.reasoning_effort ?? objectOf(body.reasoning).effort;
  if (effort != null && !["high", "medium", "low", "none"].includes(String(effort)))
    return invalid(`invalid reasoning value: '${effort}' (must be "high", "medium", "low", or "none")`);
  if (effort != null && effort !== "none" && !capabilities.includes("thinking"))
    return invalid(`"${asked}" does not support thinking`);
  return listOf(body.messages).length === 0 ? invalid("[] is too short - 'messages'") : undefined;
}

/** The part of a conversation that fits: the system messages, and as many of the last messages as possible. */
function fitted(body: Json, window: number, count: Counter): { body: Json; dropped: number } {
  const messages = listOf(body.messages);
  const isSystem = (message: unknown) => objectOf(message).role === "system";
  for (let from = 0; from < messages.length; from++) {
    const kept = messages.filter((message, at) => at >= from || isSystem(message));
    const fits = count(kept) + count(body.tools) <= window;
    if (fits || from === messages.length - 1)
      return { body: { ...body, messages: kept }, dropped: messages.length - kept.length };
  }
  return { body, dropped: 0 };
}

function invalid(message: string): Fault {
  return { status: 400, type: "invalid_request_error", message };
}

function fullName(name: string): string {
  return name.includes(":") ? name : `${name}:latest`;
}

function card(name: string, { family }: OllamaModel): Json {
  const details = {
    parent_model: "",
    format: "gguf",
    family,
    families: [family],
    parameter_size: "3.2B",
    quantization_level: "Q4_K_M",
  };
  return { name, model: name, modified_at: "2026-01-01T00:00:00Z", digest: "a80c4f17acd5", details };
}

function listed(id: string): Json {
  return { id, object: "model", created: 1_735_689_600, owned_by: "library" };
}

function json(body: unknown): Reply {
  return { kind: "json", status: 200, body };
}
