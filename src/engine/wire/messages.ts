import { errorIn, parsed } from "./completions.ts";
import {
  type Assembler,
  type Body,
  type Dialect,
  type Item,
  listIn,
  noTokens,
  numberIn,
  recordIn,
  textIn,
  withoutTools,
} from "./dialect.ts";
import { WireFailure } from "./failure.ts";
import { createLetters, type Letters, writeEvent } from "./stream.ts";

/** Anthropic's messages. */
export const messages: Dialect = {
  assemble,
  unstreamed: () => undefined,
  items: (body) => listIn(body.messages).map(itemOf),
  withItems: (body, raw) => ({ ...body, messages: [...raw] }),
  said: (role, text) => ({ role, content: [{ type: "text", text }] }),
  question(body, system, text) {
    const { thinking, ...rest } = withoutTools(body);
    return { ...rest, system, messages: [{ role: "user", content: [{ type: "text", text }] }] } as Body;
  },
  shortened(raw, cut) {
    const { content, ...message } = recordIn(raw);
    const parts = listIn(content).map((each) => {
      const part = recordIn(each);
      if (part.type !== "tool_result") return each;
      if (typeof part.content === "string") return { ...part, content: cut(part.content) };
      const shorter = listIn(part.content).map((one) => {
        const { text } = recordIn(one);
        return typeof text === "string" ? { ...recordIn(one), text: cut(text) } : one;
      });
      return { ...part, content: shorter };
    });
    return parts.length > 0 ? { ...message, content: parts } : raw;
  },
};

function itemOf(raw: unknown): Item {
  const { role, content } = recordIn(raw);
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : listIn(content).map(recordIn);
  const isResult = parts.some(({ type }) => type === "tool_result");
  const words = parts.map((part) => {
    if (part.type === "tool_use") return `[calls ${textIn(part.name)} ${JSON.stringify(part.input ?? {})}]`;
    if (part.type === "tool_result")
      return typeof part.content === "string"
        ? part.content
        : listIn(part.content)
            .map((each) => textIn(recordIn(each).text))
            .join("");
    return textIn(part.text);
  });
  return { role: role === "assistant" ? "assistant" : isResult ? "tool" : "user", text: words.filter(Boolean).join("\n"), raw };
}

interface Block {
  index: number;
  type: string;
  letters: Letters;
  /** The last piece of it, for what is left over at its end. */
  latest: Record<string, unknown>;
}

/** Where the pieces of each kind have their text. */
const TEXT_OF: Record<string, string> = { text_delta: "text", thinking_delta: "thinking", input_json_delta: "partial_json" };

function assemble(): Assembler {
  /** The blocks of this stream, by the provider's number; undefined for one that does not go on. */
  let blocks = new Map<number, Block | undefined>();
  let next = 0;
  let open: Block | undefined;
  let text = "";
  let previous = "";
  let calls = 0;
  let stop: string | undefined;
  let isOver = false;
  let streams = 0;
  let tokens = noTokens();
  let closing: Record<string, unknown> | undefined;
  let model: string | undefined;

  const send = (data: { type: string } & Record<string, unknown>) => writeEvent(data, data.type);
  /** A block of text stays open until something follows it: a later stream may go on with it. */
  const close = (): string[] => {
    const block = open;
    open = undefined;
    return block ? end(block) : [];
  };
  const end = ({ index, letters, latest }: Block): string[] => {
    const rest = letters.rest();
    const field = TEXT_OF[textIn(latest.type)] ?? "text";
    return [
      ...(rest ? [send({ type: "content_block_delta", index, delta: { ...latest, [field]: rest } })] : []),
      send({ type: "content_block_stop", index }),
    ];
  };
  const begin = (type: string): Block => {
    const block = { index: next, type, letters: createLetters(), latest: { type: "text_delta" } };
    next += 1;
    return block;
  };

  return {
    text: () => text,
    take({ data }) {
      const event = parsed(data);
      const number = numberIn(event.index);
      switch (event.type) {
        case "error":
          throw errorIn(event);
        case "message_start": {
          const { usage, model: name } = recordIn(event.message);
          const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = recordIn(usage);
          const cached = numberIn(cache_read_input_tokens);
          tokens = {
            input: numberIn(input_tokens) + cached + numberIn(cache_creation_input_tokens),
            output: numberIn(output_tokens),
            cached,
          };
          if (typeof name === "string" && name) model = name;
          return streams === 0 ? [writeEvent(event, "message_start")] : [];
        }
        case "content_block_start": {
          const type = textIn(recordIn(event.content_block).type);
          if (streams > 0 && type === "text" && open) {
            blocks.set(number, open);
            return [];
          }
          // Thoughts about how to go on belong to no answer.
          if (streams > 0 && type.includes("thinking")) {
            blocks.set(number, undefined);
            return [];
          }
          const before = close();
          const block = begin(type);
          blocks.set(number, block);
          if (type === "tool_use") calls += 1;
          return [...before, send({ ...event, type: "content_block_start", index: block.index })];
        }
        case "content_block_delta": {
          const block = blocks.get(number);
          if (!block) return [];
          const delta = recordIn(event.delta);
          const field = TEXT_OF[textIn(delta.type)];
          if (!field) return [send({ ...event, type: "content_block_delta", index: block.index })];
          block.latest = delta;
          const said = block.letters.push(textIn(delta[field]));
          if (field === "text") text += said;
          return said ? [send({ type: "content_block_delta", index: block.index, delta: { ...delta, [field]: said } })] : [];
        }
        case "content_block_stop": {
          const block = blocks.get(number);
          if (!block) return [];
          if (block.type !== "text") return end(block);
          open = block;
          return [];
        }
        case "message_delta": {
          const { stop_reason } = recordIn(event.delta);
          if (typeof stop_reason === "string") stop = stop_reason;
          tokens.output = numberIn(recordIn(event.usage).output_tokens) || tokens.output;
          closing ??= event;
          return [];
        }
        case "message_stop":
          isOver = true;
          return [];
        default:
          return streams === 0 ? [writeEvent(event, textIn(event.type) || undefined)] : [];
      }
    },
    ended() {
      if (stop === undefined && !isOver)
        throw new WireFailure("the answer broke off before its end", { status: 502, fault: "network" });
      const cut = stop === "max_tokens" && open !== undefined && text !== previous;
      const refusal = stop === "refusal" ? text.slice(previous.length) || "the model declined to answer" : undefined;
      previous = text;
      const ending = { cut, refusal, model, tokens };
      streams += 1;
      blocks = new Map();
      stop = undefined;
      isOver = false;
      tokens = noTokens();
      return ending;
    },
    isOver: () => isOver,
    finish(remark = "") {
      const lines: string[] = [];
      const say = (words: string) => {
        if (!open) {
          open = begin("text");
          lines.push(send({ type: "content_block_start", index: open.index, content_block: { type: "text", text: "" } }));
        }
        lines.push(send({ type: "content_block_delta", index: open.index, delta: { type: "text_delta", text: words } }));
      };
      if (remark) say(remark);
      text += remark;
      lines.push(...close());
      const { delta, ...rest } = closing ?? { usage: { output_tokens: 0 } };
      const reason = calls > 0 ? "tool_use" : "end_turn";
      lines.push(send({ ...rest, type: "message_delta", delta: { ...recordIn(delta), stop_reason: reason } }));
      lines.push(send({ type: "message_stop" }));
      return lines;
    },
  };
}
