import { readRefusal, WireFailure } from "./failure.ts";
import { recordIn, textIn } from "./fields.ts";

/** The data of an event, which must be an object. */
export function parsed(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below, like any other malformed event.
  }
  throw new WireFailure(`the provider sent what is no event: ${data.slice(0, 200)}`, { status: 502 });
}

/** An error inside a stream, with its explicit or implied status. */
export function errorIn(data: Record<string, unknown>): WireFailure {
  const { code, status, type } = recordIn(data.error ?? data);
  const named = [code, status].map(Number).find((each) => each >= 400 && each < 600);
  const words = `${textIn(code)} ${textIn(type)}`;
  const meant = MEANT.find(([pattern]) => pattern.test(words))?.[1] ?? 400;
  return readRefusal(named ?? meant, JSON.stringify(data));
}

/** The status implied by an error's words, where it has no number. */
const MEANT: [RegExp, number][] = [
  [/rate_limit/, 429],
  [/overloaded|server_error|api_error|internal|unavailable|timeout/, 503],
  [/authentication/, 401],
  [/permission/, 403],
  [/billing|insufficient_quota/, 402],
  [/not_found/, 404],
];
