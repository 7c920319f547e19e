import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { Paired, TelegramStatus } from "../../protocol/channels.ts";
import { answers, body } from "./shapes.ts";

export interface TelegramRoutesDeps {
  telegram: { status(): TelegramStatus; pair(code: string): Paired; unpair(): void };
}

export function telegramRoutes(app: OpenAPIHono, { telegram }: TelegramRoutesDeps): void {
  const status = createRoute({
    method: "get",
    path: "/api/telegram",
    summary: "How the Telegram channel stands, and whom it serves",
    responses: answers(200, TelegramStatus),
  });
  app.openapi(status, (context) => context.json(telegram.status(), 200));

  const pair = createRoute({
    method: "post",
    path: "/api/telegram/pair",
    summary: "Takes a code that the bot gave out: its owner is served from now on",
    request: { body: body(z.strictObject({ code: z.string().trim().min(1).max(100) })) },
    responses: answers(200, Paired),
  });
  app.openapi(pair, (context) => context.json(telegram.pair(context.req.valid("json").code), 200));

  const unpair = createRoute({
    method: "post",
    path: "/api/telegram/unpair",
    summary: "Serves nobody any more, until somebody is paired",
    responses: answers(200, TelegramStatus),
  });
  app.openapi(unpair, (context) => {
    telegram.unpair();
    return context.json(telegram.status(), 200);
  });
}
