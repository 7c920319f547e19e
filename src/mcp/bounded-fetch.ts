import type { FetchLike } from "@modelcontextprotocol/client";
import { jsonTrouble } from "../lib/input-budget.ts";
import { LONGEST_MESSAGE, MESSAGE_BUDGET } from "./message-budget.ts";

/** The end of a server-sent event. */
const EVENT_END = /\r\n\r\n|\n\n|\r\r/g;

/**
 * A `fetch` that limits the length and structure of what a server sends: parsing more would block the event loop for everybody.
 */
export const boundedFetch: FetchLike = async (url, init) => {
  const response = await fetch(url, init);
  if (!response.body) return response;
  const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let waiting: string[] = [];
  let length = 0;
  let tail = "";

  /** Passes complete messages on, if they are within the limits. */
  function forward(text: string, controller: TransformStreamDefaultController<Uint8Array>): void {
    const messages = isStream ? text.split(EVENT_END).map(dataOf) : [text];
    const troubles = messages.map((message) => jsonTrouble(message, MESSAGE_BUDGET));
    const trouble = troubles.find((each) => each !== undefined);
    if (trouble === undefined) controller.enqueue(encoder.encode(text));
    else if (!isStream) controller.error(new Error(`the server sent a message that ${trouble}`));
    // Breaking off a stream would make the client reconnect without reporting the problem.
    else for (const [at, message] of messages.entries()) controller.enqueue(encoder.encode(eventOf(message, troubles[at])));
  }

  const bounded = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const text = decoder.decode(chunk, { stream: true });
        waiting.push(text);
        length += text.length;
        // The end of an event may be split across two chunks.
        const seen = tail + text;
        tail = seen.slice(-3);
        const end = isStream ? [...seen.matchAll(EVENT_END)].at(-1) : undefined;
        if (end) {
          const left = seen.length - end.index - end[0].length;
          const whole = waiting.join("");
          waiting = [whole.slice(whole.length - left)];
          length = left;
          tail = waiting[0]!.slice(-3);
          forward(whole.slice(0, whole.length - left), controller);
        }
        if (length > LONGEST_MESSAGE)
          controller.error(new Error(`the server sent more than ${LONGEST_MESSAGE / 1e6} MB at once`));
      },
      flush(controller) {
        forward(waiting.join("") + decoder.decode(), controller);
      },
    }),
  );
  return new Response(bounded, { status: response.status, statusText: response.statusText, headers: response.headers });
};

/** The data of a server-sent event. */
function dataOf(event: string): string {
  return event
    .split(/\r\n|\r|\n/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice("data:".length)] : []))
    .join("\n");
}

/** An event of the stream, or an error in its place for the caller that waits for it. */
function eventOf(message: string, trouble: string | undefined): string {
  const id = trouble === undefined ? undefined : /"id"\s{0,9}:\s{0,9}(\d{1,15})/.exec(message)?.[1];
  const error = { code: -32603, message: `it sent a message that ${trouble}` };
  const told = trouble === undefined ? message : id && JSON.stringify({ jsonrpc: "2.0", id: Number(id), error });
  return told ? told.replace(/^/gm, "data:").concat("\n\n") : "";
}
