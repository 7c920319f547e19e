import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A request to a server whose answers the test writes. */
export interface RawRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
  text: string;
  /** How many model calls came before it. */
  index: number;
  /** Whether the client hung up before the answer was complete. */
  left: boolean;
}

export type RawAnswer = (request: RawRequest, response: ServerResponse) => void | Promise<void>;

/** A provider whose every byte the test writes, for answers that no well-behaved provider would send. */
export async function startRaw(answer: RawAnswer) {
  const requests: RawRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    if (incoming.method === "GET") {
      response.writeHead(404).end();
      return;
    }
    const text = Buffer.concat(chunks).toString("utf8");
    const { url = "", headers } = incoming;
    const request: RawRequest = { path: url, headers, body: JSON.parse(text), text, index: requests.length, left: false };
    requests.push(request);
    response.once("close", () => {
      request.left = !response.writableFinished;
    });
    await answer(request, response);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(
    () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  );
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** Sends events unchanged. Leaves the connection open if `end` is false. */
export function say(response: ServerResponse, events: readonly unknown[], { end = true } = {}): void {
  if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
  for (const each of events) {
    const type = typeof each === "object" && each !== null && "type" in each ? `event: ${String(each.type)}\n` : "";
    response.write(`${type}data: ${typeof each === "string" ? each : JSON.stringify(each)}\n\n`);
  }
  if (end) response.end();
}

/** Chunks of a chat completion: one for each delta, and the end. */
export function chat(deltas: readonly object[], finish: string | null = "stop"): unknown[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  return [...deltas.map((delta) => chunk(delta)), ...(finish ? [chunk({}, finish), "[DONE]"] : [])];
}

/** Events of an Anthropic message: its blocks, each with its deltas. */
export function message(
  blocks: readonly { block: object; deltas: readonly object[] }[],
  stop: string | null = "end_turn",
): unknown[] {
  const usage = { input_tokens: 10, output_tokens: 5 };
  return [
    { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage } },
    ...blocks.flatMap(({ block, deltas }, index) => [
      { type: "content_block_start", index, content_block: block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    ...(stop
      ? [{ type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage }, { type: "message_stop" }]
      : []),
  ];
}

export function textBlock(...texts: string[]) {
  return { block: { type: "text", text: "" }, deltas: texts.map((text) => ({ type: "text_delta", text })) };
}

/** Events of a response: its items, each with the events between its start and its end. */
export function response(
  items: readonly { item: Record<string, unknown>; between?: readonly object[] }[],
  status = "completed",
): unknown[] {
  const head = { id: "resp_1", object: "response", created_at: 1, model: "m" };
  return [
    { type: "response.created", response: { ...head, status: "in_progress", output: [] } },
    ...items.flatMap(({ item, between = [] }, output_index) => [
      { type: "response.output_item.added", output_index, item: begun(item) },
      ...between.map((each) => ({ output_index, item_id: item.id, ...each })),
      { type: "response.output_item.done", output_index, item },
    ]),
    {
      type: status === "incomplete" ? "response.incomplete" : "response.completed",
      response: {
        ...head,
        status,
        output: items.map(({ item }) => item),
        ...(status === "incomplete" && { incomplete_details: { reason: "max_output_tokens" } }),
        usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      },
    },
  ];
}

function begun(item: Record<string, unknown>): Record<string, unknown> {
  const { content: _, encrypted_content: __, ...rest } = item;
  return {
    ...rest,
    status: "in_progress",
    ...(item.type === "message" && { content: [] }),
    ...("arguments" in item && { arguments: "" }),
  };
}

export function messageItem(id: string, text: string) {
  const at = { content_index: 0 };
  return {
    item: {
      id,
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    },
    between: [
      { type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } },
      { type: "response.output_text.delta", ...at, delta: text },
      { type: "response.output_text.done", ...at, text },
    ],
  };
}
