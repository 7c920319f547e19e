import type { Context } from "hono";
import { stream } from "hono/streaming";

/** Proxies and clients close a silent connection. */
const COMMENT_EVERY_MS = 10_000;

export interface EventStream {
  send(data: unknown, event?: string): void;
  done(): void;
}

/** A stream of server-sent events, kept alive until the work is done. */
export function eventStream(
  context: Context,
  headers: Record<string, string>,
  work: (out: EventStream) => Promise<void>,
): Response {
  for (const [name, value] of Object.entries({ ...headers, ...STREAM_HEADERS })) context.header(name, value);
  return stream(context, async (out) => {
    let writing: Promise<unknown> = Promise.resolve();
    const write = (text: string) => {
      writing = writing.then(() => out.write(text)).catch(() => undefined);
    };
    const comment = setInterval(() => write(": here\n\n"), COMMENT_EVERY_MS);
    try {
      await work({
        send: (data, event) => write(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`),
        done: () => write("data: [DONE]\n\n"),
      });
    } finally {
      clearInterval(comment);
      await writing;
    }
  });
}

const STREAM_HEADERS = { "content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no" };
