import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Act, ChatRequest, ConnectionReset, type Model, streamOf, wholeOf } from "./wire.ts";

/** A rehearsal model as an OpenAI-compatible server on the loopback interface that records every request. */
export interface ModelServer {
  /** The base URL for a provider. */
  url: string;
  requests: ChatRequest[];
  /** The request bodies, byte for byte. */
  bodies: string[];
  /** Replaces the model's behaviour from now on. */
  play(model: Model): void;
  close(): Promise<void>;
}

export async function startModelServer(initial: Model, { models = [] as string[], port = 0 } = {}): Promise<ModelServer> {
  let model = initial;
  const requests: ChatRequest[] = [];
  const bodies: string[] = [];
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      if (error instanceof ConnectionReset) incoming.socket.resetAndDestroy();
      else response.destroy(error instanceof Error ? error : undefined);
    });
  });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (incoming.method === "GET" && incoming.url?.endsWith("/models")) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: models.map((id) => ({ id, object: "model" })) }));
      return;
    }
    let body = "";
    for await (const chunk of incoming) body += chunk;
    const request = ChatRequest.parse(JSON.parse(body));
    const index = requests.push(request) - 1;
    bodies.push(body);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    await reply(response, await model(request, index), request, index, gone.signal);
  }

  await new Promise<void>((ready) => server.listen(port, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    bodies,
    play: (next) => {
      model = next;
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

async function reply(
  response: ServerResponse,
  act: Act,
  request: ChatRequest,
  index: number,
  signal: AbortSignal,
): Promise<void> {
  if ("status" in act) {
    response.writeHead(act.status, { "content-type": "application/json", ...act.headers });
    response.end(JSON.stringify({ error: { message: act.message ?? `scripted ${act.status}`, type: "scripted" } }));
    return;
  }
  if (!request.stream) {
    const text = await wholeOf(act, request, index, signal);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(text);
    return;
  }
  if (!("hang" in act)) response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const event of streamOf(act, request, index, signal)) response.write(event);
  response.end();
}
