import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { Status, Stopped } from "../../protocol/api.ts";
import { answers } from "./shapes.ts";

export interface DaemonRoutesDeps {
  status: () => Status;
  /** Stops all running work and cancels what waits. */
  stopAll: () => Stopped;
  /** Keeps a daemon running that would end by itself. */
  stay: () => Status;
}

/** The daemon's status, and how to stop all its work. */
export function daemonRoutes(app: OpenAPIHono, parts: DaemonRoutesDeps): void {
  const status = createRoute({
    method: "get",
    path: "/api/status",
    summary: "What the daemon is doing",
    responses: answers(200, Status),
  });
  app.openapi(status, (context) => context.json(parts.status(), 200));
  const stop = createRoute({
    method: "post",
    path: "/api/stop",
    summary: "Ends everything that runs and cancels what waits",
    responses: answers(200, Stopped),
  });
  app.openapi(stop, (context) => context.json(parts.stopAll(), 200));
  const stay = createRoute({
    method: "post",
    path: "/api/stay",
    summary: "Keeps a daemon that was started for one piece of work and would end after it",
    responses: answers(200, Status),
  });
  app.openapi(stay, (context) => context.json(parts.stay(), 200));
}
