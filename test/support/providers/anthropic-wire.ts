import { createHmac, randomBytes } from "node:crypto";
import type { Asked } from "./act.ts";
import { type Json, objectOf } from "./json.ts";
import { callsOf, type Plan, textOf } from "./plan.ts";
import type { StreamEvent } from "./reply.ts";
import type { Dialect, Fault } from "./speak.ts";

/** The signature of a thinking block, by which the server recognizes it later. */
export function signatureOf(thinking: string): string {
  return createHmac("sha256", "anthropic stand-in").update(thinking).digest("base64");
}

/** The messages API as Anthropic documents it. */
export const anthropic: Dialect = {
  events: eventsOf,
  body: (plan, asked) => ({
    ...headOf(plan),
    content: blocksOf(plan).map(({ block }) => block),
    stop_reason: stopOf(plan, asked),
    usage: { ...inputUsage(asked), output_tokens: plan.outputTokens },
  }),
  error: anthropicError,
  busy: (kind) => {
    if (kind === "overloaded") return { status: 529, type: "overloaded_error", message: "Overloaded" };
    if (kind === "rate")
      return {
        status: 429,
        type: "rate_limit_error",
        message:
          "This request would exceed the rate limit for your organization of 30,000 input tokens per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later.",
      };
    return {
      status: 400,
      type: "invalid_request_error",
      message:
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    };
  },
  newId: () => `toolu_01${randomBytes(11).toString("hex")}`,
  headers: { "request-id": "req_011CStandIn" },
};

export function anthropicError({ type = "api_error", message }: Fault): unknown {
  return { type: "error", error: { type, message }, request_id: `req_011C${randomBytes(10).toString("hex")}` };
}

interface Block {
  block: Json;
  /** The block as it is opened; `deltas` then add its content piece by piece. */
  opened: Json;
  deltas: Json[];
}

function eventsOf(plan: Plan, asked: Asked): StreamEvent[] {
  const blocks = blocksOf(plan);
  const start = { ...headOf(plan), usage: { ...inputUsage(asked), output_tokens: 1 } };
  const events: Json[] = [{ type: "message_start", message: start }, { type: "ping" }];
  const opened = blocks.map(({ opened: content_block }, index) => ({ type: "content_block_start", index, content_block }));
  const deltas = blocks.map((block, index) => block.deltas.map((delta) => ({ type: "content_block_delta", index, delta })));
  for (const [index, open] of opened.entries()) {
    events.push(open, ...(deltas[index] ?? []));
    if (plan.answer.ends === undefined || index < opened.length - 1) events.push({ type: "content_block_stop", index });
  }
  const padding = plan.answer.wire?.padding;
  const first = events.find(({ type }) => type === "content_block_delta");
  if (padding && first) first.padding = "x".repeat(padding);
  if (plan.failure) {
    const type = String(plan.failure.code ?? "api_error");
    events.push({ type: "error", error: { type, message: plan.failure.message } });
  } else if (plan.answer.ends === undefined) {
    const delta = { stop_reason: stopOf(plan, asked), stop_sequence: null };
    events.push({ type: "message_delta", delta, usage: { ...inputUsage(asked), output_tokens: plan.outputTokens } });
    if (!plan.answer.wire?.noDone) events.push({ type: "message_stop" });
  }
  return events.map((data) => ({ event: String(data.type), data }));
}

function blocksOf(plan: Plan): Block[] {
  const blocks: Block[] = [];
  const pieces = (kind: "reason" | "text" | "refusal") =>
    plan.steps.flatMap((step) => (step.kind === kind || (kind === "text" && step.kind === "choice") ? [step.text] : []));
  const thinking = textOf(plan, "reason");
  if (thinking) {
    const signature = signatureOf(thinking);
    blocks.push({
      block: { type: "thinking", thinking, signature },
      opened: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...pieces("reason").map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature },
      ],
    });
  }
  for (const kind of ["text", "refusal"] as const) {
    const said = pieces(kind);
    if (said.join("") === "") continue;
    blocks.push({
      block: { type: "text", text: said.join("") },
      opened: { type: "text", text: "" },
      deltas: said.map((text) => ({ type: "text_delta", text })),
    });
  }
  for (const { call, id, args, position } of callsOf(plan)) {
    const head = { type: "tool_use", ...(id !== undefined && { id }), name: call.tool };
    const partial = plan.steps.flatMap((step) => (step.kind === "arguments" && step.position === position ? [step.text] : []));
    blocks.push({
      block: { ...head, input: parsed(args) },
      opened: { ...head, input: {} },
      deltas: ["", ...partial].map((partial_json) => ({ type: "input_json_delta", partial_json })),
    });
  }
  return blocks;
}

function headOf(plan: Plan): Json {
  const id = `msg_01${randomBytes(11).toString("hex")}`;
  const empty = { content: [], stop_reason: null, stop_sequence: null };
  return { id, type: "message", role: "assistant", model: plan.model, ...empty };
}

function inputUsage(asked: Asked): Json {
  return { input_tokens: asked.inputTokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
}

function stopOf(plan: Plan, asked: Asked): string {
  if (plan.answer.finish !== undefined) return plan.answer.finish;
  if (plan.refused) return "refusal";
  if (plan.cut) return asked.outputLimit < Number(asked.body.max_tokens) ? "model_context_window_exceeded" : "max_tokens";
  return plan.hasCalls ? "tool_use" : "end_turn";
}

function parsed(args: string): Json {
  try {
    return objectOf(JSON.parse(args));
  } catch {
    return {};
  }
}
