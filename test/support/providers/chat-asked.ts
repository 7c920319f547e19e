import type { Asked } from "./act.ts";
import { contentText, type Json, listOf, objectOf } from "./json.ts";
import type { Counter } from "./tokens.ts";

/** A model's limits, and the name in its answers. */
export interface Room {
  servedAs: string;
  window: number;
  maxOutput: number;
  count: Counter;
}

/** A completions request in the form that scripts use. */
export function askedOf(body: Json, { servedAs, window, maxOutput, count }: Room): Asked {
  const messages = listOf(body.messages).map(objectOf);
  const inputTokens = count(body.messages) + count(body.tools);
  const limit = Number(body.max_completion_tokens ?? body.max_tokens ?? maxOutput);
  return {
    wire: "completions",
    model: String(body.model),
    servedAs,
    stream: body.stream === true,
    system: contentText(messages.find(({ role }) => role === "system" || role === "developer")?.content),
    lastUser: contentText(messages.findLast(({ role }) => role === "user")?.content),
    afterTool: messages.at(-1)?.role === "tool",
    tools: listOf(body.tools).map((tool) => String(objectOf(objectOf(tool).function).name)),
    inputTokens,
    outputLimit: Math.max(0, Math.min(limit, maxOutput, window - inputTokens)),
    body,
  };
}
