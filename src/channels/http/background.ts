import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { BackgroundCommand, BackgroundList, BackgroundOutput } from "../../protocol/background.ts";
import { Conversation } from "../../protocol/messages.ts";
import { HttpError } from "./errors.ts";
import { answers } from "./shapes.ts";

export interface BackgroundRoutesDeps {
  background: {
    /** The known commands, oldest first, each with this many of its last lines. */
    list(lines: number): BackgroundOutput[];
    find(id: string, lines: number): BackgroundOutput | undefined;
    stop(id: string): Promise<BackgroundCommand | undefined>;
    stopOf(owner: string): Promise<boolean>;
  };
}

/** How many of its last lines a list shows per command. */
const LISTED = 5;

/** The commands that models left running. */
export function backgroundRoutes(app: OpenAPIHono, { background }: BackgroundRoutesDeps): void {
  const params = z.object({ id: z.string().max(64) });
  const found = <T>(command: T | undefined): T => {
    if (command === undefined) throw new HttpError(404, "No command in the background has this id.");
    return command;
  };

  const list = createRoute({
    method: "get",
    path: "/api/background",
    summary: "The commands that run in the background, with their last lines; those that have ended too while they are kept",
    request: {
      query: z.object({
        conversation: Conversation.optional(),
        state: BackgroundCommand.shape.state.optional(),
      }),
    },
    responses: answers(200, BackgroundList),
  });
  app.openapi(list, (context) => {
    const { conversation, state } = context.req.valid("query");
    const isWanted = (each: BackgroundOutput) =>
      (conversation === undefined || each.conversation === conversation) && (state === undefined || each.state === state);
    return context.json({ items: background.list(LISTED).filter(isWanted) }, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/background/{id}",
    summary: "A command in the background and its last lines",
    request: { params, query: z.object({ lines: z.coerce.number().int().min(0).max(5_000).default(200) }) },
    responses: answers(200, BackgroundOutput),
  });
  app.openapi(one, (context) =>
    context.json(found(background.find(context.req.valid("param").id, context.req.valid("query").lines)), 200),
  );

  const stop = createRoute({
    method: "post",
    path: "/api/background/{id}/stop",
    summary: "Ends a command in the background, with everything it started",
    request: { params },
    responses: answers(200, BackgroundCommand),
  });
  app.openapi(stop, async (context) => context.json(found(await background.stop(context.req.valid("param").id)), 200));
}
