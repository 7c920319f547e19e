import { type Body, type Dialect, type Item, inWords, withoutTools } from "./dialect.ts";
import { listIn, recordIn, textIn, textOfParts } from "./fields.ts";
import { MessagesAnswer } from "./messages-answer.ts";

/** Anthropic's messages. */
export const messages: Dialect = {
  assemble: () => new MessagesAnswer(),
  unstreamed: () => undefined,
  items: (body) => listIn(body.messages).map(itemOf),
  withItems: (body, raw) => ({ ...body, messages: [...raw] }),
  said: (role, text) => ({ role, content: [{ type: "text", text }] }),
  question(body, system, text) {
    const { thinking, ...rest } = withoutTools(body);
    return { ...rest, system, messages: [{ role: "user", content: [{ type: "text", text }] }] } as Body;
  },
  canHoldPictures: () => true,
  illustrated(raw, { pictures, note }) {
    const { content, ...message } = recordIn(raw);
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : listIn(content);
    const shown = pictures.map(({ type, data }) => ({ type: "image", source: { type: "base64", media_type: type, data } }));
    return { ...message, content: [...parts, ...shown, ...(note ? [{ type: "text", text: note }] : [])] };
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
    if (part.type === "tool_use") return inWords(part.name, JSON.stringify(part.input ?? {}));
    if (part.type === "tool_result") return textOfParts(part.content);
    return textIn(part.text);
  });
  return { role: role === "assistant" ? "assistant" : isResult ? "tool" : "user", text: words.filter(Boolean).join("\n"), raw };
}
