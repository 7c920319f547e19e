import { saysFull } from "../../lib/disk-room.ts";
import { ExitCode, UserError } from "../../lib/errors.ts";
import { namedList, oneLine, quoted } from "../../lib/quoted.ts";
import { withoutEnd } from "../../lib/trim.ts";
import type { TurnErrorCode, TurnResult } from "../../protocol/turns.ts";
import { noUsage } from "../../protocol/usage.ts";
import { isUnpaid, PAGE, type WireFailure } from "../wire/failure.ts";
import { type ModelFacts, nearestModels } from "./models.ts";

/** A failure as shown to people. `message` is the full text; `remedy`, if set, repeats its last part: what to do about it. */
export type TurnError = NonNullable<TurnResult["error"]> & { remedy?: string };

/** The required fields of a turn's result, for a turn in which the model said nothing. */
export function nothingSaid(): Pick<TurnResult, "text" | "usage" | "tools" | "served"> {
  return { text: "", usage: noUsage(), tools: [], served: [] };
}

/** The result of a turn that failed before the model said anything. */
export function failedTurn({ code, message, remedy }: TurnError): TurnResult {
  return { ...nothingSaid(), outcome: "failed", error: { code, message }, ...(remedy !== undefined && { remedy }) };
}

/** The names of the settings that a failure may be about, and where each is set, so that a person knows what to change. */
export interface SettingNames {
  address: string;
  key: string;
  model: string;
  /** What to do if the provider rejects the key. */
  keyAdvice?: string;
  /** The setting for the wire API, if the user configured the provider. */
  wireApi?: string;
}

/** A failure that the runtime reported. */
export interface RuntimeTrouble {
  statusCode?: number | undefined;
  errorType?: string | undefined;
  message: string;
  /** The provider's own message, if `message` is the runtime's. */
  detail?: string | undefined;
}

/** An invalid setting: what is wrong with it and what to do. */
export class SettingError extends UserError {
  readonly what: string;
  readonly remedy: string;
  constructor(what: string, remedy: string) {
    super(`${what} ${remedy}`, { exitCode: ExitCode.usage });
    this.what = what;
    this.remedy = remedy;
  }
}

/** What happened, and what to do about it. */
const ADVICE: Record<TurnErrorCode, [what: string, remedy?: string]> = {
  runtime_died: ["the agents' runtime ended and could not be brought back", "Try again; `io doctor` shows what is wrong."],
  runtime_failed: ["the agents' runtime could not do this", "Try again; `io doctor` shows what is wrong."],
  disk_full: ["the disk is full", "Free some space and try again."],
  session_gone: ["this conversation's session is no longer there", "Try again: a new one will be begun."],
  internal: ["IO itself made a mistake here", "Try again; `io logs` shows what it was."],
  rate_limited: ["the model's provider is limiting the rate (HTTP 429)", "Wait a little and try again, or use another model."],
  unauthorized: ["the model's provider did not accept the credentials"],
  unpaid: ["the account at the model's provider has no credit or quota left"],
  no_model: ["the model's provider does not have the model"],
  no_chat: ["the model is not one to talk with"],
  no_tools: ["the model cannot use tools, and IO works by tools"],
  too_large: ["this does not fit into the model's window", "Say it in fewer words, or use a model with a larger one."],
  refused: ["the model declined to answer this"],
  bad_request: ["the model's provider did not accept the request"],
  wrong_address: ["what answers at the provider's address is not a model's API"],
  failing: ["the model's provider is failing", "Try again later, or use another."],
  unreachable: ["no answer came from the model's provider"],
  no_answer: ["the model gave no answer", "Try again, or say it in other words."],
  timed_out: ["the model went silent for too long and the turn was ended"],
  too_long: ["it worked for longer than a turn may and was ended", "The limits are turnCapMs and taskCapMs in config.json."],
  budget: ["a budget is used up", "`io budget show` tells what is left of each, and `io budget set` raises one; then ask again."],
  aborted: ["the turn was stopped"],
};

/** Describes a failure for people, quoting the provider where that helps. */
export function turnError(code: TurnErrorCode, detail?: string, advice?: string): TurnError {
  const [what, usual] = ADVICE[code];
  const trimmed = detail && withoutEnd(oneLine(detail, 300), ". ");
  const remedy = advice ?? usual;
  const message = `${what}${trimmed ? ` (${trimmed})` : ""}.${remedy ? ` ${remedy}` : ""}`;
  return { code, message, ...(remedy !== undefined && { remedy }) };
}

/** Describes a failure of the provider or the network. */
export function callFailed(
  failure: WireFailure,
  model: string,
  names: SettingNames,
  available: readonly ModelFacts[] = [],
): TurnError {
  const { fault, status, code = "", message, headers } = failure;
  if (fault === "ours") return turnError("internal");
  if (fault === "held back") return turnError("budget", message);
  if (fault === "network") return turnError("unreachable", message, networkAdvice(failure, names));
  if (fault === "too long") return turnError("too_large", message);
  if (isUnpaid(failure)) return turnError("unpaid", `HTTP ${status}: ${message}`, unpaidAdvice(message, names));
  if (status === 429) {
    const wait = Number(headers["retry-after"]);
    return turnError("rate_limited", message, wait > 0 ? `It says to wait ${wait} s; or use another model.` : undefined);
  }
  if (status === 401 || status === 403) {
    const advice = names.keyAdvice ?? `Check the key: ${names.key}.`;
    const allowed = `The key is ${names.key}: see what it is allowed to do there, and whether it may use ${quoted(model)}.`;
    return turnError(
      "unauthorized",
      `HTTP ${status}: ${message}`,
      status === 401 ? advice : `${allowed} ${names.keyAdvice ?? ""}`.trim(),
    );
  }
  const about = `${quoted(model)}: ${message}`;
  const isOurs = status < 500 || /requires --jinja/.test(message);
  if (isOurs && NO_CHAT.test(message)) return turnError("no_chat", about, anotherModel(model, names, available));
  if (isOurs && (NO_MODEL_CODE.test(code) || NO_MODEL.test(message)))
    return turnError("no_model", about, missingAdvice(failure, model, names, available));
  if (isOurs && NO_TOOLS.test(message)) return turnError("no_tools", about, toolsAdvice(message, names));
  if (isOurs && OTHER_WIRE.test(message) && names.wireApi)
    return turnError("bad_request", about, `Set ${names.wireApi} to "responses".`);
  if (status === 404 || status === 405 || (status < 500 && (code === PAGE || /unexpected endpoint/i.test(message))))
    return turnError("wrong_address", code === PAGE ? message : `HTTP ${status}: ${message}`, addressAdvice(names));
  if (status < 500) return turnError("bad_request", `HTTP ${status}: ${message}`);
  return turnError("failing", `HTTP ${status}: ${message}`);
}

const NO_MODEL_CODE = /model_not_found|unknown_model|DeploymentNotFound/i;
const NO_MODEL =
  /\bmodel\b.*\b(?:not found|does not exist|not exist|is not available|unknown)|no such model|unknown model|not a valid model|^model: \S+$|deployment .*does not exist/i;
const NO_CHAT = /does not support chat|not a chat model|does not support (?:chat )?completions?\b/i;
const NO_TOOLS =
  /does not support (?:tools|function)|tool (?:use|calling) is not supported|support tool use|'tools' is not supported|enable-auto-tool-choice|requires --jinja/i;
const OTHER_WIRE = /only supported in v1\/responses|\/v1\/responses/i;

function networkAdvice({ code = "", message }: WireFailure, { address }: SettingNames): string {
  const proxy = /through the proxy/.test(message)
    ? " The proxy is set by provider.proxy, or by HTTPS_PROXY, HTTP_PROXY and ALL_PROXY."
    : "";
  const said: [RegExp, string][] = [
    [/ENOTFOUND/, `Correct the name in its address (${address}).`],
    [/EAI_|UNREACH|ENETDOWN/, "Check this machine's network."],
    [/ECONNREFUSED/, `Start it, or correct its address (${address}).`],
    [
      /WRONG_VERSION|EPROTO|PACKET_LENGTH/,
      `Write http:// in place of https:// in its address (${address}), or name the port that speaks TLS.`,
    ],
    [
      /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|TLS|SSL/,
      "Name the certificate of its authority with NODE_EXTRA_CA_CERTS, and restart IO.",
    ],
    [/HPE_|SOCKET|ECONNRESET|EPIPE/, `Try again. If it speaks TLS at that port, write https:// in its address (${address}).`],
    [
      /INVALID_ARG/,
      "A key or a header holds a character that cannot be sent: see provider.apiKey, the variable it is read from, and provider.headers.",
    ],
  ];
  const advice = said.find(([pattern]) => pattern.test(code))?.[1] ?? `Check that it runs, and its address (${address}).`;
  return advice + proxy;
}

function unpaidAdvice(message: string, { key }: SettingNames): string {
  const fewer = /fewer max_tokens|can only afford/i.test(message)
    ? ' Or let it answer less at once: "maxOutputTokens" for the model in provider.models.'
    : "";
  return `Add credit there, or use another key; this one is ${key}.${fewer}`;
}

function addressAdvice({ address }: SettingNames): string {
  return `Correct the address (${address}): most end in /v1, and \`io setup\` knows those of many providers.`;
}

function missingAdvice({ code = "" }: WireFailure, model: string, names: SettingNames, available: readonly ModelFacts[]): string {
  if (/Deployment/i.test(code))
    return `Azure asks by the deployment's name, not the model's: set it by ${names.model}, as the portal shows it.`;
  const isOllama = available.some(({ id }) => !id.includes("/") && /^[^:]+:[^:]/.test(id));
  return `${anotherModel(model, names, available)}${isOllama ? ` Or run "ollama pull ${oneLine(model, 120)}".` : ""}`;
}

function anotherModel(model: string, names: SettingNames, available: readonly ModelFacts[]): string {
  const near = nearestModels(model, available);
  const there = near.length > 0 ? ` There are: ${namedList(near, 20)}.` : "";
  return `Name another: the name is set by ${names.model}.${there}`;
}

function toolsAdvice(message: string, names: SettingNames): string {
  if (/enable-auto-tool-choice/.test(message))
    return "Start vLLM with --enable-auto-tool-choice and the --tool-call-parser of this model.";
  if (/--jinja/.test(message)) return "Start llama-server with --jinja.";
  return `Name another with ${names.model}, or set "tools": false for it in provider.models to talk without any.`;
}

/** The errors that a full disk can cause. */
const LOOKS_LIKE = new Set<TurnErrorCode>([
  "runtime_died",
  "runtime_failed",
  "session_gone",
  "no_answer",
  "timed_out",
  "internal",
]);

/** Whether a failure may come from a full disk. */
export const mayBeFullDisk = (code: TurnErrorCode): boolean => LOOKS_LIKE.has(code);

/** Describes a failure of the runtime itself, when no model call had failed. */
export function runtimeFailed({ message }: RuntimeTrouble): TurnError {
  if (saysFull(message)) return turnError("disk_full");
  if (/no response was returned/i.test(message)) return turnError("no_answer");
  if (/session not found|session file not found/i.test(message)) return turnError("session_gone");
  if (RUNTIME_GOES.test(message)) return turnError("runtime_died", message);
  return turnError("runtime_failed", message);
}

/** Errors of a runtime that is shutting down: the request itself was fine. */
const RUNTIME_GOES =
  /connection (?:is|was|got) (?:closed|disposed)|connection closed|(?:is|was) disposed|not connected|EPIPE|ECONNRESET|shutting down|shut down/i;
/** Errors of a session whose log is unusable. */
const RECORD_LOST = /corrupt|session (?:file )?not found|failed to (?:load|read|parse) session/i;

/** Why a session could not be resumed: the runtime is shutting down, its log is damaged, or unknown. */
export function resumeTrouble(message: string): "runtime" | "session" | "unknown" {
  if (RUNTIME_GOES.test(message)) return "runtime";
  return RECORD_LOST.test(message) ? "session" : "unknown";
}
