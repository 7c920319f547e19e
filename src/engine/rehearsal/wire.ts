import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

const Content = z.union([z.string(), z.null(), z.array(z.looseObject({ text: z.string().optional() }))]).optional();

/** The parts of a model request that a rehearsal model reads. */
export const ChatRequest = z.looseObject({
  model: z.string(),
  stream: z.boolean().optional(),
  messages: z.array(
    z.looseObject({
      role: z.string(),
      content: Content,
      tool_calls: z
        .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
        .optional(),
      tool_call_id: z.string().optional(),
    }),
  ),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).optional(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;
export type ChatMessage = ChatRequest["messages"][number];

/** What a rehearsal model does with one request. */
export type Act =
  | { say: string | string[]; think?: string; gapMs?: number; delayMs?: number }
  | { call: { tool: string; args: unknown }[]; say?: string; delayMs?: number }
  | { status: number; headers?: Record<string, string>; message?: string }
  /** Sends this text, then nothing more, and keeps the connection open. */
  | { stall: string }
  /** Never answers. */
  | { hang: true }
  /** Cuts the connection after this much. */
  | { reset: string }
  /** A well-formed but empty answer. */
  | { empty: true };

/** A model: decides what to do, given a request and the number of earlier ones. */
export type Model = (request: ChatRequest, index: number) => Act | Promise<Act>;

export class ConnectionReset extends Error {
  override readonly name = "ConnectionReset";
}

/** The text of a message, in either of the wire's forms. */
export function textOf(message: ChatMessage | undefined): string {
  const content = message?.content;
  if (typeof content === "string") return content;
  return content?.map((part) => part.text ?? "").join("") ?? "";
}

/** The events of a streamed answer, as sent over the wire. */
export async function* streamOf(act: Act, request: ChatRequest, index: number, signal?: AbortSignal): AsyncGenerator<string> {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: `rehearsal-${index}`, object: "chat.completion.chunk", created: 1, model: request.model, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const pause = (ms: number | undefined) => (ms ? sleep(ms, undefined, signal ? { signal } : {}) : undefined);

  if ("hang" in act) await forever(signal);
  if ("delayMs" in act) await pause(act.delayMs);
  yield chunk({ role: "assistant", content: "" });
  if ("stall" in act || "reset" in act) {
    const said = "stall" in act ? act.stall : act.reset;
    if (said) yield chunk({ content: said });
    if ("reset" in act) throw new ConnectionReset("the connection was cut");
    await forever(signal);
  }
  if ("think" in act && act.think) yield chunk({ reasoning_content: act.think });
  if ("say" in act && act.say) {
    for (const piece of typeof act.say === "string" ? [act.say] : act.say) {
      yield chunk({ content: piece });
      await pause("gapMs" in act ? act.gapMs : undefined);
    }
  }
  const calls = "call" in act ? act.call : [];
  for (const [position, call] of calls.entries()) {
    const id = `call_${index}_${position}_${Math.random().toString(36).slice(2, 8)}`;
    yield chunk({
      tool_calls: [
        { index: position, id, type: "function", function: { name: call.tool, arguments: JSON.stringify(call.args) } },
      ],
    });
  }
  yield chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  yield `data: ${JSON.stringify({ id: `rehearsal-${index}`, object: "chat.completion.chunk", created: 1, model: request.model, choices: [], usage: usageOf(act, request) })}\n\n`;
  yield "data: [DONE]\n\n";
}

/** The same answer in one piece, for a session that does not stream. */
export async function wholeOf(act: Act, request: ChatRequest, index: number, signal?: AbortSignal): Promise<string> {
  if ("hang" in act || "stall" in act) await forever(signal);
  if ("reset" in act) throw new ConnectionReset("the connection was cut");
  if ("delayMs" in act && act.delayMs) await sleep(act.delayMs, undefined, signal ? { signal } : {});
  const calls = "call" in act ? act.call : [];
  const said = "say" in act && act.say ? (typeof act.say === "string" ? act.say : act.say.join("")) : "";
  const message = {
    role: "assistant",
    content: said || null,
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, position) => ({
        id: `call_${index}_${position}_${Math.random().toString(36).slice(2, 8)}`,
        type: "function",
        function: { name: call.tool, arguments: JSON.stringify(call.args) },
      })),
    }),
  };
  return JSON.stringify({
    id: `rehearsal-${index}`,
    object: "chat.completion",
    created: 1,
    model: request.model,
    choices: [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
    usage: usageOf(act, request),
  });
}

/** A rough estimate of four characters per token, so that there is something to show. */
export function usageOf(act: Act, request: ChatRequest) {
  const prompt_tokens = Math.ceil(JSON.stringify(request.messages).length / 4);
  const completion_tokens = Math.ceil(JSON.stringify(act).length / 4);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function forever(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(new ConnectionReset("the caller left")), { once: true });
  });
}
