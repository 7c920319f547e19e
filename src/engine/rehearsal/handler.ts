import { type CopilotRequestContext, CopilotRequestHandler } from "@github/copilot-sdk";
import { type Act, ChatRequest, type Model, streamOf, wholeOf } from "./wire.ts";

/** Answers the runtime's model requests in process: no network and no port. */
export class RehearsalHandler extends CopilotRequestHandler {
  readonly #model: Model;
  #count = 0;

  constructor(model: Model) {
    super();
    this.#model = model;
  }

  protected override async sendRequest(incoming: Request, context: CopilotRequestContext): Promise<Response> {
    const request = ChatRequest.parse(await incoming.json());
    const index = this.#count++;
    return respond(await this.#model(request, index), request, index, context.signal);
  }
}

async function respond(act: Act, request: ChatRequest, index: number, signal: AbortSignal): Promise<Response> {
  if ("status" in act)
    return Response.json({ error: { message: act.message ?? "" } }, { status: act.status, headers: act.headers ?? {} });
  if (!request.stream)
    return new Response(await wholeOf(act, request, index, signal), { headers: { "content-type": "application/json" } });
  const events = streamOf(act, request, index, signal);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await events.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await events.return(undefined);
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
