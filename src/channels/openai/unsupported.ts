import { isRecord } from "../../lib/is-record.ts";
import { badRequest } from "./errors.ts";

type Body = Record<string, unknown>;

/** A parameter that promises another answer than IO gives, so that a client would misread what it gets. */
interface Unsupported {
  param: string;
  isAsked: (body: Body) => boolean;
  why: string;
}

const IN_WORDS = "IO answers in words and cannot promise a format. Leave it out, and ask for the format in the message.";
const NO_LIKELIHOODS = "IO does not know how likely the words of an answer were.";

const isOtherThanText = (format: unknown) => isRecord(format) && format.type !== "text";
const isGiven = (value: unknown) => value !== undefined && value !== null;

const IN_CHAT: readonly Unsupported[] = [
  { param: "response_format", isAsked: ({ response_format }) => isOtherThanText(response_format), why: IN_WORDS },
  {
    param: "logprobs",
    isAsked: ({ logprobs, top_logprobs }) => logprobs === true || Number(top_logprobs) > 0,
    why: NO_LIKELIHOODS,
  },
  {
    param: "modalities",
    isAsked: ({ modalities }) => Array.isArray(modalities) && modalities.some((each) => each !== "text"),
    why: "IO answers in text alone.",
  },
  {
    param: "function_call",
    isAsked: ({ function_call }) => isRecord(function_call),
    why: "IO uses its own tools and calls none of a client's, so it cannot be made to call one.",
  },
];

const IN_RESPONSES: readonly Unsupported[] = [
  { param: "text.format", isAsked: ({ text }) => isRecord(text) && isOtherThanText(text.format), why: IN_WORDS },
  { param: "top_logprobs", isAsked: ({ top_logprobs }) => Number(top_logprobs) > 0, why: NO_LIKELIHOODS },
  {
    param: "conversation",
    isAsked: ({ conversation }) => isGiven(conversation),
    why: "IO keeps no conversations of OpenAI's. Give previous_response_id, or name one of IO's in the header X-IO-Conversation.",
  },
  { param: "prompt", isAsked: ({ prompt }) => isGiven(prompt), why: "IO keeps no prompt templates. Send the text as input." },
];

/** Refuses what would be ignored in silence, as OpenAI refuses it for a model that cannot do it. */
function refuse(parameters: readonly Unsupported[], body: Body): void {
  const found = parameters.find(({ isAsked }) => isAsked(body));
  if (found) throw unsupported(found.param, found.why);
}
export const unsupported = (param: string, why: string) =>
  badRequest(param, `is not supported here: ${why}`, "unsupported_parameter");
export const refuseInChat = (body: Body): void => refuse(IN_CHAT, body);
export const refuseInResponses = (body: Body): void => refuse(IN_RESPONSES, body);
