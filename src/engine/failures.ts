import type { TurnErrorCode, TurnResult } from "../protocol/turns.ts";
import type { WireFailure } from "./wire/failure.ts";

export type TurnError = NonNullable<TurnResult["error"]>;

/** The settings that a failure may be about, by name and place, so that a person knows what to change. */
export interface SettingNames {
  address: string;
  key: string;
  model: string;
}

/** What the runtime told of something that went wrong. */
export interface RuntimeTrouble {
  statusCode?: number | undefined;
  errorType?: string | undefined;
  message: string;
  /** What the provider itself said, where the message above is the runtime's. */
  detail?: string | undefined;
}

const ADVICE: Record<TurnErrorCode, string> = {
  runtime_died: "the agents' runtime ended and could not be brought back. Try again; `io doctor` shows what is wrong",
  runtime_failed: "the agents' runtime could not do this. Try again; `io doctor` shows what is wrong",
  session_gone: "this conversation's session is no longer there. Try again: a new one will be begun",
  rate_limited: "the model's provider is limiting the rate (HTTP 429). Wait a little and try again, or use another model",
  unauthorized: "the model's provider did not accept the credentials",
  unpaid: "the model's provider wants to be paid first (HTTP 402): the account has no credit or quota left",
  no_model: "the model's provider does not have the model",
  no_tools: "the model cannot use tools, and IO works by tools",
  too_large: "this does not fit into the model's window. Say it in fewer words, or use a model with a larger one",
  refused: "the model declined to answer this",
  bad_request: "the model's provider did not accept the request",
  failing: "the model's provider is failing. Try again later, or use another",
  unreachable: "no answer came from the model's provider",
  no_answer: "the model gave no answer. Try again, or say it in other words",
  timed_out: "the model went silent for too long and the turn was ended",
  too_long: "it worked for longer than a turn may and was ended; the limits are turnCapMs and taskCapMs in config.json",
  aborted: "the turn was stopped",
};

/** A failure in words for a person, with the provider's own words where they add something. */
export function turnError(code: TurnErrorCode, detail?: string, remedy?: string): TurnError {
  const trimmed = detail
    ?.replace(/\s+/g, " ")
    .trim()
    .slice(0, 300)
    .toWellFormed()
    .replace(/[.\s]+$/, "");
  return { code, message: `${ADVICE[code]}${trimmed ? ` (${trimmed})` : ""}.${remedy ? ` ${remedy}` : ""}` };
}

/** Sorts what a provider or the network did into what the person can do about it. */
export function callFailed({ fault, status, code, message }: WireFailure, model: string, names: SettingNames): TurnError {
  if (fault === "network")
    return turnError("unreachable", message, `Check that it runs and its address (${names.address}); \`io doctor\` tests it.`);
  if (fault === "too long") return turnError("too_large", message);
  if (status === 429) return turnError("rate_limited", message);
  if (status === 402) return turnError("unpaid", message, `The key is ${names.key}.`);
  if (status === 401 || status === 403)
    return turnError("unauthorized", `HTTP ${status}: ${message}`, `Check the key (${names.key}); \`io doctor\` tests it.`);
  if (
    /model_not_found|DeploymentNotFound/i.test(code ?? "") ||
    (status < 500 &&
      /\bmodel\b.*\b(?:not found|does not exist|not exist|is not available|unknown)|no such model|deployment .*does not exist/i.test(
        message,
      ))
  )
    return turnError(
      "no_model",
      `"${model}": ${message}`,
      `Its name is set by ${names.model}; \`io doctor\` lists what is there.`,
    );
  if (
    status < 500 &&
    /does not support (?:tools|function)|tool (?:use|calling) is not supported|enable-auto-tool-choice/i.test(message)
  )
    return turnError(
      "no_tools",
      `"${model}": ${message}`,
      `Name another with ${names.model}, or set "tools": false for it in provider.models to talk without any.`,
    );
  if (status === 404) return turnError("bad_request", `HTTP 404: ${message}`, `Check the address (${names.address}).`);
  if (status < 500) return turnError("bad_request", `HTTP ${status}: ${message}`);
  return turnError("failing", `HTTP ${status}: ${message}`);
}

/** What the runtime said when no call to a model had failed: it is the runtime's own trouble. */
export function runtimeFailed({ message }: RuntimeTrouble): TurnError {
  if (/no response was returned/i.test(message)) return turnError("no_answer");
  if (/session not found|session file not found/i.test(message)) return turnError("session_gone");
  if (/connection is closed|EPIPE|not connected|connection got disposed/i.test(message))
    return turnError("runtime_died", message);
  return turnError("runtime_failed", message);
}
