import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { askedOf } from "./chat-asked.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { isObject, type Json, listOf, objectOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface VllmOptions {
  model?: string;
  /** Its `--max-model-len`. */
  maxModelLen?: number;
  /** Its `--api-key`. */
  key?: string;
  /** Whether it was started with `--enable-auto-tool-choice` and a parser, which is not the default. */
  autoToolChoice?: boolean;
  /** If true, its chat template requires user and assistant messages to alternate. */
  alternating?: boolean;
  script?: Script;
  count?: Counter;
}

const vllm = completionsDialect({
  reasoningField: "reasoning",
  error: ({ message, type = "BadRequestError", param = null, code, status }) => ({
    error: { message, type, param, code: code ?? status },
  }),
  busy: () => ({ status: 503, type: "ServiceUnavailableError", message: "The server is overloaded." }),
});

/** vLLM: one model, and a strict limit on tokens. */
export function startVllm(options: VllmOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const { model = "Qwen/Qwen2.5-7B-Instruct", maxModelLen = 32_768, count = estimateTokens } = options;
  return startProvider({ base: "/v1", script: options.script, answer }, atTheEnd);

  function answer(request: Recorded, ask: Ask): Reply | Promise<Reply> {
    if (options.key !== undefined && request.headers.authorization !== `Bearer ${options.key}`)
      return { kind: "json", status: 401, body: { error: "Unauthorized" }, refusal: "Unauthorized" };
    const route = `${request.method} ${request.path.split("?")[0]}`;
    if (route === "GET /v1/models")
      return { kind: "json", status: 200, body: { object: "list", data: [card(model, maxModelLen)] } };
    if (route === "POST /v1/chat/completions") return chat(request, ask);
    return { kind: "json", status: 404, body: { detail: "Not Found" }, refusal: "Not Found" };
  }

  async function chat(request: Recorded, ask: Ask): Promise<Reply> {
    if (!isObject(request.body)) return refuse({ status: 400, message: "JSON decode error" }, vllm);
    const body = request.body;
    const fault = chatFault(body, { ...options, model }) ?? lengthFault(body, maxModelLen, count);
    if (fault) return refuse(fault, vllm);
    return speak(askedOf(body, { servedAs: model, window: maxModelLen, maxOutput: maxModelLen, count }), ask, vllm);
  }
}

function chatFault(body: Json, { model, autoToolChoice, alternating }: VllmOptions): Fault | undefined {
  if (body.model != null && body.model !== model)
    return { status: 404, type: "NotFoundError", param: "model", message: `The model \`${body.model}\` does not exist.` };
  if (body.stream_options != null && body.stream !== true)
    return { status: 400, message: "Stream options can only be defined when `stream=True`." };
  const choice = body.tool_choice ?? "auto";
  if (listOf(body.tools).length > 0 && choice === "auto" && !autoToolChoice)
    return { status: 400, message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set' };
  const roles = listOf(body.messages).map((message) => objectOf(message).role);
  const turns = roles.filter((role) => role === "user" || role === "assistant");
  if (alternating && turns.some((role, at) => role !== (at % 2 === 0 ? "user" : "assistant")))
    return { status: 400, message: "Conversation roles must alternate user/assistant/user/assistant/..." };
  return undefined;
}

function lengthFault(body: Json, most: number, count: Counter): Fault | undefined {
  const input = count(body.messages) + count(body.tools);
  if (input >= most)
    return {
      ...{ status: 400, param: "input_tokens" },
      message: `This model's maximum context length is ${most} tokens. However, your request has ${input} input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=${input})`,
    };
  const output = body.max_completion_tokens ?? body.max_tokens;
  if (output == null || input + Number(output) <= most) return undefined;
  return {
    ...{ status: 400, param: "max_tokens" },
    message: `'max_tokens' or 'max_completion_tokens' is too large: ${output}. This model's maximum context length is ${most} tokens and your request has ${input} input tokens (${output} > ${most} - ${input}). (parameter=max_tokens, value=${output})`,
  };
}

function card(id: string, max_model_len: number): Json {
  return { id, object: "model", created: 1_735_689_600, owned_by: "vllm", root: id, parent: null, max_model_len, permission: [] };
}
