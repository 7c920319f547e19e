/** One server-sent event, as it came. */
export interface StreamEvent {
  event: string | undefined;
  data: string;
}

/** Parses server-sent events as providers really send them: any line ending, comments, split characters. */
export async function* readStream(body: AsyncIterable<Uint8Array>, onLife: () => void): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  /** Pieces of an unfinished line, each scanned only once. */
  let begun: string[] = [];
  let event: string | undefined;
  let data: string[] = [];
  const take = function* (line: string): Generator<StreamEvent> {
    if (line === "") {
      if (data.length > 0) yield { event, data: data.join("\n") };
      event = undefined;
      data = [];
    } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("event:")) event = line.slice(6).trim();
  };
  for await (const chunk of body) {
    onLife();
    const text = decoder.decode(chunk, { stream: true });
    if (!/[\r\n]/.test(text) && !rest.endsWith("\r")) {
      begun.push(text);
      continue;
    }
    rest += begun.join("") + text;
    begun = [];
    // A carriage return at the very end may be the first half of a line ending.
    const whole = rest.endsWith("\r") ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, whole).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? "") + rest.slice(whole);
    for (const line of lines) yield* take(line);
  }
  rest += begun.join("") + decoder.decode();
  for (const line of rest.split(/\r\n|\n|\r/)) yield* take(line);
  yield* take("");
}

/** An event in the form that the runtime reads. */
export function writeEvent(data: object, event?: string): string {
  return `${event ? `event: ${event}\n` : ""}data: ${toJson(data)}\n\n`;
}

/** JSON with lone surrogates replaced: neither the runtime nor strict providers accept them. */
export function toJson(value: object): string {
  const text = JSON.stringify(value);
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "string" ? each.toWellFormed() : each));
}

/** Rejoins a character that was split between two pieces, and replaces a half that stays alone. */
export function createLetters() {
  let half = "";
  return {
    push(text: string): string {
      const all = half + text;
      half = /[\uD800-\uDBFF]$/.test(all) ? all.slice(-1) : "";
      return (half ? all.slice(0, -1) : all).toWellFormed();
    },
    rest(): string {
      const left = half.toWellFormed();
      half = "";
      return left;
    },
  };
}
export type Letters = ReturnType<typeof createLetters>;
