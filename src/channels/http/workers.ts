import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { ClusterConfig } from "../../home/config.ts";
import { ClusterStatus, Invited, Worker, WorkerList } from "../../protocol/workers.ts";
import { answers, body } from "./shapes.ts";

/** The settings that `io cluster start` may change. */
export const ClusterStart = ClusterConfig.pick({ host: true, port: true }).partial();

export interface WorkerRoutesDeps {
  cluster: {
    status(): ClusterStatus;
    start(changes: z.infer<typeof ClusterStart>): Promise<ClusterStatus>;
    stop(): Promise<ClusterStatus>;
    workers(): Worker[];
    invite(): Promise<Invited>;
    drain(name: string): Promise<Worker>;
    revoke(name: string): Promise<void>;
  };
}

const named = { params: z.object({ name: z.string().min(1).max(100) }) };

export function workerRoutes(app: OpenAPIHono, { cluster }: WorkerRoutesDeps): void {
  const status = createRoute({
    method: "get",
    path: "/api/cluster",
    summary: "How the server for workers stands",
    responses: answers(200, ClusterStatus),
  });
  app.openapi(status, (context) => context.json(cluster.status(), 200));

  const start = createRoute({
    method: "post",
    path: "/api/cluster/start",
    summary: "Starts the server for workers, or connects to the one in the config",
    request: { body: body(ClusterStart) },
    responses: answers(200, ClusterStatus),
  });
  app.openapi(start, async (context) => context.json(await cluster.start(context.req.valid("json")), 200));

  const stop = createRoute({
    method: "post",
    path: "/api/cluster/stop",
    summary: "Stops it; workers stay known, and come back with the next start",
    responses: answers(200, ClusterStatus),
  });
  app.openapi(stop, async (context) => context.json(await cluster.stop(), 200));

  const list = createRoute({
    method: "get",
    path: "/api/workers",
    summary: "The workers on other hosts",
    responses: answers(200, WorkerList),
  });
  app.openapi(list, (context) => context.json({ items: cluster.workers() }, 200));

  const invite = createRoute({
    method: "post",
    path: "/api/workers/invite",
    summary: "An invitation for one worker: good once, for ten minutes",
    responses: answers(201, Invited),
  });
  app.openapi(invite, async (context) => context.json(await cluster.invite(), 201));

  const drain = createRoute({
    method: "post",
    path: "/api/workers/{name}/drain",
    summary: "Has a worker finish what it has, and take no more",
    request: named,
    responses: answers(200, Worker),
  });
  app.openapi(drain, async (context) => context.json(await cluster.drain(context.req.valid("param").name), 200));

  const revoke = createRoute({
    method: "delete",
    path: "/api/workers/{name}",
    summary: "Takes a worker's key away and closes its connection",
    request: named,
    responses: answers(200, z.object({ name: z.string(), revoked: z.literal(true) })),
  });
  app.openapi(revoke, async (context) => {
    const { name } = context.req.valid("param");
    await cluster.revoke(name);
    return context.json({ name, revoked: true as const }, 200);
  });
}
