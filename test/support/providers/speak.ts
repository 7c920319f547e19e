import type { Act, Answer, Asked } from "./act.ts";
import type { Ask } from "./core.ts";
import { layOut, type Plan } from "./plan.ts";
import type { Reply, StreamEvent } from "./reply.ts";

/** A refusal, before a provider puts it into its own format. */
export interface Fault {
  status: number;
  message: string;
  type?: string;
  code?: string | number | null;
  param?: string | null;
  headers?: Record<string, string>;
  /** Additional fields of the error, for providers that send some. */
  more?: Record<string, unknown>;
}

/** A provider's format on one of its wires. */
export interface Dialect {
  events(plan: Plan, asked: Asked): StreamEvent[];
  body(plan: Plan, asked: Asked): unknown;
  /** The body of an error. */
  error(fault: Fault): unknown;
  /** The provider's error when it is busy. */
  busy(kind: "rate" | "quota" | "overloaded", asked: Asked): Fault;
  newId(): string;
  headers?: Record<string, string>;
}

export function refuse(fault: Fault, dialect: Pick<Dialect, "error">): Reply {
  const { status, message, headers } = fault;
  return { kind: "json", status, body: dialect.error(fault), refusal: message, ...(headers && { headers }) };
}

/** Asks the script and encodes the result for the wire. */
export async function speak(asked: Asked, ask: Ask, dialect: Dialect): Promise<Reply> {
  const act = await ask(asked);
  if (!isAnswer(act)) return failWith(act, asked, dialect);
  const plan = layOut(act, asked, dialect.newId);
  const wire = act.wire ?? {};
  const headers = dialect.headers ? { headers: dialect.headers } : {};
  if (asked.stream && !wire.oneBody) {
    const end = typeof act.ends === "string" ? act.ends : "end";
    return { kind: "events", events: dialect.events(plan, asked), wire, end, ...headers };
  }
  if (act.ends === "stall") return { kind: "hang" };
  if (act.ends === "reset") return { kind: "reset" };
  if (plan.failure)
    return { kind: "json", status: 500, body: dialect.error({ status: 500, message: plan.failure.message }), ...headers };
  return { kind: "json", status: 200, body: dialect.body(plan, asked), ...headers };
}

type Failing = Exclude<Act, Answer>;

function isAnswer(act: Act): act is Answer {
  return !("busy" in act || "status" in act || "errorText" in act || "html" in act || "hang" in act || "reset" in act);
}

function failWith(act: Failing, asked: Asked, dialect: Dialect): Reply {
  if ("hang" in act) return { kind: "hang" };
  if ("reset" in act) return { kind: "reset" };
  if ("html" in act) return { kind: "text", status: act.html, text: pageOf(act.html), type: "text/html" };
  if ("errorText" in act) return { kind: "json", status: act.status ?? 200, body: { error: act.errorText } };
  if ("busy" in act) {
    const fault = dialect.busy(act.busy, asked);
    const wait = act.retryAfter === undefined ? {} : { "retry-after": String(act.retryAfter) };
    return refuse({ ...fault, headers: { ...fault.headers, ...wait } }, dialect);
  }
  return refuse(act, dialect);
}

function pageOf(status: number): string {
  const title = status === 502 ? "502 Bad Gateway" : `${status}`;
  const lines = ["<html>", `<head><title>${title}</title></head>`, "<body>", `<center><h1>${title}</h1></center>`];
  return [...lines, "<hr><center>nginx</center>", "</body>", "</html>", ""].join("\r\n");
}
