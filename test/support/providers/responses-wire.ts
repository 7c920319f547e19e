import { randomBytes } from "node:crypto";
import type { Asked } from "./act.ts";
import { type Json, listOf, objectOf } from "./json.ts";
import { callsOf, type Plan, textOf } from "./plan.ts";
import type { StreamEvent } from "./reply.ts";
import type { ResponsesMemory } from "./responses-memory.ts";
import type { Dialect, Fault } from "./speak.ts";

type Item = { item: Json; index: number };

/** The responses API as OpenAI documents it, with ordered and numbered events. */
export function responsesDialect(
  memory: ResponsesMemory,
  { error, busy, headers }: Pick<Dialect, "error" | "busy" | "headers">,
): Dialect {
  return {
    events: (plan, asked) => eventsOf(plan, asked, memory),
    body: (plan, asked) => {
      const head = headOf(plan, asked);
      return finished(plan, asked, head, outputOf(plan, asked, memory, String(head.id)));
    },
    error,
    busy,
    newId: () => `call_${randomBytes(18).toString("base64url").replaceAll(/[-_]/g, "x")}`,
    ...(headers && { headers }),
  };
}

/** The stream for a request that does not fit: it begins, then fails. */
export function failedStream(fault: Fault, asked: Asked): StreamEvent[] {
  const head = headOf({ model: asked.servedAs }, asked);
  const { message, code = null, type = "invalid_request_error", param = null } = fault;
  return numbered([
    { type: "response.created", response: head },
    { type: "response.in_progress", response: head },
    { type: "error", error: { type, code, message, param } },
    { type: "response.failed", response: { ...head, status: "failed", error: { code, message } } },
  ]);
}

function eventsOf(plan: Plan, asked: Asked, memory: ResponsesMemory): StreamEvent[] {
  const head = headOf(plan, asked);
  const output = outputOf(plan, asked, memory, String(head.id));
  const items = output.map((item, index) => ({ item, index }));
  const padding = plan.answer.wire?.padding;
  const calls = items.filter(({ item }) => item.type === "function_call");
  const events: Json[] = [
    { type: "response.created", response: head },
    { type: "response.in_progress", response: head },
    ...items.filter(({ item }) => item.type === "reasoning").flatMap((one) => reasoningEvents(one, plan)),
    ...items.filter(({ item }) => item.type === "message").flatMap((one) => messageEvents(one, plan)),
    ...(plan.answer.interleave ? interleaved(calls, plan) : calls.flatMap((one, position) => callEvents(one, position, plan))),
  ];
  const first = events.find(({ type }) => String(type).endsWith(".delta"));
  if (padding && first) first.obfuscation = "x".repeat(padding);
  if (plan.failure) {
    const { message, code = "server_error", event = "failed" } = plan.failure;
    const open = events.filter(({ type }) => !String(type).endsWith(".done"));
    const failed = { ...head, status: "failed", error: { code, message } };
    const last =
      event === "error" ? { type: "error", code, message, param: null } : { type: "response.failed", response: failed };
    return numbered([...open, last]);
  }
  if (plan.answer.ends !== undefined) return numbered(events.filter(({ type }) => !String(type).endsWith(".done")));
  const response = finished(plan, asked, head, output);
  if (!plan.answer.wire?.noDone) events.push({ type: `response.${response.status}`, response });
  return numbered(events);
}

function reasoningEvents({ item, index }: Item, plan: Plan): Json[] {
  const at = { item_id: item.id, output_index: index, summary_index: 0 };
  const summary = listOf(item.summary).map(objectOf);
  const text = summary[0]?.text;
  const part = { type: "summary_text", text: "" };
  const deltas = plan.steps.flatMap((step) => (step.kind === "reason" ? [step.text] : []));
  return [
    { type: "response.output_item.added", output_index: index, item: { ...item, summary: [] } },
    ...(summary.length > 0
      ? [
          { type: "response.reasoning_summary_part.added", ...at, part },
          ...deltas.map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
          { type: "response.reasoning_summary_text.done", ...at, text },
          { type: "response.reasoning_summary_part.done", ...at, part: { ...part, text } },
        ]
      : []),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function messageEvents({ item, index }: Item, plan: Plan): Json[] {
  const parts = listOf(item.content).map(objectOf);
  const added = { ...item, status: "in_progress", content: [] };
  return [
    { type: "response.output_item.added", output_index: index, item: added },
    ...parts.flatMap((part, position) =>
      partEvents(part, { item_id: item.id, output_index: index, content_index: position }, plan),
    ),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function partEvents(part: Json, at: Json, plan: Plan): Json[] {
  const refusal = part.type === "refusal";
  const field = refusal ? "refusal" : "text";
  const said = plan.steps.flatMap((step) => (step.kind === field ? [step.text] : []));
  const deltas = said.join("") === part[field] ? said : [String(part[field])];
  const name = refusal ? "response.refusal" : "response.output_text";
  const logprobs = refusal ? {} : { logprobs: [] };
  return [
    { type: "response.content_part.added", ...at, part: { ...part, [field]: "" } },
    ...deltas.map((delta) => ({ type: `${name}.delta`, ...at, delta, ...logprobs })),
    { type: `${name}.done`, ...at, [field]: part[field], ...logprobs },
    { type: "response.content_part.done", ...at, part },
  ];
}

function callEvents({ item, index }: Item, position: number, plan: Plan): Json[] {
  const at = { item_id: item.id, output_index: index };
  const deltas = plan.steps.flatMap((step) => (step.kind === "arguments" && step.position === position ? [step.text] : []));
  return [
    { type: "response.output_item.added", output_index: index, item: { ...item, status: "in_progress", arguments: "" } },
    ...deltas.map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
    { type: "response.function_call_arguments.done", ...at, name: item.name, arguments: item.arguments },
    { type: "response.output_item.done", output_index: index, item },
  ];
}

/** Opens every call first, then sends their pieces in turns, then ends them. */
function interleaved(calls: readonly Item[], plan: Plan): Json[] {
  const all = calls.map((call, position) => callEvents(call, position, plan));
  const longest = Math.max(0, ...all.map((events) => events.length));
  return Array.from({ length: longest }, (_, turn) => all.flatMap((events) => events.slice(turn, turn + 1))).flat();
}

function outputOf(plan: Plan, asked: Asked, memory: ResponsesMemory, response: string): Json[] {
  const status = plan.cut ? "incomplete" : "completed";
  const text = textOf(plan, "text");
  const output: Json[] = [];
  if (memory.reasons(asked) || textOf(plan, "reason")) {
    const id = newId("rs");
    const wantsSummary = objectOf(asked.body.reasoning).summary != null;
    const summary = wantsSummary && textOf(plan, "reason") ? [{ type: "summary_text", text: textOf(plan, "reason") }] : [];
    const sealed = listOf(asked.body.include).includes("reasoning.encrypted_content");
    output.push({ id, type: "reasoning", summary, ...(sealed && { encrypted_content: memory.seal(id) }) });
  }
  const message = (content: Json[]) => ({ id: newId("msg"), type: "message", status, role: "assistant", content });
  if (plan.refused) output.push(message([{ type: "refusal", refusal: textOf(plan, "refusal") }]));
  else if (text || !plan.hasCalls) output.push(message([{ type: "output_text", annotations: [], logprobs: [], text }]));
  for (const step of plan.steps)
    if (step.kind === "choice") output.push(message([{ type: "output_text", annotations: [], logprobs: [], text: step.text }]));
  for (const { call, id, args } of callsOf(plan)) {
    const callId = id === undefined ? {} : { call_id: id };
    output.push({ id: newId("fc"), type: "function_call", status, arguments: args, ...callId, name: call.tool });
  }
  memory.keep(asked, response, output);
  return output;
}

function headOf(plan: { model: string }, { body }: Asked): Json {
  return {
    ...{ id: newId("resp"), object: "response", created_at: Math.floor(Date.now() / 1000), status: "in_progress" },
    ...{ background: false, error: null, incomplete_details: null, instructions: body.instructions ?? null },
    ...{ max_output_tokens: body.max_output_tokens ?? null, model: plan.model, output: [], parallel_tool_calls: true },
    ...{ previous_response_id: body.previous_response_id ?? null, reasoning: { effort: null, summary: null } },
    ...{ service_tier: "auto", store: body.store ?? true, temperature: 1, text: { format: { type: "text" } } },
    ...{ tool_choice: "auto", tools: [], top_p: 1, truncation: "disabled", usage: null, user: null, metadata: {} },
  };
}

function finished(plan: Plan, asked: Asked, head: Json, output: Json[]): Json {
  const incomplete = plan.cut || plan.answer.finish === "content_filter";
  const reason = plan.answer.finish === "content_filter" ? "content_filter" : "max_output_tokens";
  return {
    ...head,
    status: incomplete ? "incomplete" : "completed",
    incomplete_details: incomplete ? { reason } : null,
    output,
    usage: {
      input_tokens: asked.inputTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: plan.outputTokens,
      output_tokens_details: { reasoning_tokens: plan.reasoningTokens },
      total_tokens: asked.inputTokens + plan.outputTokens,
    },
  };
}

function numbered(events: readonly Json[]): StreamEvent[] {
  return events.map((data, at) => ({ event: String(data.type), data: { type: data.type, sequence_number: at, ...data } }));
}

function newId(prefix: string): string {
  return `${prefix}_${randomBytes(24).toString("hex")}`;
}
