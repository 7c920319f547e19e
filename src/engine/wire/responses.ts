import { errorIn, parsed } from "./completions.ts";
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
import { createLetters, type Letters, writeEvent } from "./stream.ts";

/** OpenAI's responses. */
export const responses: Dialect = {
  assemble,
  unstreamed: () => undefined,
  items: (body) => listIn(body.input).filter(isSpoken).map(itemOf),
  withItems: (body, raw) => ({ ...body, input: [...listIn(body.input).filter((each) => !isSpoken(each)), ...raw] }),
  said: (role, text) => ({ type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] }),
  question: (body, instructions, text) => ({
    ...withoutTools(body),
    instructions,
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
  }),
  shortened(raw, cut) {
    const { type, output } = recordIn(raw);
    return type === "function_call_output" && typeof output === "string" ? { ...recordIn(raw), output: cut(output) } : raw;
  },
};

function itemOf(raw: unknown): Item {
  const { type, role, content, name, arguments: args, output } = recordIn(raw);
  if (type === "function_call") return { role: "assistant", text: `[calls ${textIn(name)} ${textIn(args)}]`, raw };
  if (type === "function_call_output")
    return { role: "tool", text: typeof output === "string" ? output : JSON.stringify(output ?? ""), raw };
  if (type === "reasoning") return { role: "assistant", text: "", raw };
  const said =
    typeof content === "string"
      ? content
      : listIn(content)
          .map((part) => textIn(recordIn(part).text))
          .join("");
  return { role: role === "assistant" ? "assistant" : "user", text: said, raw };
}

/** Where the text of an answer stands, so that a later stream can go on in the same place. */
interface Place {
  item_id: string;
  output_index: number;
  content_index: number;
}

function assemble(): Assembler {
  const letters = createLetters();
  /** Of arguments and reasoning, which come whole once more at their ends. */
  const others = new Map<string, Letters>();
  const items = new Map<number, Record<string, unknown>>();
  let place: Place | undefined;
  let offset = 0;
  let highest = -1;
  let streams = 0;
  let text = "";
  /** Of the message that is being told. */
  let own = "";
  let previous = "";
  let calls = 0;
  let refusal = "";
  let last: Record<string, unknown> | undefined;
  let first: Record<string, unknown> | undefined;
  let model: string | undefined;
  let sequence = 0;

  const send = (type: string, data: Record<string, unknown>) => writeEvent({ ...data, type, sequence_number: sequence++ }, type);
  const say = (piece: string): string[] => {
    text += piece;
    own += piece;
    return piece && place ? [send("response.output_text.delta", { ...place, delta: piece, logprobs: [] })] : [];
  };
  /** Ends the message that is being told: what its provider said of that was kept back, for a later stream may go on with it. */
  const close = (): string[] => {
    if (!place) return [];
    const part = { type: "output_text", text: own, annotations: [] };
    const item = {
      ...(items.get(place.output_index) ?? { id: place.item_id, type: "message", role: "assistant" }),
      status: "completed",
      content: [part],
    };
    items.set(place.output_index, item);
    const lines = [
      send("response.output_text.done", { ...place, text: own, logprobs: [] }),
      send("response.content_part.done", { ...place, part }),
      send("response.output_item.done", { output_index: place.output_index, item }),
    ];
    place = undefined;
    own = "";
    return lines;
  };

  return {
    text: () => text,
    take({ data, event: name }) {
      const event = parsed(data);
      const type = textIn(event.type) || name || "";
      const index = numberIn(event.output_index) + offset;
      const moved = { ...event, output_index: index };
      switch (type) {
        case "error":
          throw errorIn(event.error === undefined ? { error: event } : event);
        case "response.failed":
          throw failureOf(recordIn(event.response));
        case "response.created":
        case "response.in_progress":
        case "response.queued":
          model = textIn(recordIn(event.response).model) || model;
          return streams === 0 ? [send(type, event)] : [];
        case "response.completed":
        case "response.incomplete":
          last = recordIn(event.response);
          first ??= last;
          model = textIn(last.model) || model;
          return [];
        case "response.output_item.added": {
          const item = recordIn(event.item);
          highest = Math.max(highest, index);
          if (item.type === "function_call") calls += 1;
          if (item.type === "message" && streams > 0 && place) return [];
          if (item.type === "reasoning" && streams > 0) return [];
          if (item.type !== "message") return [send(type, moved)];
          const before = [...say(letters.rest()), ...close()];
          place = { item_id: textIn(item.id), output_index: index, content_index: 0 };
          return [...before, send(type, moved)];
        }
        case "response.content_part.added":
          return streams > 0 ? [] : [send(type, { ...moved, part: { type: "output_text", text: "", annotations: [] } })];
        case "response.refusal.delta":
        case "response.output_text.delta": {
          const piece = textIn(event.delta);
          if (type === "response.refusal.delta") refusal += piece;
          place ??= { item_id: textIn(event.item_id), output_index: index, content_index: numberIn(event.content_index) };
          return say(letters.push(piece));
        }
        // The ends of a text are told when the whole of it is there.
        case "response.output_text.done":
        case "response.refusal.done":
        case "response.content_part.done":
          return [];
        case "response.output_item.done": {
          const item = recordIn(event.item);
          if (item.type === "message") {
            if (place) items.set(place.output_index, streams > 0 ? (items.get(place.output_index) ?? item) : item);
            return [];
          }
          if (item.type === "reasoning" && streams > 0) return [];
          items.set(index, item);
          return [send(type, moved)];
        }
        default: {
          if (streams > 0 && type.startsWith("response.reasoning")) return [];
          if (event.output_index === undefined) return [send(type, event)];
          if (typeof event.delta !== "string") return [send(type, moved)];
          const key = `${type} ${index}`;
          const pieces = others.get(key) ?? createLetters();
          others.set(key, pieces);
          const delta = pieces.push(event.delta);
          return delta ? [send(type, { ...moved, delta })] : [];
        }
      }
    },
    ended() {
      if (!last) throw new WireFailure("the answer broke off before its end", { status: 502, fault: "network" });
      if (last.status === "failed" || last.status === "cancelled") throw failureOf(last);
      const reason = textIn(recordIn(last.incomplete_details).reason);
      const usage = recordIn(last.usage);
      const cut = last.status === "incomplete" && reason !== "content_filter" && calls === 0 && text !== previous;
      if (reason === "content_filter" && !refusal) refusal = "the provider's content filter stopped the answer";
      previous = text;
      const tokens = {
        ...noTokens(),
        input: numberIn(usage.input_tokens),
        output: numberIn(usage.output_tokens),
        cached: numberIn(recordIn(usage.input_tokens_details).cached_tokens),
      };
      streams += 1;
      last = undefined;
      offset = highest + 1;
      return { cut, refusal: refusal || undefined, model, tokens };
    },
    isOver: () => last !== undefined,
    finish(remark = "") {
      const lines = [...say(letters.rest() + remark), ...close()];
      const { incomplete_details: _, ...response } = first ?? {};
      const output = [...items].sort(([a], [b]) => a - b).map(([, item]) => item);
      lines.push(
        send("response.completed", { response: { ...response, status: "completed", incomplete_details: null, output } }),
      );
      return lines;
    },
  };
}

function failureOf(response: Record<string, unknown>): WireFailure {
  const error = recordIn(response.error);
  if (error.message === undefined) return readRefusal(502, JSON.stringify({ error: "the response failed, without a reason" }));
  return errorIn({ error });
}
