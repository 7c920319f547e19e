import type { AtTheEnd } from "../home.ts";
import type { Asked, Script } from "./act.ts";
import { CLAUDE_MODELS, type ClaudeRules, claudeRulesFor } from "./anthropic-models.ts";
import { claudeFault, invalidClaude } from "./anthropic-rules.ts";
import { anthropic, signatureOf } from "./anthropic-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { contentText, hasLoneSurrogate, isObject, type Json, listOf, objectOf } from "./json.ts";
import type { Reply } from "./reply.ts";
import { type Fault, refuse, speak } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface AnthropicOptions {
  key?: string;
  script?: Script;
  /** Overrides for known models, or new models. */
  models?: Record<string, Partial<ClaudeRules>>;
  count?: Counter;
}

/** Anthropic's own API: messages and the model list. Its base URL does not include `/v1`. */
export function startAnthropic(options: AnthropicOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const key = options.key ?? "sk-ant-right-key-for-the-tests";
  const count = options.count ?? estimateTokens;
  const models = { ...CLAUDE_MODELS };
  for (const [name, change] of Object.entries(options.models ?? {}))
    models[name] = { ...(models[name] ?? { ...CLAUDE_MODELS["claude-sonnet-4-5"]!, snapshot: name }), ...change };
  return startProvider(
    {
      base: "",
      script: options.script,
      answer: (request, ask) => {
        const fault = doorFault(request, key);
        if (fault) return refuse(fault, anthropic);
        if (request.method === "GET") return modelList(models);
        return answerMessages(request, ask, models, count);
      },
    },
    atTheEnd,
  );
}

async function answerMessages(request: Recorded, ask: Ask, models: Record<string, ClaudeRules>, count: Counter): Promise<Reply> {
  const unreadable = bodyFault(request);
  if (unreadable) return refuse(unreadable, anthropic);
  const body = objectOf(request.body);
  if (body.model === undefined) return refuse(invalidClaude("model: Field required"), anthropic);
  const rules = claudeRulesFor(models, String(body.model));
  if (!rules) return refuse({ status: 404, type: "not_found_error", message: `model: ${body.model}` }, anthropic);
  const signed = ({ thinking, signature }: Json) => signature === signatureOf(String(thinking));
  const fault = claudeFault(body, rules, signed) ?? windowFault(body, rules, count);
  if (fault) return refuse(fault, anthropic);
  return speak(askedOf(body, rules, count), ask, anthropic);
}

function windowFault(body: Json, rules: ClaudeRules, count: Counter): Fault | undefined {
  const input = inputTokens(body, count);
  const most = Number(body.max_tokens);
  if (input > rules.window) return invalidClaude(`prompt is too long: ${input} tokens > ${rules.window} maximum`);
  if (rules.overflow === "stops" || input + most <= rules.window) return undefined;
  return invalidClaude(
    `input length and \`max_tokens\` exceed context limit: ${input} + ${most} > ${rules.window}, decrease input length or \`max_tokens\` and try again`,
  );
}

function askedOf(body: Json, rules: ClaudeRules, count: Counter): Asked {
  const messages = listOf(body.messages).map(objectOf);
  const tokens = inputTokens(body, count);
  const spoken = messages.findLast(
    ({ role, content }) => role === "user" && !listOf(content).some((block) => objectOf(block).type === "tool_result"),
  );
  return {
    wire: "messages",
    model: String(body.model),
    servedAs: rules.snapshot,
    stream: body.stream === true,
    system: contentText(body.system),
    lastUser: contentText(spoken?.content),
    afterTool: listOf(messages.at(-1)?.content).some((block) => objectOf(block).type === "tool_result"),
    tools: listOf(body.tools).map((tool) => String(objectOf(tool).name)),
    inputTokens: tokens,
    outputLimit: Math.max(0, Math.min(Number(body.max_tokens), rules.window - tokens)),
    body,
  };
}

function inputTokens(body: Json, count: Counter): number {
  return count(body.system) + count(body.messages) + count(body.tools);
}

function doorFault({ method, path, headers }: Recorded, key: string): Fault | undefined {
  const route = `${method} ${path.split("?")[0]}`;
  if (route !== "POST /v1/messages" && route !== "GET /v1/models")
    return { status: 404, type: "not_found_error", message: "Not found" };
  const unauthorized = (message: string): Fault => ({ status: 401, type: "authentication_error", message });
  const given = headers["x-api-key"];
  const bearer = headers.authorization;
  if (given === undefined && bearer === undefined) return unauthorized("x-api-key header is required");
  if (given !== undefined && given !== key) return unauthorized("invalid x-api-key");
  if (given === undefined && bearer !== `Bearer ${key}`) return unauthorized("Invalid bearer token");
  return headers["anthropic-version"] === undefined ? invalidClaude("anthropic-version: header is required") : undefined;
}

function bodyFault({ body, text }: Recorded): Fault | undefined {
  if (hasLoneSurrogate(text)) {
    const at = text.search(/\\ud[89a-f]/i);
    return invalidClaude(
      `The request body is not valid JSON: no low surrogate in string: line 1 column ${at + 7} (char ${at + 6})`,
    );
  }
  if (isObject(body)) return undefined;
  return invalidClaude("The request body is not valid JSON: unexpected character: line 1 column 1 (char 0)");
}

function modelList(models: Record<string, ClaudeRules>): Reply {
  const data = Object.values(models).map(({ snapshot, window, maxOutput }) => ({
    ...{ type: "model", id: snapshot, display_name: snapshot, created_at: "2025-09-29T00:00:00Z" },
    ...{ max_input_tokens: window, max_tokens: maxOutput },
  }));
  const body = { data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id };
  return { kind: "json", status: 200, body };
}
