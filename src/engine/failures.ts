import type { TurnErrorCode, TurnResult } from "../protocol/turns.ts";

export type TurnError = NonNullable<TurnResult["error"]>;

/** What the runtime told about a model call that went wrong. */
export interface CallFailure {
  statusCode?: number | undefined;
  errorType?: string | undefined;
  message: string;
  /** What the provider itself said, where the message above is the runtime's. */
  detail?: string | undefined;
}

const ADVICE: Record<TurnErrorCode, string> = {
  runtime_died: "the agents' runtime ended and could not be brought back. Try again; `io doctor` shows what is wrong",
  session_gone: "this conversation's session is no longer there. Try again: a new one will be begun",
  rate_limited: "the model's provider is limiting the rate (HTTP 429). Wait a little and try again, or use another model",
  unauthorized:
    "the model's provider did not accept the credentials. Check the API key or the login, then try again; `io doctor` tests them",
  refused: "the model's provider refused to answer this",
  bad_request: "the model's provider did not accept the request",
  unreachable:
    "the model's provider could not be reached or is failing. Check its address and that it runs; `io doctor` tests it",
  no_answer: "the model gave no answer. Try again, or say it in other words",
  timed_out: "the model went silent for too long and the turn was ended",
  too_long: "it worked for longer than a turn may and was ended; the limits are turnCapMs and taskCapMs in config.json",
  aborted: "the turn was stopped",
};

/** A failure in words for a person, with the provider's own words where they add something. */
export function turnError(code: TurnErrorCode, detail?: string): TurnError {
  const trimmed = detail?.replace(/\s+/g, " ").trim().slice(0, 300);
  return { code, message: `${ADVICE[code]}${trimmed ? ` (${trimmed})` : ""}.` };
}

/** Sorts what the runtime reported into what the person can do about it. */
export function classify({ statusCode, errorType, message }: CallFailure): TurnError {
  if (statusCode === 429 || errorType === "rate_limit" || errorType === "quota") return turnError("rate_limited", message);
  if (statusCode === 401 || statusCode === 403 || errorType === "authentication" || errorType === "authorization")
    return turnError("unauthorized", message);
  if (/no response was returned/i.test(message)) return turnError("no_answer");
  if (/session not found|session file not found/i.test(message)) return turnError("session_gone");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return turnError("bad_request", message);
  if (/content.?filter/i.test(message)) return turnError("refused", message);
  if (/connection is closed|EPIPE|not connected|connection got disposed/i.test(message))
    return turnError("runtime_died", message);
  return turnError("unreachable", message);
}
