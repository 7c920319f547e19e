import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createRoute, OpenAPIHono, z } from "@hono/zod-openapi";
import { bodyLimit } from "hono/body-limit";
import { UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { explainIssues } from "../../lib/validation.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import type { Outbox } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import { Status, Stopped } from "../../protocol/api.ts";
import { statusOf } from "../../protocol/errors.ts";
import type { Skills } from "../../skills/open.ts";
import type { Squads } from "../../squads/squads.ts";
import type { EventLog } from "../../store/events.ts";
import type { Hub } from "../../store/hub.ts";
import type { Messages } from "../../store/messages.ts";
import { storeTrouble } from "../../store/open.ts";
import type { Gate } from "../../tools/gate.ts";
import type { Channel } from "../channel.ts";
import { type ApprovalRoutesDeps, approvalRoutes } from "./approvals.ts";
import { type BudgetRoutesDeps, budgetRoutes } from "./budgets.ts";
import { callRoutes } from "./calls.ts";
import { CARRIED } from "./carried.ts";
import { type ConversationRoutesDeps, conversationRoutes } from "./conversations.ts";
import { type DoctorRoutesDeps, doctorRoutes } from "./doctor.ts";
import { fail, HttpError } from "./errors.ts";
import { eventRoutes } from "./events.ts";
import { createGuard, type GuardDeps } from "./guard.ts";
import { listenError } from "./listen-error.ts";
import { messageRoutes } from "./messages.ts";
import { pageRoutes } from "./page.ts";
import { type PlanRoutesDeps, planRoutes } from "./plans.ts";
import { progressRoutes } from "./progress.ts";
import { type RunDeps, runRoutes } from "./runs.ts";
import { type SettingsDeps, settingsRoutes } from "./settings.ts";
import { answers } from "./shapes.ts";
import { signInRoutes } from "./sign-in.ts";
import { skillRoutes } from "./skills.ts";
import { squadRoutes, taskRoutes } from "./squads.ts";
import { type TelegramRoutesDeps, telegramRoutes } from "./telegram.ts";
import { type UsageRoutesDeps, usageRoutes } from "./usage.ts";
import { type WikiRoutesDeps, wikiRoutes } from "./wiki.ts";
import { type WorkerRoutesDeps, workerRoutes } from "./workers.ts";

export interface HttpDeps
  extends SettingsDeps,
    RunDeps,
    ApprovalRoutesDeps,
    UsageRoutesDeps,
    BudgetRoutesDeps,
    TelegramRoutesDeps,
    ConversationRoutesDeps,
    DoctorRoutesDeps,
    PlanRoutesDeps,
    WikiRoutesDeps,
    WorkerRoutesDeps {
  version: string;
  token: string;
  host: string;
  /** 0 takes any that is free. */
  port: number;
  allowedHosts: () => string[];
  /** Whether a connection was made by a command that stands behind the wall. */
  isBehindWall?: GuardDeps["isBehindWall"];
  inbox: Inbox;
  outbox: Pick<Outbox, "received">;
  messages: Messages;
  steering: Pick<Steering, "say">;
  callsOf: Gate["callsOf"];
  hub: Hub;
  events: EventLog;
  skills: Skills;
  squads: Squads;
  status: () => Status;
  /** Ends everything that runs and cancels what waits. */
  stopAll: () => z.infer<typeof Stopped>;
  /** Where the built page lies. */
  pageFolder: string;
  log: Log;
}

const MAX_BODY = 1_000_000;
/** A page of 10 MB whose every character takes two in JSON, and the JSON around it; the wiki counts the page itself. */
const MAX_PAGE_BODY = 21_000_000;

/** HTTP as a channel, and the port it has taken. */
export interface Http extends Channel {
  app: OpenAPIHono;
  port(): number;
}

/** The HTTP API: every route checks the same schemas that openapi.json shows. */
export function createHttp(parts: HttpDeps): Http {
  const { version, token, host, port, allowedHosts, isBehindWall, log } = parts;
  const bound = () => (server.address() as AddressInfo).port;
  const guard = createGuard({ token, host, port: bound, allowedHosts, ...(isBehindWall && { isBehindWall }) });
  const app = new OpenAPIHono({
    defaultHook: (result, context) => (result.success ? undefined : fail(context, 400, explainIssues(result.error))),
  });

  app.onError((error, context) => {
    if (error instanceof HttpError) return fail(context, error.status, error.message);
    if (error instanceof UserError) return fail(context, statusOf(error.trouble), error.message);
    if ("status" in error && error.status === 400) return fail(context, 400, "The body is not valid JSON.");
    const trouble = storeTrouble(error);
    if (trouble) return fail(context, 503, trouble);
    log.error("a request failed", { path: context.req.path, error });
    return fail(context, 500, "Something went wrong inside IO. The log has the details: io logs.");
  });
  app.notFound((context) => fail(context, 404, "There is nothing at this address."));

  app.use("*", guard.address);
  const small = bodyLimit({ maxSize: MAX_BODY, onError: (context) => fail(context, 413, "The body is larger than 1 MB.") });
  const large = bodyLimit({ maxSize: MAX_PAGE_BODY, onError: (context) => fail(context, 413, "A page is at most 10 MB.") });
  app.use("/api/*", (context, next) =>
    (/^\/api\/wiki\/(?:pages|sources)\//.test(context.req.path) ? large : small)(context, next),
  );
  const health = createRoute({
    method: "get",
    path: "/api/health",
    summary: "Whether the daemon serves",
    responses: answers(200, z.object({ status: z.literal("ok") })),
  });
  app.openapi(health, (context) => context.json({ status: "ok" as const }, 200));

  const afterSignIn = signInRoutes(app, guard);
  app.use("/api/*", guard.auth);
  afterSignIn();

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
  doctorRoutes(app, parts);
  messageRoutes(app, parts);
  progressRoutes(app, parts);
  conversationRoutes(app, parts);
  callRoutes(app, parts);
  eventRoutes(app, parts);
  approvalRoutes(app, parts);
  settingsRoutes(app, parts);
  usageRoutes(app, parts);
  budgetRoutes(app, parts);
  telegramRoutes(app, parts);
  workerRoutes(app, parts);
  wikiRoutes(app, parts, guard.cameBy);
  skillRoutes(app, parts);
  squadRoutes(app, parts);
  taskRoutes(app, parts);
  runRoutes(app, parts);
  planRoutes(app, parts);
  app.get("/api/openapi.json", (context) =>
    context.json(app.getOpenAPI31Document({ openapi: "3.1.0", info: { title: "IO", version } })),
  );

  pageRoutes(app, { folder: parts.pageFolder, isSignedIn: guard.mayPass, messages: parts.messages });

  const server = createAdaptorServer({ fetch: app.fetch });
  return {
    name: "http",
    app,
    carries: ({ channel }) => CARRIED.includes(channel),
    start: () =>
      new Promise<void>((ready, failed) => {
        server.once("error", (error) => failed(listenError(error, { host, port })));
        server.listen(port, host, ready);
      }),
    port: bound,
    /** Its clients come for what is theirs; the routes tell when one did. */
    deliver: () => "kept",
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}
