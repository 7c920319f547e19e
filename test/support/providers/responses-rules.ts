import { isObject, type Json, listed, listOf, objectOf, quoted } from "./json.ts";
import { functionFault } from "./openai-chat-rules.ts";
import {
  emptyList,
  invalid,
  longList,
  longText,
  missing,
  unknownValue,
  unsupportedParameter,
  wrongType,
} from "./openai-faults.ts";
import type { ModelRules } from "./openai-models.ts";
import type { Fault } from "./speak.ts";

const KNOWN = [
  ...["background", "context_management", "conversation", "include", "input", "instructions", "max_output_tokens"],
  ...["max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"],
  ...["prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options"],
  ...["temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"],
];
const MOVED: Record<string, string> = {
  messages: "input",
  reasoning_effort: "reasoning.effort",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  response_format: "text.format",
  verbosity: "text.verbosity",
};
const INCLUDES = [
  ...["file_search_call.results", "web_search_call.results", "web_search_call.action.sources"],
  ...["message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"],
  ...["reasoning.encrypted_content", "message.output_text.logprobs"],
];
const ROLES = ["assistant", "system", "developer", "user"];
const SAID = ["output_text", "refusal"];
const HEARD = ["input_text", "input_image", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text"];
const ITEM_FIELDS: Record<string, readonly string[]> = {
  message: ["type", "id", "role", "content", "status", "phase"],
  function_call: ["type", "id", "call_id", "name", "namespace", "arguments", "status"],
  function_call_output: ["type", "id", "call_id", "output", "status"],
  reasoning: ["type", "id", "summary", "content", "encrypted_content", "status"],
};
const PREFIXES: Record<string, string> = { function_call: "fc", reasoning: "rs", message: "msg" };

/** OpenAI's error for a responses request, if any. */
export function responsesFault(body: Json, rules: ModelRules, name: string): Fault | undefined {
  return fieldFault(body) ?? inputFault(body) ?? toolsFault(body, rules) ?? parameterFault(body, rules, name);
}

function fieldFault(body: Json): Fault | undefined {
  const strange = Object.keys(body).find((key) => !KNOWN.includes(key));
  if (strange === undefined) return undefined;
  const place = MOVED[strange];
  if (place === undefined) return invalid(`Unknown parameter: '${strange}'.`, strange, "unknown_parameter");
  return invalid(
    `Unsupported parameter: '${strange}'. In the Responses API, this parameter has moved to '${place}'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.`,
    null,
    "unsupported_parameter",
  );
}

function parameterFault(body: Json, rules: ModelRules, name: string): Fault | undefined {
  const { effort, summary } = objectOf(body.reasoning);
  const most = body.max_output_tokens;
  if (rules.efforts.length === 0) {
    if (effort != null) return unsupportedParameter("reasoning.effort");
    if (summary != null) return unsupportedParameter("reasoning.summary");
  } else if (effort != null && !rules.efforts.includes(String(effort)))
    return invalid(
      `Unsupported value: ${quoted(effort)} is not supported with the '${name}' model. Supported values are: ${listed(rules.efforts)}.`,
      "reasoning.effort",
      "unsupported_value",
    );
  for (const [at, asked] of listOf(body.include).entries())
    if (!INCLUDES.includes(String(asked))) return unknownValue(`include[${at}]`, asked, INCLUDES);
  if (listOf(body.include).includes("reasoning.encrypted_content") && rules.efforts.length === 0)
    return invalid("Encrypted content is not supported with this model.", "include");
  if (most != null && Number(most) < 16)
    return invalid(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${most} instead.`,
      "max_output_tokens",
      "integer_below_min_value",
    );
  const free = rules.temperature === "any" || (rules.temperature === "without-effort" && (effort ?? rules.effort) === "none");
  const sampling = free ? undefined : ["temperature", "top_p", "top_logprobs"].find((field) => body[field] != null);
  if (sampling !== undefined) return unsupportedParameter(sampling);
  const verbosity = objectOf(body.text).verbosity;
  if (verbosity != null && verbosity !== "medium" && !name.startsWith("gpt-5"))
    return invalid(
      `Unsupported value: ${quoted(verbosity)} is not supported with the '${name}' model. Supported values are: 'medium'.`,
      "text.verbosity",
      "unsupported_value",
    );
  return undefined;
}

function inputFault(body: Json): Fault | undefined {
  const { input } = body;
  if (typeof input === "string") return undefined;
  if (input === undefined) return body.previous_response_id != null ? undefined : missingInput();
  if (!Array.isArray(input)) return wrongType("input", "a string or an array of input items", input);
  for (const [at, item] of input.entries()) {
    if (!isObject(item)) return wrongType(`input[${at}]`, "an input item", item);
    const fault = itemFault(item, `input[${at}]`);
    if (fault) return fault;
  }
  return body.previous_response_id == null ? pairingFault(input.map(objectOf)) : undefined;
}

function missingInput(): Fault {
  return invalid(
    "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
    null,
    "missing_required_parameter",
  );
}

function itemFault(item: Json, where: string): Fault | undefined {
  const type = String(item.type ?? "message");
  const strange = Object.keys(item).find((field) => ITEM_FIELDS[type]?.includes(field) === false);
  if (strange !== undefined)
    return invalid(`Unknown parameter: '${where}.${strange}'.`, `${where}.${strange}`, "unknown_parameter");
  const prefix = PREFIXES[type];
  if (item.id != null && prefix !== undefined && !String(item.id).startsWith(prefix))
    return invalid(
      `Invalid '${where}.id': '${item.id}'. Expected an ID that begins with '${prefix}'.`,
      `${where}.id`,
      "invalid_value",
    );
  if (String(item.id ?? "").length > 64) return longText(`${where}.id`, 64, String(item.id).length);
  if (type === "function_call" || type === "function_call_output") {
    const needed = type === "function_call" ? ["call_id", "name", "arguments"] : ["call_id", "output"];
    const left = needed.find((field) => item[field] === undefined);
    if (left !== undefined) return missing(`${where}.${left}`);
    if (String(item.call_id).length > 64) return longText(`${where}.call_id`, 64, String(item.call_id).length);
    return undefined;
  }
  if (type === "reasoning") return item.summary === undefined ? missing(`${where}.summary`) : undefined;
  if (type !== "message") return undefined;
  if (!ROLES.includes(String(item.role))) return unknownValue(where, item.role, ROLES);
  const known = item.role === "assistant" ? SAID : HEARD;
  for (const [at, part] of listOf(item.content).map(objectOf).entries())
    if (!known.includes(String(part.type))) return unknownValue(`${where}.content[${at}]`, part.type, known);
  return undefined;
}

function pairingFault(items: readonly Json[]): Fault | undefined {
  const ids = (type: string) => items.filter((item) => item.type === type).map((item) => String(item.call_id));
  const calls = ids("function_call");
  const outputs = ids("function_call_output");
  const stray = outputs.find((id) => !calls.includes(id));
  if (stray !== undefined) return invalid(`No tool call found for function call output with call_id ${stray}.`, "input");
  const open = calls.find((id) => !outputs.includes(id));
  return open === undefined ? undefined : invalid(`No tool output found for function call ${open}.`, "input");
}

function toolsFault(body: Json, rules: ModelRules): Fault | undefined {
  if (body.tools == null) return undefined;
  const tools = listOf(body.tools).map(objectOf);
  if (tools.length > 128) return longList("tools", 128, tools.length);
  if (tools.length === 0 && body.tool_choice === "required") return emptyList("tools");
  if (tools.length > 0 && !rules.tools) return unsupportedParameter("tools");
  for (const [at, tool] of tools.entries()) {
    if (tool.type === undefined) return missing(`tools[${at}].type`);
    if (tool.type !== "function") continue;
    const fault = functionFault(tool, `tools[${at}]`);
    if (fault) return fault;
  }
  return undefined;
}
