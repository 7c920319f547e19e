import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { UserError } from "../../lib/errors.ts";
import { readJsonInput } from "../../lib/input-json.ts";
import type { Log } from "../../lib/log.ts";
import { statusOf } from "../../protocol/errors.ts";
import { storeTrouble } from "../../store/faults.ts";
import { createChat } from "./chat.ts";
import type { Env } from "./connection.ts";
import { badRequest, ERROR_HEADERS, errorObject, OpenAiError } from "./errors.ts";
import { createLight, type LightDeps } from "./light.ts";
import { MODELS, unknownModel } from "./request.ts";
import { createResponses, createRetrieval, responseObject, shownOf } from "./responses.ts";
import { createTurns, type Hints, responseOf, type TurnsDeps } from "./turns.ts";

export interface OpenAiDeps extends TurnsDeps {
  light: LightDeps;
  log: Log;
}

/** Enough for a whole history with its pictures. */
const MAX_BODY = 10_000_000;
/** Room for long histories, and for the tools of clients that bring hundreds along. */
const BODY_BUDGET = { depth: 64, entries: 30_000 };

/** IO for OpenAI clients: each request is a message of a conversation. */
export function createOpenAi(deps: OpenAiDeps) {
  const { messages, inbox, log } = deps;
  const parts = { turns: createTurns(deps), light: createLight(deps.light) };
  const chat = createChat(parts);
  const responses = createResponses(parts);
  const retrieve = createRetrieval(parts);
  const app = new Hono<Env>();

  app.onError((error, context) => {
    const known = asKnown(error);
    if (!known) log.error("a request of an OpenAI client failed", { path: context.req.path, error });
    const refusal = known ?? new OpenAiError(500, "Something went wrong inside IO. The log has the details: io logs.");
    return context.json(errorObject(refusal), refusal.status as ContentfulStatusCode, ERROR_HEADERS);
  });
  app.notFound((context) => {
    const refusal = new OpenAiError(404, "There is nothing at this address.", "not_found");
    return context.json(errorObject(refusal), 404, ERROR_HEADERS);
  });
  const tooLarge = (): never => {
    throw new OpenAiError(413, "The body is larger than 10 MB.", "too_large");
  };
  app.use("*", bodyLimit({ maxSize: MAX_BODY, onError: tooLarge }));

  app.get("/v1/models", (context) => context.json({ object: "list", data: MODELS.map(modelObject) }));
  app.get("/v1/models/:id", (context) => {
    const id = context.req.param("id");
    const model = MODELS.find((each) => each === id);
    if (model === undefined) throw unknownModel(id);
    return context.json(modelObject(model));
  });
  app.post("/v1/chat/completions", async (context) => chat(context, await bodyOf(context), hintsOf(context)));
  app.post("/v1/responses", async (context) => responses(context, await bodyOf(context), hintsOf(context)));

  const find = (id: string) => {
    try {
      return responseOf(messages, id);
    } catch {
      throw new OpenAiError(404, `There is no response ${JSON.stringify(id.slice(0, 100))}.`, "response_not_found");
    }
  };
  app.get("/v1/responses/:id", (context) => retrieve(context, find(context.req.param("id"))));
  app.post("/v1/responses/:id/cancel", async (context) => {
    const { id } = find(context.req.param("id"));
    if (inbox.cancel(id)) await inbox.finished(id);
    return context.json(responseObject({ ...shownOf(messages.find(id)!), ...parts.turns.fieldsOf(id) }));
  });
  return (request: Request, env: Env["Bindings"]) => app.fetch(request, env);
}

const modelObject = (id: string) => ({ id, object: "model", created: 0, owned_by: "io" });

async function bodyOf(context: Context): Promise<unknown> {
  const read = await readJsonInput(await context.req.text(), BODY_BUDGET);
  if ("trouble" in read) throw new OpenAiError(400, `The body ${read.trouble}.`);
  return read.value;
}

function hintsOf(context: Context): Hints {
  const idempotencyKey = context.req.header("idempotency-key");
  if ((idempotencyKey?.length ?? 0) > 150) throw badRequest("Idempotency-Key", "is longer than 150 letters.");
  return {
    conversation: context.req.header("x-io-conversation"),
    chat: context.req.header("x-openwebui-chat-id"),
    idempotencyKey,
  };
}

function asKnown(error: unknown): OpenAiError | undefined {
  if (error instanceof OpenAiError) return error;
  const trouble = error instanceof UserError ? error : storeTrouble(error);
  if (!trouble) return undefined;
  return new OpenAiError(statusOf(trouble.trouble), trouble.message, trouble.code ?? null);
}
