import { createCalls } from "./calls.ts";
import {
  type Assembler,
  type Dialect,
  type Item,
  isSpoken,
  listIn,
  noTokens,
  numberIn,
  recordIn,
  textIn,
  withoutTools,
} from "./dialect.ts";
import { readRefusal, WireFailure } from "./failure.ts";
import { createLetters, writeEvent } from "./stream.ts";
import { createThoughts } from "./thinking.ts";

/** OpenAI's chat completions, which most providers speak, each a little differently. */
export const completions: Dialect = {
  assemble,
  unstreamed({ choices, ...rest }) {
    const events = listIn(choices).map((each) => {
      const { message, ...choice } = recordIn(each);
      const calls = listIn(recordIn(message).tool_calls).map((call, index) => ({ index, ...recordIn(call) }));
      return { ...choice, delta: { ...recordIn(message), ...(calls.length > 0 && { tool_calls: calls }) } };
    });
    return [{ event: undefined, data: JSON.stringify({ ...rest, choices: events }) }];
  },
  items: (body) => listIn(body.messages).filter(isSpoken).map(itemOf),
  withItems: (body, raw) => ({ ...body, messages: [...listIn(body.messages).filter((each) => !isSpoken(each)), ...raw] }),
  said: (role, text) => ({ role, content: text }),
  question: (body, system, text) => ({
    ...withoutTools(body),
    messages: [
      { role: "system", content: system },
      { role: "user", content: text },
    ],
  }),
  shortened(raw, cut) {
    const { role, content } = recordIn(raw);
    return role === "tool" && typeof content === "string" ? { ...recordIn(raw), content: cut(content) } : raw;
  },
};

function itemOf(raw: unknown): Item {
  const { role, content, tool_calls } = recordIn(raw);
  const said =
    typeof content === "string"
      ? content
      : listIn(content)
          .map((part) => textIn(recordIn(part).text))
          .join("");
  const calls = listIn(tool_calls).map((call) => {
    const { name, arguments: args } = recordIn(recordIn(call).function);
    return `[calls ${textIn(name)} ${textIn(args)}]`;
  });
  const kind = role === "assistant" || role === "tool" ? role : "user";
  return { role: kind, text: [said, ...calls].filter(Boolean).join("\n"), raw };
}

function assemble(): Assembler {
  const letters = createLetters();
  const calls = createCalls();
  let thoughts = createThoughts();
  /** What was held back at the end of a stream and is sent with what comes next. */
  let unsent = { thought: "", answer: "" };
  let streams = 0;
  let head: Record<string, unknown> = { id: "answer", object: "chat.completion.chunk", created: 0, model: "" };
  let text = "";
  let refusal = "";
  let finish: string | undefined;
  let isDone = false;
  let tokens = noTokens();
  let usageOfFirst: unknown;
  let model: string | undefined;
  let previous = "";

  const chunk = (delta: object, reason: string | null = null) =>
    writeEvent({ ...head, choices: [{ index: 0, delta, finish_reason: reason }] });

  const spoken = (piece: string): { content?: string; reasoning_content?: string } => {
    const pushed = thoughts.push(letters.push(piece));
    text += pushed.answer;
    const thought = unsent.thought + pushed.thought;
    const answer = unsent.answer + pushed.answer;
    unsent = { thought: "", answer: "" };
    return { ...(answer && { content: answer }), ...(thought && { reasoning_content: thought }) };
  };

  return {
    text: () => text,
    take({ data }) {
      if (data === "[DONE]") {
        isDone = true;
        return [];
      }
      const { choices, usage, error, ...rest } = parsed(data);
      if (error !== undefined && error !== null) throw errorIn({ error });
      if (typeof rest.model === "string" && rest.model) model = rest.model;
      head = { ...head, ...rest };
      if (usage !== undefined && usage !== null) {
        const { prompt_tokens, completion_tokens, prompt_tokens_details } = recordIn(usage);
        tokens = {
          input: numberIn(prompt_tokens),
          output: numberIn(completion_tokens),
          cached: numberIn(recordIn(prompt_tokens_details).cached_tokens),
        };
        // Some count on with every piece.
        if (streams === 0) usageOfFirst = usage;
      }
      const choice = listIn(choices)
        .map(recordIn)
        .find(({ index }) => index === undefined || index === 0);
      if (!choice) return [];
      if (typeof choice.finish_reason === "string") finish = choice.finish_reason;
      const { content, refusal: refused, tool_calls, finish_reason: _, ...others } = recordIn(choice.delta ?? choice.message);
      const declined = textIn(refused);
      refusal += declined;
      const pieces = typeof content === "string" ? [content] : listIn(content).map((part) => textIn(recordIn(part).text));
      const said = spoken(pieces.join("") + declined);
      const told = calls.take(listIn(tool_calls));
      const delta = { ...others, ...said, ...(told.length > 0 && { tool_calls: told }) };
      return Object.keys(delta).length > 0 ? [chunk(delta)] : [];
    },
    ended() {
      if (finish === undefined && !isDone)
        throw new WireFailure("the answer broke off before its end", { status: 502, fault: "network" });
      // What continues the answer may begin with thoughts of its own.
      unsent = thoughts.rest();
      thoughts = createThoughts();
      text += unsent.answer;
      const cut = finish === "length" && calls.count() === 0 && text !== previous;
      previous = text;
      if (finish === "content_filter" && !refusal) refusal = "the provider's content filter stopped the answer";
      const ending = { cut, refusal: refusal || undefined, model, tokens };
      finish = undefined;
      isDone = false;
      tokens = noTokens();
      streams += 1;
      return ending;
    },
    isOver: () => isDone,
    finish(remark = "") {
      const { thought, answer } = unsent;
      const last = letters.rest() + remark;
      text += last;
      const rest = calls.rest();
      return [
        ...(thought ? [chunk({ reasoning_content: thought })] : []),
        ...(answer + last ? [chunk({ content: answer + last })] : []),
        ...(rest.length > 0 ? [chunk({ tool_calls: rest })] : []),
        chunk({}, calls.count() > 0 ? "tool_calls" : "stop"),
        ...(usageOfFirst ? [writeEvent({ ...head, choices: [], usage: usageOfFirst })] : []),
        "data: [DONE]\n\n",
      ];
    },
  };
}

/** An event's data; whatever is not an object is no answer. */
export function parsed(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Told below, as anything else that is not an event.
  }
  throw new WireFailure(`the provider sent what is no event: ${data.slice(0, 200)}`, { status: 502 });
}

/** An error that came inside a stream, with the status it names or stands for. */
export function errorIn(data: Record<string, unknown>): WireFailure {
  const { code, status, type } = recordIn(data.error ?? data);
  const named = [code, status].map(Number).find((each) => each >= 400 && each < 600);
  const words = `${textIn(code)} ${textIn(type)}`;
  const meant = MEANT.find(([pattern]) => pattern.test(words))?.[1] ?? 400;
  return readRefusal(named ?? meant, JSON.stringify(data));
}

/** What the words of an error stand for, where it has no number. */
const MEANT: [RegExp, number][] = [
  [/rate_limit/, 429],
  [/overloaded|server_error|api_error|internal|unavailable|timeout/, 503],
  [/authentication/, 401],
  [/permission/, 403],
  [/billing|insufficient_quota/, 402],
  [/not_found/, 404],
];
