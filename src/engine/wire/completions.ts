import { CompletionsAnswer } from "./completions-answer.ts";
import { type Dialect, type Item, inWords, isSpoken, withoutTools } from "./dialect.ts";
import { listIn, recordIn, textOfParts } from "./fields.ts";

/** OpenAI's chat completions, which most providers support with small differences. */
export const completions: Dialect = {
  assemble: () => new CompletionsAnswer(),
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
  canHoldPictures: (raw) => recordIn(raw).role !== "tool",
  illustrated(raw, { pictures, note }) {
    const { content, ...message } = recordIn(raw);
    // A model without vision may not accept a list of parts.
    if (pictures.length === 0 && typeof content === "string") return { ...message, content: `${content}\n${note}` };
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : listIn(content);
    const shown = pictures.map(({ type, data }) => ({ type: "image_url", image_url: { url: `data:${type};base64,${data}` } }));
    return { ...message, content: [...parts, ...shown, ...(note ? [{ type: "text", text: note }] : [])] };
  },
  shortened(raw, cut) {
    const { role, content } = recordIn(raw);
    return role === "tool" && typeof content === "string" ? { ...recordIn(raw), content: cut(content) } : raw;
  },
};

function itemOf(raw: unknown): Item {
  const { role, content, tool_calls } = recordIn(raw);
  const calls = listIn(tool_calls).map((call) => {
    const { name, arguments: args } = recordIn(recordIn(call).function);
    return inWords(name, args);
  });
  const kind = role === "assistant" || role === "tool" ? role : "user";
  return { role: kind, text: [textOfParts(content), ...calls].filter(Boolean).join("\n"), raw };
}
