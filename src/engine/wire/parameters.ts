import type { Body, Wire } from "./dialect.ts";
import type { WireFailure } from "./failure.ts";
import { recordIn } from "./fields.ts";

/** A change to a request: a parameter omitted, renamed or limited. */
export type Change = { without: string } | { rename: string; to: string } | { cap: string; at: number };

/** Parameters that the runtime adds by guessing from a model's name, and that a provider may refuse. */
const OPTIONAL = new Set([
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "reasoning_effort",
  "reasoning",
  "include",
  "stream_options",
  "parallel_tool_calls",
  "tool_choice",
  "store",
  "prompt_cache_key",
  "prompt_cache_retention",
  "truncation",
  "text",
  "verbosity",
  "metadata",
  "user",
  "service_tier",
  "snippy",
  "thinking",
  "output_config",
  "context_management",
  "cache_control",
]);
const OUTPUT_LIMITS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
const SAMPLING = ["temperature", "top_p", "frequency_penalty", "presence_penalty"];
const REASONING = ["reasoning_effort", "reasoning", "include"];

/** OpenAI's model families, which refuse each other's parameters; a publisher's name may precede them. */
const REASONS = /^(?:o\d|gpt-5(?!.*chat)|codex)/i;
const DOES_NOT_REASON = /^(?:gpt-4|gpt-3\.5|chatgpt|gpt-5.*chat)/i;

/** A request with the parameters that this model accepts. */
export function fitted(
  wire: Wire,
  body: Body,
  { lessons, reasons, maxOutput }: { lessons: readonly Change[]; reasons: boolean | undefined; maxOutput: number },
): Body {
  const family = body.model.slice(body.model.lastIndexOf("/") + 1);
  const thinks = reasons ?? (REASONS.test(family) ? true : DOES_NOT_REASON.test(family) ? false : undefined);
  const unwanted = wire === "messages" || thinks === undefined ? [] : thinks ? SAMPLING : REASONING;
  const request: Record<string, unknown> = { ...body };
  for (const name of unwanted) delete request[name];
  for (const change of lessons) {
    if ("without" in change) remove(request, change.without);
    else if ("cap" in change) cap(request, change.cap, change.at);
    else if (change.rename in request) {
      request[change.to] = request[change.rename];
      delete request[change.rename];
    }
  }
  for (const name of OUTPUT_LIMITS) cap(request, name, maxOutput);
  return request as Body;
}

function cap(request: Record<string, unknown>, name: string, most: number): void {
  const value = request[name];
  if (typeof value === "number" && value > most) request[name] = most;
}

/** What a refusal teaches about a request's parameters, if anything. */
export function lessonIn({ status, message, param }: WireFailure, body: Body): Change | undefined {
  if (status !== 400 && status !== 404 && status !== 422) return undefined;
  const instead = /'(max_tokens|max_completion_tokens)'[\s\S]*?[Uu]se '(max_tokens|max_completion_tokens)' instead/.exec(message);
  if (instead?.[1] && instead[2] && instead[1] in body) return { rename: instead[1], to: instead[2] };
  const most = Number(/max_tokens: \d+ > (\d+)|at most (\d+) (?:completion|output) tokens/.exec(message)?.slice(1).find(Boolean));
  const limit = OUTPUT_LIMITS.find((name) => typeof body[name] === "number" && (body[name] as number) > most);
  if (limit) return { cap: limit, at: most };
  const quoted = [
    ...message.matchAll(/[`'"]([a-z_][a-z_.]*)[`'"]|(?:supplied|parameters?|argument|field):?\s+([a-z_][a-z_.]*)/gi),
  ];
  const leading = /^([a-z_][a-z_.]*): /.exec(message)?.[1];
  const named = [param, leading, ...quoted.map((match) => match[1] ?? match[2])];
  for (const name of named) {
    const path = name?.replace(/^body\./, "").replace(/\[\d*\]/g, "");
    if (path && has(body, path) && OPTIONAL.has(path.split(".")[0] ?? "")) return { without: path };
  }
  if (/encrypted content/i.test(message) && "include" in body) return { without: "include" };
  return undefined;
}

function has(body: Record<string, unknown>, path: string): boolean {
  const [name = "", ...rest] = path.split(".");
  if (!(name in body)) return false;
  return rest.length === 0 || has(recordIn(body[name]), rest.join("."));
}

/** Removes a parameter, or a nested one and whatever becomes empty. */
function remove(body: Record<string, unknown>, path: string): void {
  const [name = "", ...rest] = path.split(".");
  if (!(name in body)) return;
  if (rest.length === 0) {
    delete body[name];
    return;
  }
  const inner = { ...recordIn(body[name]) };
  remove(inner, rest.join("."));
  if (Object.keys(inner).length === 0) delete body[name];
  else body[name] = inner;
}
