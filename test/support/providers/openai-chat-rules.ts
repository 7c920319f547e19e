import { isObject, type Json, listed, listOf, objectOf } from "./json.ts";
import {
  emptyList,
  emptyText,
  invalid,
  longList,
  longText,
  missing,
  unknownValue,
  unrecognized,
  unsupportedParameter,
  unsupportedValue,
  wrongPattern,
  wrongType,
} from "./openai-faults.ts";
import type { ModelRules } from "./openai-models.ts";
import type { Fault } from "./speak.ts";

const KNOWN = [
  ...["messages", "model", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"],
  ...["max_completion_tokens", "max_tokens", "metadata", "modalities", "n", "parallel_tool_calls", "prediction"],
  ...["presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format"],
  ...["safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature"],
  ...["tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"],
];
const ROLES = ["system", "assistant", "user", "function", "tool", "developer"];
const NAME = "^[a-zA-Z0-9_-]+$";
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"];

/** OpenAI's error for a completions request, if any. */
export function chatFault(body: Json, rules: ModelRules, name: string): Fault | undefined {
  return (
    unrecognized(body, KNOWN) ??
    messagesFault(body.messages, rules) ??
    toolsFault(body, rules) ??
    parameterFault(body, rules, name)
  );
}

/** Checks the parameters that depend on the model family. */
export function parameterFault(body: Json, rules: ModelRules, name: string): Fault | undefined {
  const reasons = rules.temperature !== "any";
  const { reasoning_effort: effort, max_tokens: old, max_completion_tokens: most } = body;
  if (old != null && most != null)
    return invalid("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens");
  if (reasons && old != null) return unsupportedParameter("max_tokens", " Use 'max_completion_tokens' instead.");
  const asked = old ?? most;
  if (asked != null) {
    const field = old != null ? "max_tokens" : "max_completion_tokens";
    if (!Number.isInteger(asked)) return wrongType(field, "an unsupported value", asked);
    if (Number(asked) > rules.maxOutput)
      return invalid(
        `${field} is too large: ${asked}. This model supports at most ${rules.maxOutput} completion tokens, whereas you provided ${asked}.`,
        field,
        "invalid_value",
      );
  }
  if (effort != null) {
    if (rules.efforts.length === 0) return invalid("Unrecognized request argument supplied: reasoning_effort");
    if (!EFFORTS.includes(String(effort))) return unknownValue("reasoning_effort", effort, EFFORTS);
    if (!rules.efforts.includes(String(effort)))
      return unsupportedValue("reasoning_effort", effort, `Supported values are: ${listed(rules.efforts)}.`);
  }
  return samplingFault(body, rules, effort ?? rules.effort) ?? toolEffortFault(body, rules, name, effort) ?? streamFault(body);
}

/** Checks temperature and the other sampling parameters, which reasoning models refuse. */
export function samplingFault(body: Json, rules: ModelRules, effort: unknown): Fault | undefined {
  const { temperature } = body;
  if (typeof temperature === "number" && (temperature < 0 || temperature > 2))
    return invalid(
      `Invalid 'temperature': decimal ${temperature < 0 ? "below minimum" : "above maximum"} value. Expected a value ${temperature < 0 ? ">= 0" : "<= 2"}, but got ${temperature} instead.`,
      "temperature",
      temperature < 0 ? "decimal_below_min_value" : "decimal_above_max_value",
    );
  if (rules.temperature === "any" || (rules.temperature === "without-effort" && effort === "none")) return undefined;
  if (temperature != null && rules.temperature === "parameter") return unsupportedParameter("temperature");
  if (temperature != null && temperature !== 1)
    return unsupportedValue("temperature", temperature, "Only the default (1) value is supported.");
  const strange = ["top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias", "stop"];
  const given = strange.find((field) => body[field] != null);
  return given === undefined ? undefined : unsupportedParameter(given);
}

function toolEffortFault(body: Json, rules: ModelRules, name: string, effort: unknown): Fault | undefined {
  if (listOf(body.tools).length === 0 || rules.toolsWithEffort === undefined) return undefined;
  const counts = rules.toolsWithEffort === "refused" ? effort : (effort ?? rules.effort);
  if (counts == null || counts === "none") return undefined;
  const way =
    rules.toolsWithEffort === "refused"
      ? "Please use /v1/responses instead."
      : "To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
  return invalid(
    `Function tools with reasoning_effort are not supported for ${name} in /v1/chat/completions. ${way}`,
    "reasoning_effort",
  );
}

function streamFault(body: Json): Fault | undefined {
  if (body.stream_options != null && body.stream !== true)
    return invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options");
  return undefined;
}

function messagesFault(messages: unknown, rules: ModelRules): Fault | undefined {
  if (messages === undefined) return missing("messages");
  if (!Array.isArray(messages)) return wrongType("messages", "an array of objects", messages);
  if (messages.length === 0) return emptyList("messages");
  let waiting: string[] = [];
  for (const [at, message] of messages.entries()) {
    const where = `messages[${at}]`;
    if (!isObject(message)) return wrongType(where, "an object", message);
    const fault = messageFault(message, where, at, rules);
    if (fault) return fault;
    if (message.role === "tool") {
      if (message.tool_call_id === undefined) return missing(`${where}.tool_call_id`);
      if (!waiting.includes(String(message.tool_call_id))) return strayTool(at, messages);
      waiting = waiting.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (waiting.length > 0) return unanswered(waiting, at);
    waiting = listOf(message.tool_calls).map((call) => String(objectOf(call).id));
  }
  return waiting.length > 0 ? unanswered(waiting, messages.length) : undefined;
}

function messageFault(message: Json, where: string, at: number, rules: ModelRules): Fault | undefined {
  const { role, content, tool_calls: calls } = message;
  if (role === undefined) return missing(`${where}.role`);
  if (!ROLES.includes(String(role))) return unknownValue(`${where}.role`, role, ROLES);
  if (role === "system" && !rules.systemMessages)
    return invalid(
      `Unsupported value: '${where}.role' does not support 'system' with this model.`,
      `${where}.role`,
      "unsupported_value",
    );
  if (calls !== undefined) {
    const fault = callsFault(calls, `${where}.tool_calls`);
    if (fault) return fault;
  }
  if (content == null && !(role === "assistant" && calls !== undefined))
    return invalid("Invalid value for 'content': expected a string, got null.", `messages.[${at}].content`);
  for (const [position, part] of (Array.isArray(content) ? content : []).entries()) {
    const type = objectOf(part).type;
    if (type === undefined) return missing(`${where}.content[${position}].type`);
    if (type === "image_url" && !rules.vision)
      return invalid(
        "Invalid content type. image_url is only supported by certain models.",
        `messages.[${at}].content.[${position}].type`,
      );
  }
  return undefined;
}

function callsFault(calls: unknown, where: string): Fault | undefined {
  if (!Array.isArray(calls)) return wrongType(where, "an array of objects", calls);
  if (calls.length === 0) return emptyList(where);
  if (calls.length > 128) return longList(where, 128, calls.length);
  for (const [at, call] of calls.map(objectOf).entries()) {
    const fn = objectOf(call.function);
    if (call.id === undefined) return missing(`${where}[${at}].id`);
    if (String(call.id).length > 40) return longText(`${where}[${at}].id`, 40, String(call.id).length);
    if (call.type === undefined) return missing(`${where}[${at}].type`);
    const fault = nameFault(fn.name, `${where}[${at}].function.name`);
    if (fault) return fault;
    if (typeof fn.arguments !== "string") return wrongType(`${where}[${at}].function.arguments`, "a string", fn.arguments);
  }
  return undefined;
}

function toolsFault(body: Json, rules: ModelRules): Fault | undefined {
  const { tools } = body;
  if (tools == null) {
    for (const field of ["tool_choice", "parallel_tool_calls"])
      if (body[field] != null)
        return invalid(`Invalid value for '${field}': '${field}' is only allowed when 'tools' are specified.`, field);
    return undefined;
  }
  if (!Array.isArray(tools)) return wrongType("tools", "an array of objects", tools);
  if (!rules.tools) return unsupportedParameter("tools");
  if (tools.length === 0) return emptyList("tools");
  if (tools.length > 128) return longList("tools", 128, tools.length);
  for (const [at, tool] of tools.map(objectOf).entries()) {
    if (tool.type === undefined) return missing(`tools[${at}].type`);
    if (!isObject(tool.function)) return missing(`tools[${at}].function`);
    const fault = functionFault(tool.function, `tools[${at}].function`);
    if (fault) return fault;
  }
  if (body.parallel_tool_calls != null && !rules.parallelCalls) return unsupportedParameter("parallel_tool_calls");
  return undefined;
}

/** Checks the name and schema of a function, on both of OpenAI's wires. */
export function functionFault(fn: Json, where: string): Fault | undefined {
  const fault = nameFault(fn.name, `${where}.name`);
  if (fault) return fault;
  if (fn.parameters == null) return undefined;
  const wrong = schemaFault(fn.parameters, fn.strict === true);
  if (!wrong) return undefined;
  return invalid(`Invalid schema for function '${fn.name}': ${wrong}`, `${where}.parameters`, "invalid_function_parameters");
}

function nameFault(name: unknown, where: string): Fault | undefined {
  if (name === undefined) return missing(where);
  if (typeof name !== "string") return wrongType(where, "a string", name);
  if (name === "") return emptyText(where);
  if (name.length > 64) return longText(where, 64, name.length);
  return new RegExp(NAME).test(name) ? undefined : wrongPattern(where, NAME);
}

function schemaFault(schema: unknown, strict: boolean, path: readonly string[] = []): string | undefined {
  const context = `In context=(${path.map((step) => `'${step}'`).join(", ")}${path.length === 1 ? "," : ""})`;
  if (!isObject(schema)) return `${JSON.stringify(schema)} is not of type 'object', 'boolean'.`;
  if (path.length === 0 && schema.type !== "object")
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${schema.type === undefined ? "None" : schema.type}"'.`;
  const isObjectSchema = schema.type === "object";
  if (isObjectSchema && schema.properties === undefined && schema.additionalProperties === undefined)
    return `${context}, object schema missing properties.`;
  if (schema.type === "array" && schema.items === undefined) return `${context}, array schema missing items.`;
  const properties = objectOf(schema.properties);
  if (strict && isObjectSchema) {
    if (schema.additionalProperties !== false)
      return `${context}, 'additionalProperties' is required to be supplied and to be false.`;
    const left = Object.keys(properties).find((key) => !listOf(schema.required).includes(key));
    if (left !== undefined)
      return `${context}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${left}'.`;
  }
  for (const [key, value] of Object.entries(properties)) {
    const wrong = schemaFault(value, strict, [...path, "properties", key]);
    if (wrong) return wrong;
  }
  return schema.items === undefined ? undefined : schemaFault(schema.items, strict, [...path, "items"]);
}

function unanswered(ids: readonly string[], at: number): Fault {
  return invalid(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`,
    `messages.[${at}].role`,
  );
}

function strayTool(at: number, messages: readonly unknown[]): Fault {
  const before = messages.slice(0, at).findLast((message) => objectOf(message).role !== "tool");
  if (objectOf(before).tool_calls !== undefined)
    return invalid(
      `Invalid parameter: 'tool_call_id' of '${objectOf(messages[at]).tool_call_id}' not found in 'tool_calls' of previous message.`,
      `messages.[${at}].tool_call_id`,
    );
  return invalid(
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    `messages.[${at}].role`,
  );
}
