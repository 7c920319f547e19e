import { type CopilotRequestContext, CopilotRequestHandler } from "@github/copilot-sdk";
import type { Log } from "../../lib/log.ts";
import type { Wire } from "./dialect.ts";
import { type Exchanger, textOf } from "./exchange.ts";
import { isHopeless, WireFailure } from "./failure.ts";
import type { Observer } from "./observer.ts";
import type { Transport } from "./transport.ts";

export interface HandlerDeps {
  exchanger: Exchanger;
  transport: Transport;
  /** The real address of a model; undefined where only the runtime knows it. */
  address: ((wire: Wire, model: string) => { url: string; headers: Record<string, string> }) | undefined;
  observerOf: (session: string) => Observer;
  log: Log;
}

const PATHS: [RegExp, Wire][] = [
  [/\/chat\/completions(?:\?|$)/, "completions"],
  [/\/responses(?:\?|$)/, "responses"],
  [/\/messages(?:\?|$)/, "messages"],
];
/** Headers that belong to one connection, or are set again for the next. */
const OWN = new Set(["host", "content-length", "connection", "accept-encoding", "transfer-encoding"]);
const LONGEST_PIECE = 64_000;

/** The model proxy inside this process: the only way from the runtime to a model. The runtime never sees a key or an address. */
export class ModelHandler extends CopilotRequestHandler {
  readonly #deps: HandlerDeps;

  constructor(deps: HandlerDeps) {
    super();
    this.#deps = deps;
  }

  protected override async sendRequest(incoming: Request, context: CopilotRequestContext): Promise<Response> {
    const { exchanger, address, observerOf } = this.#deps;
    const wire = PATHS.find(([path]) => path.test(incoming.url))?.[1];
    const headers = Object.fromEntries([...incoming.headers].filter(([name]) => !OWN.has(name)));
    const text = incoming.method === "GET" ? undefined : await incoming.text();
    const body = wire && text ? JSON.parse(text) : undefined;
    if (wire === undefined || typeof body?.model !== "string" || body.stream !== true)
      return this.#pass(incoming, headers, text, context);

    const observer = observerOf(context.sessionId ?? "");
    const lines = exchanger.answer({
      wire,
      session: context.sessionId ?? "",
      body,
      address: (model, { hasPictures }) => {
        const own = address?.(wire, model);
        if (own) return { url: own.url, headers: { ...spoken(headers), ...own.headers } };
        // GitHub Copilot accepts pictures only with this header.
        return { url: incoming.url, headers: hasPictures ? { ...headers, "copilot-vision-request": "true" } : headers };
      },
      signal: context.signal,
      observer,
    });
    try {
      const first = await lines.next();
      const failed = (error: unknown) => {
        if (!context.signal.aborted) observer.failed(this.#failureOf(error));
      };
      return new Response(bodyOf(first, lines, failed), { headers: { "content-type": "text/event-stream" } });
    } catch (error) {
      if (context.signal.aborted) throw error;
      const failure = this.#failureOf(error);
      observer.failed(failure);
      // There is no response, hence no status to pass on; the runtime retries by itself.
      if (failure.fault === "network") throw failure;
      return refusalOf(failure);
    }
  }

  /** Any other error is a bug of IO's, logged with its cause. */
  #failureOf(error: unknown): WireFailure {
    if (error instanceof WireFailure) return error;
    this.#deps.log.error("a model call failed by a fault of IO's own", { error });
    return new WireFailure("IO failed", { status: 400, fault: "ours" });
  }

  /** Forwards requests that are not model calls, where they have a destination. */
  async #pass(
    incoming: Request,
    headers: Record<string, string>,
    text: string | undefined,
    { signal }: CopilotRequestContext,
  ): Promise<Response> {
    if (this.#deps.address) return Response.json({ error: { message: "There is nothing here." } }, { status: 404 });
    const method = incoming.method === "GET" ? "GET" : "POST";
    const answer = await this.#deps.transport({
      method,
      url: incoming.url,
      headers,
      signal,
      ...(text !== undefined && { body: text }),
    });
    const kept = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !OWN.has(name)));
    return new Response(await textOf(answer), { status: answer.status, headers: kept });
  }
}

/** Keeps only those of the runtime's headers that describe the request. */
function spoken(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name === "content-type" || name === "accept" || name.startsWith("anthropic-")),
  );
}

/** Sends what is available in one piece, since each piece costs a round trip between two processes. */
function bodyOf(
  first: IteratorResult<string>,
  lines: AsyncGenerator<string>,
  failed: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let coming: Promise<IteratorResult<string>> = Promise.resolve(first);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        let piece = "";
        let line: IteratorResult<string> | undefined = await coming;
        while (line && !line.done && piece.length < LONGEST_PIECE) {
          piece += line.value;
          coming = lines.next();
          line = await atHand(coming);
        }
        if (piece !== "") controller.enqueue(encoder.encode(piece));
        if (line?.done) controller.close();
      } catch (error) {
        failed(error);
        controller.error(error);
      }
    },
    async cancel() {
      await lines.return(undefined);
    },
  });
}

/** The next line, if it is available after pending input was read. Anything later, or a failure, is left to the caller. */
function atHand<T>(coming: Promise<T>): Promise<T | undefined> {
  const later = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  return Promise.race([coming.catch(() => undefined), later]);
}

/** A refusal in the shape that every version of the runtime reads. */
function refusalOf(failure: WireFailure): Response {
  const { message, code, param, headers } = failure;
  const wait = headers["retry-after"];
  // The runtime would retry any status that looks transient.
  const status = isHopeless(failure) ? 400 : failure.status;
  return Response.json(
    { type: "error", error: { message, type: code ?? "provider_error", code: code ?? null, param: param ?? null } },
    { status, headers: wait ? { "retry-after": wait } : {} },
  );
}
