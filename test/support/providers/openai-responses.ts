import type { Asked } from "./act.ts";
import type { Ask, Recorded } from "./core.ts";
import { contentText, type Json, listOf, objectOf } from "./json.ts";
import { invalid } from "./openai-faults.ts";
import { type ModelRules, rulesFor } from "./openai-models.ts";
import type { Reply } from "./reply.ts";
import type { ResponsesMemory } from "./responses-memory.ts";
import { responsesFault } from "./responses-rules.ts";
import { failedStream } from "./responses-wire.ts";
import { type Dialect, type Fault, refuse, speak } from "./speak.ts";
import type { Counter } from "./tokens.ts";

/** Checks a responses request and lets the model answer it. */
export async function answerResponses(
  request: Recorded,
  ask: Ask,
  { models, count, memory }: { models: Record<string, ModelRules>; count: Counter; memory: ResponsesMemory },
  dialect: Dialect,
): Promise<Reply> {
  const body = objectOf(request.body);
  const name = String(body.model);
  const rules = rulesFor(models, name);
  if (!rules) return refuse(invalid(`The requested model '${name}' does not exist.`, "model", "model_not_found"), dialect);
  const fault = responsesFault(body, rules, name) ?? memory.fault(body);
  if (fault) return refuse(fault, dialect);
  const asked = askedOf(body, rules, count);
  if (asked.inputTokens <= (rules.maxInput ?? rules.window)) return speak(asked, ask, dialect);
  if (body.truncation === "auto") {
    request.silently = `dropped input items to fit ${rules.window} tokens`;
    return speak(asked, ask, dialect);
  }
  return tooLong(asked, dialect);
}

function tooLong(asked: Asked, dialect: Dialect): Reply {
  const fault: Fault = invalid(
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "input",
    "context_length_exceeded",
  );
  if (!asked.stream) return refuse(fault, dialect);
  return { kind: "events", events: failedStream(fault, asked), wire: {}, end: "end", refusal: fault.message };
}

function askedOf(body: Json, rules: ModelRules, count: Counter): Asked {
  const items = typeof body.input === "string" ? [{ role: "user", content: body.input }] : listOf(body.input).map(objectOf);
  const inputTokens = count(body.instructions) + count(body.input) + count(body.tools);
  const told = items.find(({ role }) => role === "system" || role === "developer")?.content;
  return {
    wire: "responses",
    model: String(body.model),
    servedAs: rules.snapshot,
    stream: body.stream === true,
    system: typeof body.instructions === "string" ? body.instructions : contentText(told),
    lastUser: contentText(items.findLast(({ role }) => role === "user")?.content),
    afterTool: objectOf(items.at(-1)).type === "function_call_output",
    tools: listOf(body.tools).map((tool) => String(objectOf(tool).name)),
    inputTokens,
    outputLimit: Math.max(
      0,
      Math.min(Number(body.max_output_tokens ?? rules.maxOutput), rules.maxOutput, rules.window - inputTokens),
    ),
    body,
  };
}
