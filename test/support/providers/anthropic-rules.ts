import type { ClaudeRules } from "./anthropic-models.ts";
import { isObject, type Json, listOf, objectOf } from "./json.ts";
import type { Fault } from "./speak.ts";

const KNOWN = [
  ...["model", "messages", "max_tokens", "system", "metadata", "stop_sequences", "stream", "temperature", "top_p", "top_k"],
  ...["tools", "tool_choice", "thinking", "output_config", "service_tier", "container", "cache_control", "inference_geo"],
];
const NAME = "^[a-zA-Z0-9_-]{1,128}$";
const DOCS = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking";

export function invalidClaude(message: string): Fault {
  return { status: 400, type: "invalid_request_error", message };
}

/** Anthropic's error for a messages request, if any. */
export function claudeFault(body: Json, rules: ClaudeRules, signed: (block: Json) => boolean): Fault | undefined {
  const message =
    fieldFault(body, rules) ?? toolsFault(body.tools) ?? messagesFault(body, rules, signed) ?? thinkingFault(body, rules);
  return message === undefined ? undefined : invalidClaude(message);
}

function fieldFault(body: Json, rules: ClaudeRules): string | undefined {
  const left = ["max_tokens", "messages"].find((field) => body[field] === undefined);
  if (left !== undefined) return `${left}: Field required`;
  const strange = Object.keys(body).find((key) => !KNOWN.includes(key));
  if (strange !== undefined) return `${strange}: Extra inputs are not permitted`;
  const most = Number(body.max_tokens);
  if (!Number.isInteger(body.max_tokens)) return "max_tokens: Input should be a valid integer";
  if (most < 1) return "max_tokens: Input should be greater than or equal to 1";
  if (most > rules.maxOutput)
    return `max_tokens: ${most} > ${rules.maxOutput}, which is the maximum allowed number of output tokens for ${rules.snapshot}`;
  if (rules.sampling === "none") {
    const field = ["temperature", "top_p", "top_k"].find((name) => body[name] !== undefined && body[name] !== 1);
    if (field !== undefined) return `\`${field}\` is deprecated for this model.`;
  }
  if (typeof body.temperature === "number" && body.temperature > 1) return "temperature: Input should be less than or equal to 1";
  if (body.temperature !== undefined && body.top_p !== undefined)
    return "`temperature` and `top_p` cannot both be specified for this model. Please use only one.";
  const marks = JSON.stringify(body).match(/"cache_control":\{/g)?.length ?? 0;
  if (marks > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
  return listOf(body.system).some((block) => objectOf(block).text === "")
    ? "system: text content blocks must be non-empty"
    : undefined;
}

function thinkingFault(body: Json, rules: ClaudeRules): string | undefined {
  const { type, budget_tokens: budget } = objectOf(body.thinking);
  if (type === undefined || type === "disabled") return undefined;
  if (type === "enabled" && rules.thinking === "adaptive")
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  if (type === "adaptive" && rules.thinking === "budget") return "adaptive thinking is not supported on this model";
  if (type === "enabled") {
    if (budget === undefined) return "thinking.enabled.budget_tokens: Field required";
    if (Number(budget) < 1024) return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
    if (Number(budget) >= Number(body.max_tokens))
      return `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. Please consult our documentation at ${DOCS}#max-tokens-and-context-window-size`;
  }
  if (body.temperature !== undefined && body.temperature !== 1)
    return `\`temperature\` may only be set to 1 when thinking is enabled${rules.thinking === "budget" ? "" : " or in adaptive mode"}. Please consult our documentation at ${DOCS}#important-considerations-when-using-extended-thinking`;
  if (body.top_k !== undefined)
    return `\`top_k\` must be unset when thinking is enabled. Please consult our documentation at ${DOCS}`;
  const choice = objectOf(body.tool_choice).type;
  return choice === "any" || choice === "tool" ? "Thinking may not be enabled when tool_choice forces tool use." : undefined;
}

function toolsFault(tools: unknown): string | undefined {
  const seen = new Set<unknown>();
  for (const [at, tool] of listOf(tools).map(objectOf).entries()) {
    if (tool.name === undefined) return `tools.${at}.custom.name: Field required`;
    if (!new RegExp(NAME).test(String(tool.name))) return `tools.${at}.custom.name: String should match pattern '${NAME}'`;
    if (seen.has(tool.name)) return "tools: Tool names must be unique.";
    seen.add(tool.name);
    if (tool.type !== undefined && tool.type !== "custom") continue;
    if (tool.input_schema === undefined) return `tools.${at}.custom.input_schema: Field required`;
    if (objectOf(tool.input_schema).type === undefined) return `tools.${at}.custom.input_schema.type: Field required`;
    if (objectOf(tool.input_schema).type !== "object") return `tools.${at}.custom.input_schema.type: Input should be 'object'`;
  }
  return undefined;
}

function messagesFault(body: Json, rules: ClaudeRules, signed: (block: Json) => boolean): string | undefined {
  const messages = listOf(body.messages).map(objectOf);
  if (messages.length === 0) return "messages: at least one message is required";
  for (const [at, message] of messages.entries()) {
    const wrong = messageFault(message, at, at === messages.length - 1, signed);
    if (wrong) return wrong;
  }
  if (messages[0]?.role !== "user") return 'messages: first message must use the "user" role';
  return pairingFault(messages) ?? endFault(messages, body, rules);
}

function messageFault(message: Json, at: number, last: boolean, signed: (block: Json) => boolean): string | undefined {
  const { role, content } = message;
  if (role === "system")
    return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.';
  if (role !== "user" && role !== "assistant") return `messages.${at}.role: Input should be 'user' or 'assistant'`;
  if (content === undefined) return `messages.${at}.content: Field required`;
  const empty = content === "" || (Array.isArray(content) && content.length === 0);
  if (empty && !(last && role === "assistant"))
    return `messages.${at}: all messages must have non-empty content except for the optional final assistant message`;
  for (const [position, block] of listOf(content).entries()) {
    const where = `messages.${at}.content.${position}`;
    if (!isObject(block)) return `${where}: Input should be a valid dictionary or object to extract fields from`;
    if (block.type === "text" && block.text === "") return "messages: text content blocks must be non-empty";
    if (block.type === "text" && String(block.text).trim() === "")
      return "messages: text content blocks must contain non-whitespace text";
    if (block.type === "tool_use" && !/^[a-zA-Z0-9_-]+$/.test(String(block.id)))
      return `${where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
    if (block.type === "tool_use" && !isObject(block.input)) return `${where}.tool_use.input: Input should be a valid dictionary`;
    if (block.type === "thinking" && block.signature === undefined) return `${where}.thinking.signature: Field required`;
    if (block.type === "thinking" && !signed(block)) return `${where}: Invalid \`signature\` in \`thinking\` block`;
  }
  return undefined;
}

/** Consecutive messages with the same role count as one, as at the provider. */
function pairingFault(messages: readonly Json[]): string | undefined {
  const seen = new Set<string>();
  let open: string[] = [];
  let openedAt = 0;
  for (const [at, message] of messages.entries()) {
    const blocks = listOf(message.content).map(objectOf);
    if (message.role === "assistant") {
      if (open.length > 0 && messages[at - 1]?.role !== "assistant") return unanswered(openedAt, open);
      for (const [position, block] of blocks.entries()) {
        if (block.type !== "tool_use") continue;
        const id = String(block.id);
        if (seen.has(id)) return `messages.${at}.content.${position}: \`tool_use\` ids must be unique`;
        seen.add(id);
        open.push(id);
        openedAt = at;
      }
      continue;
    }
    for (const [position, block] of blocks.entries()) {
      if (block.type !== "tool_result") continue;
      const id = String(block.tool_use_id);
      if (!open.includes(id))
        return `messages.${at}.content.${position}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      open = open.filter((other) => other !== id);
    }
    if (open.length > 0 && messages[at + 1]?.role !== "user") return unanswered(openedAt, open);
  }
  return open.length > 0 ? unanswered(openedAt, open) : undefined;
}

function unanswered(at: number, ids: readonly string[]): string {
  return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function endFault(messages: readonly Json[], body: Json, rules: ClaudeRules): string | undefined {
  const last = messages.at(-1);
  if (last?.role === "assistant") {
    if (!rules.prefill)
      return "This model does not support assistant message prefill. The conversation must end with a user message.";
    if (typeof last.content === "string" && /\s$/.test(last.content))
      return "messages: final assistant content cannot end with trailing whitespace";
    return undefined;
  }
  const { type } = objectOf(body.thinking);
  const results = listOf(last?.content).some((block) => objectOf(block).type === "tool_result");
  if (type !== "enabled" || !results) return undefined;
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const first = objectOf(listOf(messages[at]?.content)[0]).type;
  if (first === "thinking" || first === "redacted_thinking") return undefined;
  return `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first ?? "text"}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at ${DOCS}`;
}
