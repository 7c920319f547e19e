import type { Context } from "hono";
import { newId } from "../../lib/ids.ts";
import { type Message, shownFailure } from "../../protocol/messages.ts";
import type { Usage } from "../../protocol/usage.ts";
import { connectionOf, type Env } from "./connection.ts";
import { errorObject, OpenAiError } from "./errors.ts";
import type { Light } from "./light.ts";
import { readChat, type Wanted } from "./request.ts";
import { eventStream } from "./sse.ts";
import type { Hints, TurnListener, Turns } from "./turns.ts";

export interface ChatDeps {
  turns: Turns;
  light: Light;
}

interface Answer {
  text: string;
  usage: Usage;
}

/** `POST /v1/chat/completions`. */
export function createChat({ turns, light }: ChatDeps) {
  return async (context: Context<Env>, body: unknown, hints: Hints): Promise<Response> => {
    const wanted = readChat(body);
    const connection = connectionOf(context);
    if (wanted.model === "io-light") {
      const ask = ({ onText }: TurnListener) => light(wanted, { signal: connection.gone, onText });
      return answer(context, wanted, { id: newId("chatcmpl"), headers: {}, ask });
    }
    const message = await turns.begin(wanted, hints);
    const release = turns.hold(message);
    connection.onEnd((hasLeft) => {
      release(hasLeft);
      if (!hasLeft) turns.answered(message.id);
    });
    const ask = async (listener: TurnListener) => answerIn(await turns.follow(message, listener));
    return answer(context, wanted, { id: `chatcmpl-${message.id}`, headers: messageHeaders(message), ask });
  };
}

interface Asked {
  id: string;
  headers: Record<string, string>;
  ask: (listener: TurnListener) => Promise<Answer>;
}

async function answer(context: Context, { model, stream, withUsage }: Wanted, { id, headers, ask }: Asked): Promise<Response> {
  const created = Math.floor(Date.now() / 1000);
  if (!stream) {
    const { text, usage } = await ask({ onText: () => undefined, onNote: () => undefined });
    const message = { role: "assistant", content: text, refusal: null, annotations: [] };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
    return context.json({ id, object: "chat.completion", created, model, choices, usage: usageOf(usage) }, 200, headers);
  }
  return eventStream(context, headers, async ({ send, done }) => {
    const base = { id, object: "chat.completion.chunk", created, model };
    const chunk = (delta: object, finish: string | null = null) =>
      send({
        ...base,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        ...(withUsage && { usage: null }),
      });
    chunk({ role: "assistant", content: "" });
    try {
      const { usage } = await ask({
        onText: (content) => chunk({ content }),
        onNote: (note) => chunk({ reasoning_content: note }),
      });
      chunk({}, "stop");
      if (withUsage) send({ ...base, choices: [], usage: usageOf(usage) });
      done();
    } catch (error) {
      send(errorObject(asOpenAiError(error)));
    }
  });
}

/** The answer of a finished message; throws if it failed. */
export function answerIn(message: Message): Answer {
  const failure = shownFailure(message);
  if (failure !== undefined) throw new OpenAiError(502, failure, message.error?.code ?? message.status);
  return { text: message.reply ?? "", usage: message.usage };
}

export const asOpenAiError = (error: unknown): OpenAiError =>
  error instanceof OpenAiError ? error : new OpenAiError(500, "Something went wrong inside IO.", "internal");

export const messageHeaders = ({ id, conversation }: Message) => ({ "x-io-conversation": conversation, "x-io-message": id });

function usageOf({ inputTokens, outputTokens, cacheReadTokens }: Usage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cacheReadTokens },
  };
}
