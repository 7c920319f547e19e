import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { HttpError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import { answers, body } from "./shapes.ts";
import { createTickets } from "./tickets.ts";

const Ticket = z.object({ ticket: z.string(), expiresAt: z.string() });

/** The routes by which a browser signs in. Returns a function that adds the route for those who are signed in. */
export function signInRoutes(app: OpenAPIHono, guard: Guard): () => void {
  const tickets = createTickets();

  const login = createRoute({
    method: "post",
    path: "/api/login",
    summary: "Trades the token, or a ticket of `io web`, for a cookie and the key to it, which goes into the header IO-Key",
    request: { body: body(z.union([z.strictObject({ token: z.string() }), z.strictObject({ ticket: z.string() })])) },
    responses: answers(200, z.object({ status: z.literal("ok"), key: z.string() })),
  });
  app.openapi(login, (context) => {
    const offered = context.req.valid("json");
    if ("ticket" in offered) {
      if (!tickets.take(offered.ticket))
        throw new HttpError(401, 'This ticket was used already or is older than a minute. Get another with "io web".');
    } else if (!guard.isToken(offered.token)) {
      throw new HttpError(401, 'This is not the token. It stands in IO_HOME/token; "io web" opens the page signed in.');
    }
    return context.json({ status: "ok" as const, key: guard.admit(context) }, 200);
  });

  const signedIn = createRoute({
    method: "get",
    path: "/api/login",
    summary:
      "Whether this browser is signed in; within a minute and until its first use, the key to a cookie that a program fetched for it",
    responses: answers(200, z.object({ signedIn: z.boolean(), key: z.string().optional() })),
  });
  app.openapi(signedIn, (context) => {
    if (guard.mayPass(context)) return context.json({ signedIn: true }, 200);
    const key = guard.claim(context);
    return context.json(key === undefined ? { signedIn: false } : { signedIn: true, key }, 200);
  });

  const leave = createRoute({
    method: "delete",
    path: "/api/login",
    summary: "Takes the cookie back",
    responses: answers(200, z.object({ status: z.literal("ok") })),
  });
  app.openapi(leave, (context) => {
    guard.dismiss(context);
    return context.json({ status: "ok" as const }, 200);
  });

  return () => {
    const issue = createRoute({
      method: "post",
      path: "/api/tickets",
      summary: "A ticket that signs one browser in, within a minute",
      responses: answers(201, Ticket),
    });
    app.openapi(issue, (context) => context.json(tickets.issue(), 201));
  };
}
