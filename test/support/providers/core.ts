import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { AtTheEnd } from "../home.ts";
import type { Act, Asked, Script } from "./act.ts";
import { type Reply, send } from "./reply.ts";

/** A request as received, and its outcome. */
export interface Recorded {
  method: string;
  /** With its query. */
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  /** The body as JSON; undefined if it is not valid JSON. */
  body: unknown;
  status: number | undefined;
  /** The exact refusal, if the provider rejected the request. */
  refusal: string | undefined;
  /** What the provider did without saying so, such as cutting a prompt to its window. */
  silently: string | undefined;
}

/** A fake model provider on loopback, as strict as the real one. */
export interface Provider {
  /** The base URL, as a person would configure it. */
  url: string;
  /** The URL without a path. */
  origin: string;
  /** Every request, in order. */
  requests: Recorded[];
  /** The requests that the model was given. */
  asked: Asked[];
  /** Every refusal, word for word. */
  refusals(): string[];
  /** Changes what the model does from now on. */
  script(next: Script): void;
  close(): Promise<void>;
}

/** Passes an accepted request to the script. */
export type Ask = (asked: Asked) => Promise<Act>;

/** Defines a provider: its base path, and how it answers. */
export interface Blueprint {
  base: string;
  script: Script | undefined;
  answer(request: Recorded, ask: Ask): Reply | Promise<Reply>;
}

export async function startProvider(blueprint: Blueprint, atTheEnd: AtTheEnd = onTestFinished): Promise<Provider> {
  let script: Script = blueprint.script ?? (() => ({ say: ["All ", "right."] }));
  const requests: Recorded[] = [];
  const asked: Asked[] = [];
  const ask: Ask = async (question) => script(question, asked.push(question) - 1);

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await record(incoming);
    requests.push(request);
    const reply = await answerOf(request);
    request.status = "status" in reply ? reply.status : reply.kind === "events" ? 200 : undefined;
    request.refusal = "refusal" in reply ? reply.refusal : undefined;
    await send(reply, response);
  }

  /** If a script throws, the test is wrong, and the answer says so. */
  async function answerOf(request: Recorded): Promise<Reply> {
    try {
      return await blueprint.answer(request, ask);
    } catch (error) {
      const message = `The script of the test threw: ${error instanceof Error ? (error.stack ?? error.message) : error}`;
      return { kind: "json", status: 500, body: { error: { message } }, refusal: message };
    }
  }

  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  atTheEnd(close);
  return {
    url: origin + blueprint.base,
    origin,
    requests,
    asked,
    refusals: () => requests.flatMap(({ refusal }) => refusal ?? []),
    script: (next) => {
      script = next;
    },
    close,
  };
}

async function record(incoming: IncomingMessage): Promise<Recorded> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    text,
    body: parse(text),
    status: undefined,
    refusal: undefined,
    silently: undefined,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
