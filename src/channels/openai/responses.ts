import type { Context } from "hono";
import { newId } from "../../lib/ids.ts";
import { type Message, shownFailure } from "../../protocol/messages.ts";
import type { Usage } from "../../protocol/usage.ts";
import { answerIn, asOpenAiError, messageHeaders } from "./chat.ts";
import { connectionOf, type Env } from "./connection.ts";
import { OpenAiError } from "./errors.ts";
import type { Light } from "./light.ts";
import { type Model, readResponses, type Wanted } from "./request.ts";
import { eventStream } from "./sse.ts";
import type { Hints, TurnListener, Turns } from "./turns.ts";
import { unsupported } from "./unsupported.ts";

export interface ResponsesDeps {
  turns: Turns;
  light: Light;
}

type Status = "queued" | "in_progress" | "completed" | "failed" | "cancelled";

/** The current state of a response. */
interface Shown {
  id: string;
  model: Model;
  status: Status;
  createdAt: number;
  text: string;
  usage?: Usage;
  error?: { code: string; message: string };
  previous?: string | undefined;
  background?: boolean;
  metadata?: Record<string, unknown>;
}

/** `POST /v1/responses`. */
export function createResponses({ turns, light }: ResponsesDeps) {
  return async (context: Context<Env>, body: unknown, hints: Hints): Promise<Response> => {
    const wanted = readResponses(body, turns.replyOf);
    const connection = connectionOf(context);
    const { previous, background, metadata } = wanted;
    const given = { model: wanted.model, previous, background, metadata };
    if (wanted.model === "io-light") {
      if (background) throw new OpenAiError(400, "background: io-light keeps nothing to come back for.", null, "background");
      const shown: Shown = { id: `resp_${newId("light")}`, status: "in_progress", createdAt: now(), text: "", ...given };
      const ask = ({ onText }: TurnListener) => light(wanted, { signal: connection.gone, onText });
      return answer(context, wanted, shown, { headers: {}, ask });
    }
    const message = await turns.begin(wanted, hints);
    const shown: Shown = { ...shownOf(message), ...given };
    const headers = messageHeaders(message);
    if (background && !wanted.stream) return context.json(responseObject(shown), 200, headers);
    const release = turns.hold(message);
    connection.onEnd((hasLeft) => {
      // Background requests continue without a client.
      release(hasLeft && !background);
      if (!hasLeft) turns.answered(message.id);
    });
    const ask = async (listener: TurnListener) => answerIn(await turns.follow(message, listener));
    return answer(context, wanted, { ...shown, status: "in_progress", text: "" }, { headers, ask });
  };
}

/** `GET /v1/responses/:id`: its state, or with `stream` its events from the beginning. A client that leaves cancels nothing. */
export function createRetrieval({ turns }: Pick<ResponsesDeps, "turns">) {
  return (context: Context<Env>, message: Message): Response => {
    const shown = { ...shownOf(message), ...turns.fieldsOf(message.id) };
    const headers = messageHeaders(message);
    if (context.req.query("stream") !== "true") return context.json(responseObject(shown), 200, headers);
    if (context.req.query("starting_after") !== undefined)
      throw unsupported("starting_after", "IO streams a response from its beginning. Leave it out.");
    const ask = async (listener: TurnListener) => {
      if (message.finishedAt === null) return answerIn(await turns.follow(message, listener));
      const answered = answerIn(message);
      listener.onText(answered.text);
      return answered;
    };
    return streamed(context, { ...shown, status: "in_progress", text: "" }, { headers, ask });
  };
}

interface Asked {
  headers: Record<string, string>;
  ask: (listener: TurnListener) => Promise<{ text: string; usage: Usage }>;
}

async function answer(context: Context, { stream }: Wanted, shown: Shown, asked: Asked): Promise<Response> {
  if (stream) return streamed(context, shown, asked);
  const done = await asked.ask({ onText: () => undefined, onNote: () => undefined });
  return context.json(responseObject({ ...shown, ...done, status: "completed" }), 200, asked.headers);
}

function streamed(context: Context, shown: Shown, { headers, ask }: Asked): Response {
  return eventStream(context, headers, async ({ send }) => {
    let number = 0;
    const tell = (type: string, data: object) => {
      send({ type, sequence_number: number, ...data }, type);
      number += 1;
    };
    tell("response.created", { response: responseObject(shown) });
    tell("response.in_progress", { response: responseObject(shown) });
    const item = itemOf({ ...shown, status: "in_progress" });
    const place = { item_id: item.id, output_index: 0, content_index: 0 };
    tell("response.output_item.added", { output_index: 0, item: { ...item, content: [] } });
    tell("response.content_part.added", { ...place, part: partOf("") });
    let text = "";
    try {
      const { usage } = await ask({
        onText(delta) {
          text += delta;
          tell("response.output_text.delta", { ...place, delta, logprobs: [] });
        },
        onNote: () => undefined,
      });
      const done: Shown = { ...shown, status: "completed", text, usage };
      tell("response.output_text.done", { ...place, text, logprobs: [] });
      tell("response.content_part.done", { ...place, part: partOf(text) });
      tell("response.output_item.done", { output_index: 0, item: itemOf(done) });
      tell("response.completed", { response: responseObject(done) });
    } catch (error) {
      const { code, message } = asOpenAiError(error);
      const failed: Shown = { ...shown, status: "failed", text, error: { code: code ?? "failed", message } };
      tell("response.failed", { response: responseObject(failed) });
    }
  });
}

/** A message as the response that its client sees. */
export function shownOf(message: Message): Shown {
  const { id, status, reply, usage, createdAt } = message;
  const failure = shownFailure(message);
  return {
    id: `resp_${id}`,
    model: "io",
    status: STATUS[status],
    createdAt: Math.floor(Date.parse(createdAt) / 1000),
    text: reply ?? "",
    ...(message.finishedAt !== null && { usage }),
    ...(failure !== undefined && { error: { code: message.error?.code ?? status, message: failure } }),
  };
}

const STATUS: Record<Message["status"], Status> = {
  queued: "queued",
  running: "in_progress",
  done: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** OpenAI's error code for everything that is not the client's fault. */
const SERVER_ERROR = "server_error";

export function responseObject(shown: Shown) {
  const { id, model, status, createdAt, text, usage, error, previous, background = false, metadata = {} } = shown;
  return {
    ...{ id, object: "response", created_at: createdAt, status, background, model, metadata },
    error: status === "failed" && error ? { code: SERVER_ERROR, message: error.message } : null,
    incomplete_details: null,
    instructions: null,
    output: text === "" ? [] : [itemOf(shown)],
    output_text: text,
    previous_response_id: previous ?? null,
    ...{ parallel_tool_calls: true, temperature: null, top_p: null, tool_choice: "auto", tools: [] },
    text: { format: { type: "text" } },
    usage: usage ? usageOf(usage) : null,
  };
}

const itemOf = ({ id, status, text }: Pick<Shown, "id" | "status" | "text">) => ({
  id: id.replace(/^resp_/, "msg_"),
  type: "message",
  role: "assistant",
  status: status === "in_progress" || status === "completed" ? status : "incomplete",
  content: [partOf(text)],
});

const partOf = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const now = () => Math.floor(Date.now() / 1000);

function usageOf({ inputTokens, outputTokens, cacheReadTokens }: Usage) {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cacheReadTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}
