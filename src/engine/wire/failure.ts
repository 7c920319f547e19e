/** Whose fault a failed model call is. */
export type Fault =
  /** No response: name, connection, certificate, proxy. */
  | "network"
  /** The provider refused, or its response was broken. */
  | "provider"
  /** The conversation does not fit into the model's window. */
  | "too long"
  /** The call was forbidden and not made. */
  | "held back"
  /** IO itself failed. */
  | "ours";

/** A failed model call, with the provider's own message if there is one. */
export class WireFailure extends Error {
  override readonly name = "WireFailure";
  readonly fault: Fault;
  readonly status: number;
  readonly code: string | undefined;
  /** The refused parameter, if the provider names it. */
  readonly param: string | undefined;
  readonly headers: Record<string, string>;

  constructor(
    message: string,
    {
      fault = "provider",
      status,
      code,
      param,
      headers = {},
    }: {
      fault?: Fault;
      status: number;
      code?: string | undefined;
      param?: string | undefined;
      headers?: Record<string, string>;
    },
  ) {
    super(message);
    this.fault = fault;
    this.status = status;
    this.code = code;
    this.param = param;
    this.headers = headers;
  }
}

/** The status in a web page that came instead of an answer. */
export const PAGE = "web_page";

/** How known providers say that a conversation does not fit. */
const TOO_LONG =
  /context_length_exceeded|exceed_context_size|maximum context length|context (?:length|window|size)|prompt is too long|input is too long|too many (?:input )?tokens|reduce the length of|exceeds? the (?:available |maximum )?context|string_above_max_length|model_max_prompt_tokens_exceeded|tokens_limit_reached|request_too_large.*token/i;

/** Parses a refusal of any known shape: message, code and parameter. */
export function readRefusal(status: number, text: string, headers: Record<string, string> = {}): WireFailure {
  const { message, code, param } = wordsOf(text, status);
  const isTooLong = status !== 429 && (TOO_LONG.test(code ?? "") || (status < 500 && TOO_LONG.test(message)));
  return new WireFailure(message, { status, code, param, headers, ...(isTooLong && { fault: "too long" }) });
}

/** Whether an account has no credit left. Some providers call that a rate limit. */
export function isUnpaid({ status, code = "", message }: WireFailure): boolean {
  return status === 402 || (status === 429 && /insufficient_quota|billing/i.test(`${code} ${message}`));
}

/** Whether a retry would fail again, although the status suggests otherwise. */
export function isHopeless(failure: WireFailure): boolean {
  const waits = failure.status === 429 && Number(failure.headers["retry-after"]) > LONG_WAIT_S;
  return waits || isUnpaid(failure) || /requires --jinja/.test(failure.message);
}
const LONG_WAIT_S = 60;

/** Whether the runtime retries by itself. */
export function mayPass(failure: WireFailure): boolean {
  const { fault, status } = failure;
  return fault === "network" || (fault === "provider" && (status === 429 || status >= 500) && !isHopeless(failure));
}

/** The window in tokens that a refusal for length mentions. */
export function windowIn(message: string): number | undefined {
  const named =
    /maximum context length (?:is|of) (\d[\d,]*)/i.exec(message) ??
    /tokens? > (\d[\d,]*) maximum/i.exec(message) ??
    /context (?:size|length|window)[^\d]{0,40}?(\d[\d,]*)/i.exec(message) ??
    /(?:limit (?:is|of)|max size:) (\d[\d,]*)/i.exec(message);
  const tokens = Number(named?.[1]?.replaceAll(",", ""));
  return tokens >= 256 ? tokens : undefined;
}

interface Words {
  message: string;
  code: string | undefined;
  param: string | undefined;
}

function wordsOf(text: string, status: number): Words {
  const plain = (message: string): Words => ({ message: message.slice(0, 2_000), code: undefined, param: undefined });
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    const title = /<title>([^<]{1,200})<\/title>/i.exec(text)?.[1]?.trim();
    if (title || /^\s*</.test(text))
      return { ...plain(`a web page came in place of an answer${title ? `: ${title}` : ""}`), code: PAGE };
    return plain(text.trim() || `HTTP ${status} without a word`);
  }
  const outer = (Array.isArray(parsed) ? parsed[0] : parsed) as Record<string, unknown> | null;
  const inner = outer?.error ?? outer?.detail ?? outer?.message ?? outer;
  if (typeof inner === "string") return { ...plain(inner), code: stringOf(outer?.code) ?? stringOf(outer?.type) };
  if (Array.isArray(inner)) {
    const first = inner[0] as { msg?: unknown; loc?: unknown[] } | undefined;
    return { ...plain(String(first?.msg ?? text)), param: stringOf(first?.loc?.at(-1)) };
  }
  if (typeof inner !== "object" || inner === null) return plain(text);
  const { message, msg, code, type, param } = inner as Record<string, unknown>;
  const raw = (inner as { metadata?: { raw?: unknown } }).metadata?.raw;
  const said = stringOf(message) ?? stringOf(msg) ?? text;
  return {
    ...plain(typeof raw === "string" && !said.includes(raw) ? `${said}: ${raw}` : said),
    code: stringOf(code) ?? stringOf(type),
    param: stringOf(param),
  };
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
