import { randomBytes } from "node:crypto";
import type { Asked } from "./act.ts";
import type { Json } from "./json.ts";
import { objectOf } from "./json.ts";
import { callsOf, type Plan, type Step, textOf } from "./plan.ts";
import type { StreamEvent } from "./reply.ts";
import type { Dialect, Fault } from "./speak.ts";

/** How servers of the completions API differ from each other. */
export interface CompletionsHabits {
  /** The field for reasoning, if the server sends it. */
  reasoningField?: "reasoning_content" | "reasoning";
  /** Additional fields in every chunk and body. */
  extra?: Json;
  /** Chunks sent before the first text. */
  before?: (plan: Plan) => Json[];
  /** If true, usage is sent even if not requested. */
  alwaysUsage?: boolean;
  /** If true, a call arrives in one piece with all its arguments. */
  wholeCalls?: boolean;
  /** Additional fields in every choice. */
  choice?: Json;
  error: Dialect["error"];
  busy: Dialect["busy"];
  headers?: Record<string, string>;
  /** The format of a failure in the middle of a stream. */
  midStream?: (plan: Plan, base: Json) => unknown;
}

/** Chat completions as OpenAI documents them. */
export function completionsDialect(habits: CompletionsHabits): Dialect {
  return {
    events: (plan, asked) => eventsOf(plan, asked, habits),
    body: (plan, asked) => bodyOf(plan, asked, habits),
    error: habits.error,
    busy: habits.busy,
    newId: () => `call_${randomBytes(18).toString("base64url").replaceAll(/[-_]/g, "x")}`,
    ...(habits.headers && { headers: habits.headers }),
  };
}

/** An error in the format of OpenAI and most compatible servers. */
export function openAiError({ message, type = "invalid_request_error", param = null, code = null }: Fault): unknown {
  return { error: { message, type, param, code } };
}

function eventsOf(plan: Plan, asked: Asked, habits: CompletionsHabits): StreamEvent[] {
  const wire = plan.answer.wire ?? {};
  const base = headOf("chat.completion.chunk", plan, habits);
  const wantsUsage = objectOf(asked.body.stream_options).include_usage === true;
  const chunk = (delta: Json, finish: string | null = null, index = 0): Json => ({
    ...base,
    choices: [{ index, delta, logprobs: null, finish_reason: finish, ...habits.choice }],
    ...(wantsUsage && { usage: null }),
  });
  const steps = habits.wholeCalls ? plan.steps.filter(({ kind }) => kind !== "arguments") : plan.steps;
  const deltas = steps.map((step, at) => {
    const first = at === 0 && wire.padding ? { obfuscation: "x".repeat(wire.padding) } : {};
    return { ...chunk(deltaOf(step, plan, habits), null, step.kind === "choice" ? step.choice : 0), ...first };
  });
  const opened = plan.hasCalls && textOf(plan, "text") === "" ? null : "";
  const chunks: unknown[] = [
    ...(habits.before?.(plan) ?? []),
    chunk({ role: "assistant", content: opened, refusal: null }),
    ...deltas,
  ];
  if (plan.failure) {
    const { message, code = null } = plan.failure;
    const failed = habits.midStream?.(plan, base) ?? { error: { message, type: "server_error", param: null, code } };
    return [...chunks, failed].map((data) => ({ data }));
  }
  if (plan.answer.ends === undefined) {
    chunks.push(chunk({}, finishOf(plan)));
    for (const step of plan.steps) if (step.kind === "choice") chunks.push(chunk({}, finishOf(plan), step.choice));
    if (wantsUsage || habits.alwaysUsage) chunks.push({ ...base, choices: [], usage: usageOf(plan, asked) });
    if (!wire.noDone) chunks.push("[DONE]");
  }
  return chunks.map((data) => ({ data }));
}

function deltaOf(step: Step, plan: Plan, { reasoningField = "reasoning_content", wholeCalls }: CompletionsHabits): Json {
  switch (step.kind) {
    case "reason":
      return { [reasoningField]: step.text };
    case "refusal":
      return { refusal: step.text };
    case "text":
    case "choice":
      return { content: step.text };
    case "call": {
      const head = { ...indexOf(step), ...(step.id !== undefined && { id: step.id }), type: "function" };
      const args = wholeCalls ? (callsOf(plan).find(({ position }) => position === step.position)?.args ?? "") : "";
      return { tool_calls: [{ ...head, function: { name: step.call.tool, arguments: args } }] };
    }
    case "arguments":
      return { tool_calls: [{ ...indexOf(step), function: { arguments: step.text } }] };
  }
}

function indexOf({ call, position }: Extract<Step, { position: number }>): Json {
  if (call.index === null) return {};
  return { index: call.index ?? position };
}

function bodyOf(plan: Plan, asked: Asked, habits: CompletionsHabits): unknown {
  const calls = callsOf(plan);
  const reasoning = textOf(plan, "reason");
  const message = {
    role: "assistant",
    content: textOf(plan, "text") || (plan.hasCalls || plan.refused ? null : ""),
    refusal: plan.refused ? textOf(plan, "refusal") : null,
    annotations: [],
    ...(reasoning && { [habits.reasoningField ?? "reasoning_content"]: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ call, id, args }) => ({
        ...(id !== undefined && { id }),
        type: "function",
        function: { name: call.tool, arguments: args },
      })),
    }),
  };
  const finish = finishOf(plan);
  const others = plan.steps.flatMap((step) =>
    step.kind === "choice"
      ? [{ index: step.choice, message: { role: "assistant", content: step.text, refusal: null }, finish_reason: finish }]
      : [],
  );
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finish, ...habits.choice }, ...others];
  return { ...headOf("chat.completion", plan, habits), choices, usage: usageOf(plan, asked) };
}

function headOf(object: string, plan: Plan, habits: CompletionsHabits): Json {
  const id = `chatcmpl-${randomBytes(12).toString("hex")}`;
  return { id, object, created: Math.floor(Date.now() / 1000), model: plan.model, ...habits.extra };
}

function finishOf(plan: Plan): string {
  if (plan.answer.finish !== undefined) return plan.answer.finish;
  if (plan.cut) return "length";
  return plan.hasCalls ? "tool_calls" : "stop";
}

function usageOf(plan: Plan, asked: Asked): Json {
  return {
    prompt_tokens: asked.inputTokens,
    completion_tokens: plan.outputTokens,
    total_tokens: asked.inputTokens + plan.outputTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      ...{ reasoning_tokens: plan.reasoningTokens, audio_tokens: 0 },
      ...{ accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
    },
  };
}
