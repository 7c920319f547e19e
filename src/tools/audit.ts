import { createHash } from "node:crypto";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Redactor } from "../lib/redact.ts";
import type { ToolCallEnd } from "../store/tool-calls.ts";

/** How many characters are kept of a single text in the arguments. */
const LONG_TEXT = 5_000;

/** How arguments and results are recorded in the journal of calls. */
export interface Audit {
  /** The arguments, redacted and shortened, and a hash of them as they were given. */
  args(args: unknown): { args: string; argsHash: string };
  outcome(state: ToolCallEnd["state"], text: string, durationMs: number): ToolCallEnd;
}

/** Keeps at most `keep` characters of the arguments, and of a result. */
export function createAudit(redactor: Redactor, keep: number): Audit {
  return {
    args: (args) => ({
      args: shorten(redactor.clean(canonical(clipped(args, redactor))), keep),
      argsHash: sha256(canonical(args)),
    }),
    outcome: (state, text, durationMs) => ({ state, result: shorten(text, keep), resultHash: sha256(text), durationMs }),
  };
}

/** Equal arguments give equal text. */
export const canonical = (value: unknown): string => canonicalJson(value) ?? "null";

/** Shortens each long text, so that it does not crowd out the others. */
function clipped(value: unknown, redactor: Redactor): unknown {
  if (typeof value === "string") return value.length <= LONG_TEXT ? value : shorten(redactor.clean(value), LONG_TEXT);
  if (Array.isArray(value)) return value.map((part) => clipped(part, redactor));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, clipped(part, redactor)]));
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function shorten(text: string, limit: number): string {
  return text.length <= limit
    ? text
    : `${text.slice(0, limit)}\n… (shortened: ${text.length - limit} of ${text.length} characters left out)`;
}
