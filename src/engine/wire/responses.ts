import { type Dialect, type Item, inWords, isSpoken, withoutTools } from "./dialect.ts";
import { listIn, recordIn, textOfParts } from "./fields.ts";
import { ResponsesAnswer } from "./responses-answer.ts";

/** OpenAI's responses. */
export const responses: Dialect = {
  assemble: () => new ResponsesAnswer(),
  unstreamed: () => undefined,
  items: (body) => listIn(body.input).filter(isSpoken).map(itemOf),
  withItems: (body, raw) => ({ ...body, input: [...listIn(body.input).filter((each) => !isSpoken(each)), ...raw] }),
  said: (role, text) => ({ type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] }),
  question: (body, instructions, text) => ({
    ...withoutTools(body),
    instructions,
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
  }),
  canHoldPictures: (raw) => recordIn(raw).type !== "function_call_output",
  illustrated(raw, { pictures, note }) {
    const { content, ...message } = recordIn(raw);
    const parts = typeof content === "string" ? [{ type: "input_text", text: content }] : listIn(content);
    const shown = pictures.map(({ type, data }) => ({ type: "input_image", image_url: `data:${type};base64,${data}` }));
    return { ...message, content: [...parts, ...shown, ...(note ? [{ type: "input_text", text: note }] : [])] };
  },
  shortened(raw, cut) {
    const { type, output } = recordIn(raw);
    return type === "function_call_output" && typeof output === "string" ? { ...recordIn(raw), output: cut(output) } : raw;
  },
};

function itemOf(raw: unknown): Item {
  const { type, role, content, name, arguments: args, output } = recordIn(raw);
  if (type === "function_call") return { role: "assistant", text: inWords(name, args), raw };
  if (type === "function_call_output")
    return { role: "tool", text: typeof output === "string" ? output : JSON.stringify(output ?? ""), raw };
  if (type === "reasoning") return { role: "assistant", text: "", raw };
  return { role: role === "assistant" ? "assistant" : "user", text: textOfParts(content), raw };
}
