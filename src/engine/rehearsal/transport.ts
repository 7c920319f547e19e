import type { Transport } from "../wire/transport.ts";
import { ChatRequest, type Model, streamOf, wholeOf } from "./wire.ts";

/** The embedded model's name, whatever model was requested. */
export const REHEARSAL = "rehearsal";

/** Answers in this process, without network or port. */
export function createRehearsal(model: Model): Transport {
  let count = 0;
  return async ({ body = "", signal }) => {
    const request = { ...ChatRequest.parse(JSON.parse(body)), model: REHEARSAL };
    const index = count++;
    const act = await model(request, index);
    const json = { "content-type": "application/json" };
    if ("status" in act) {
      const error = JSON.stringify({ error: { message: act.message ?? "" } });
      return { status: act.status, headers: { ...json, ...act.headers }, body: encoded([error]) };
    }
    if (!request.stream) return { status: 200, headers: json, body: encoded([await wholeOf(act, request, index, signal)]) };
    const headers = { "content-type": "text/event-stream" };
    return { status: 200, headers, body: encoded(streamOf(act, request, index, signal)) };
  };
}

async function* encoded(texts: Iterable<string> | AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const text of texts) yield encoder.encode(text);
}
