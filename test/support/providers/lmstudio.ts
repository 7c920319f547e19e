import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, objectOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface LmStudioModel {
  type: "llm" | "vlm" | "embeddings";
  maxContext: number;
  /** The window it was loaded with; missing if it is only on disk. */
  loadedContext?: number;
}

export interface LmStudioOptions {
  script?: Script;
  models?: Record<string, LmStudioModel>;
  count?: Counter;
}

const ON_DISK: Record<string, LmStudioModel> = {
  "text-embedding-nomic-embed-text-v1.5": { type: "embeddings", maxContext: 2_048 },
  "qwen2.5-7b-instruct": { type: "llm", maxContext: 32_768, loadedContext: 4_096 },
  "gemma-3-4b-it": { type: "vlm", maxContext: 131_072 },
};
const DEFAULT_CONTEXT = 4_096;
const TOO_LONG =
  "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input";

const lmStudio = completionsDialect({
  extra: { system_fingerprint: "qwen2.5-7b-instruct" },
  error: ({ message, code, type, param }) => ({ error: code == null ? message : { message, type, param, code } }),
  busy: () => ({ status: 400, message: "Model is unloaded." }),
  midStream: ({ failure }) => ({ error: failure?.message }),
});

/** LM Studio: its errors are plain text, and it answers unknown paths with status 200. */
export function startLmStudio(options: LmStudioOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const { models = ON_DISK, count = estimateTokens } = options;
  return startProvider({ base: "/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    const route = `${request.method} ${request.path.split("?")[0]}`;
    const names = Object.entries(models);
    if (route === "GET /v1/models")
      return json({ data: names.map(([id]) => ({ id, object: "model", owned_by: "organization_owner" })), object: "list" });
    if (route === "GET /api/v0/models") return json({ data: names.map(([id, model]) => card(id, model)), object: "list" });
    if (route === "POST /v1/chat/completions") return chat(request, ask);
    return json({ error: `Unexpected endpoint or method. (${request.method} ${request.path})` });
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse({ status: 400, message: "Invalid JSON" }, lmStudio);
    const body = request.body;
    if (!Array.isArray(body.messages)) return refuse({ status: 400, message: "'messages' field is required" }, lmStudio);
    const name = String(body.model ?? "");
    const model = models[name];
    if (!model || model.type === "embeddings") return refuse(unknownModel(name, models), lmStudio);
    const window = model.loadedContext ?? DEFAULT_CONTEXT;
    if (count(body.messages) + count(body.tools) >= window) return tooLong(body);
    return speak(askedOf(body, { servedAs: name, window, maxOutput: window, count }), ask, lmStudio);
  }
}

/** A stream has already begun when the prompt turns out too long, so it contains the error. */
function tooLong(body: Json): Reply {
  if (body.stream !== true) return refuse({ status: 400, message: TOO_LONG }, lmStudio);
  const events = [{ event: "error", data: { error: TOO_LONG } }];
  return { kind: "events", events, wire: {}, end: "end", refusal: TOO_LONG };
}

function unknownModel(name: string, models: Record<string, LmStudioModel>) {
  const example = Object.keys(models).find((id) => models[id]?.type !== "embeddings");
  return {
    ...{ status: 404, type: "invalid_request_error", param: "model", code: "model_not_found" },
    message: `Invalid model identifier "${name}". Please specify a valid downloaded model (e.g. ${example}).`,
  };
}

function card(id: string, { type, maxContext, loadedContext }: LmStudioModel): Json {
  return {
    ...{
      id,
      object: "model",
      type,
      publisher: "lmstudio-community",
      arch: "qwen2",
      compatibility_type: "gguf",
      quantization: "Q4_K_M",
    },
    ...{ state: loadedContext === undefined ? "not-loaded" : "loaded", max_context_length: maxContext },
    ...(loadedContext !== undefined && { loaded_context_length: loadedContext }),
    ...(type !== "embeddings" && { capabilities: ["tool_use"] }),
  };
}

function json(body: unknown): Reply {
  const said = objectOf(body).error;
  return { kind: "json", status: 200, body, ...(typeof said === "string" && { refusal: said }) };
}
