import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createRoute, OpenAPIHono, z } from "@hono/zod-openapi";
import { codeOf, UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { explainIssues } from "../../lib/validation.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import type { Outbox } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import { EXIT_CODE_HEADER, statusOf } from "../../protocol/errors.ts";
import type { Skills } from "../../skills/open.ts";
import type { Squads } from "../../squads/squads.ts";
import type { EventLog } from "../../store/events.ts";
import { storeTrouble } from "../../store/faults.ts";
import type { Hub } from "../../store/hub.ts";
import type { Messages } from "../../store/messages.ts";

import type { Gate } from "../../tools/gate.ts";
import type { Channel } from "../channel.ts";
import { type ApprovalRoutesDeps, approvalRoutes } from "./approvals.ts";
import { type BackgroundRoutesDeps, backgroundRoutes } from "./background.ts";
import { type BackupRoutesDeps, backupRoutes } from "./backup.ts";
import { bodyReader, closeUnread, loginReader, plainAddress } from "./body.ts";
import { type BudgetRoutesDeps, budgetRoutes } from "./budgets.ts";
import { callRoutes } from "./calls.ts";
import { type ChangeRoutesDeps, changeRoutes } from "./changes.ts";
import { type ConversationRoutesDeps, conversationRoutes } from "./conversations.ts";
import { type DaemonRoutesDeps, daemonRoutes } from "./daemon.ts";
import { type DoctorRoutesDeps, doctorRoutes } from "./doctor.ts";
import { type EditorRoutesDeps, editorRoutes } from "./editors.ts";
import { fail, HttpError } from "./errors.ts";
import { type EventRoutesDeps, eventRoutes } from "./events.ts";
import { FETCHED_SOURCES } from "./fetched-sources.ts";
import { type FileRoutesDeps, fileRoutes } from "./files.ts";
import { type ForgeHookDeps, forgeHook } from "./forge-hook.ts";
import { createGuard, type GuardDeps } from "./guard.ts";
import { listenError } from "./listen-error.ts";
import { type McpServerRoutesDeps, mcpServerRoutes } from "./mcp-servers.ts";
import { messageRoutes } from "./messages.ts";
import { type NewsRoutesDeps, newsRoutes } from "./news.ts";
import { pageRoutes } from "./page.ts";
import { type PageReviewRoutesDeps, pageReviewRoutes } from "./page-reviews.ts";
import { type PlanRoutesDeps, planRoutes } from "./plans.ts";
import { type ProgramRoutesDeps, programRoutes } from "./programs.ts";
import { progressRoutes } from "./progress.ts";
import { type PullRoutesDeps, pullRoutes } from "./pulls.ts";
import { type RuleRoutesDeps, ruleRoutes } from "./rules.ts";
import { type RunDeps, runRoutes } from "./runs.ts";
import { type ScheduleRoutesDeps, scheduleRoutes } from "./schedules.ts";
import { type SettingsDeps, settingsRoutes } from "./settings.ts";
import { answers } from "./shapes.ts";
import { signInRoutes } from "./sign-in.ts";
import { skillRoutes } from "./skills.ts";
import { squadRoutes, taskRoutes } from "./squads.ts";
import { type TelegramRoutesDeps, telegramRoutes } from "./telegram.ts";
import { type TokenRoutesDeps, tokenRoutes } from "./tokens.ts";
import { type UsageRoutesDeps, usageRoutes } from "./usage.ts";
import { type WatchRoutesDeps, watchRoutes } from "./watches.ts";
import { type ChannelOf, type WikiRoutesDeps, wikiRoutes } from "./wiki.ts";
import { type WorkerRoutesDeps, workerRoutes } from "./workers.ts";

export interface HttpDeps
  extends SettingsDeps,
    BackgroundRoutesDeps,
    BackupRoutesDeps,
    RunDeps,
    ApprovalRoutesDeps,
    UsageRoutesDeps,
    BudgetRoutesDeps,
    DaemonRoutesDeps,
    ChangeRoutesDeps,
    TelegramRoutesDeps,
    ConversationRoutesDeps,
    DoctorRoutesDeps,
    FileRoutesDeps,
    McpServerRoutesDeps,
    EditorRoutesDeps,
    NewsRoutesDeps,
    PageReviewRoutesDeps,
    RuleRoutesDeps,
    PlanRoutesDeps,
    ProgramRoutesDeps,
    PullRoutesDeps,
    ScheduleRoutesDeps,
    TokenRoutesDeps,
    WatchRoutesDeps,
    ForgeHookDeps,
    WikiRoutesDeps,
    WorkerRoutesDeps {
  token: string;
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** Whether to use another port if this one is taken. */
  anyPort?: boolean;
  allowedHosts: () => string[];
  openaiOrigins: () => string[];
  /** Whether a sandboxed command made the connection. */
  isBehindWall?: GuardDeps["isBehindWall"];
  inbox: Inbox;
  outbox: Pick<Outbox, "received">;
  messages: Messages;
  steering: Pick<Steering, "say">;
  callsOf: Gate["callsOf"];
  hub: Hub;
  events: EventLog;
  disk: EventRoutesDeps["disk"];
  /** Resolves when the database can be written; rejects if it cannot be for too long. */
  whenWritable: () => Promise<void>;
  words: EventRoutesDeps["words"] & RunDeps["words"];
  skills: Skills;
  squads: Squads;
  /** The folder of the built page. */
  pageFolder: string;
  /** openapi.json, as the build wrote it. */
  descriptionFile: string;
  log: Log;
}

/** HTTP as a channel, and the port it listens on. */
export interface Http extends Channel {
  app: OpenAPIHono;
  port(): number;
  /** Whether a client is connected. */
  hasClients(): Promise<boolean>;
}

const READS = ["GET", "HEAD", "OPTIONS"];
/** What ends work does so at once, whether or not that can be recorded yet. */
const ENDS_WORK = /^\/api\/(?:stop|.+\/(?:cancel|stop))$/;
const waitsToWrite = ({ method, path }: { method: string; path: string }) => !READS.includes(method) && !ENDS_WORK.test(path);

/** The HTTP API: every route validates with the same schemas that openapi.json shows. */
export function createHttp(parts: HttpDeps): Http {
  const { token, host, port, allowedHosts, isBehindWall, log } = parts;
  const bound = () => (server.address() as AddressInfo).port;
  const { openaiOrigins } = parts;
  const scopesOf = (bearer: string) => parts.clientTokens.scopesOf(bearer);
  const noteAstray = (bearer: string, path: string) => parts.clientTokens.noteAstray(bearer, path);
  const guard = createGuard({
    ...{ token, host, port: bound, allowedHosts, scopesOf, openaiOrigins, onTokenMisuse: noteAstray },
    ...(isBehindWall && { isBehindWall }),
  });
  let isClosing = false;
  const app = new OpenAPIHono({
    defaultHook: (result, context) => (result.success ? undefined : fail(context, 400, explainIssues(result.error))),
  });

  app.onError((error, context) => {
    if (error instanceof HttpError) return fail(context, error.status, error.message);
    if (error instanceof UserError) {
      // The exit codes of `swarm` say more than a status can.
      if (/^\/api\/(?:runs|plans)(?:\/|$)/.test(context.req.path)) context.header(EXIT_CODE_HEADER, String(error.exitCode));
      return fail(context, statusOf(error.trouble), error.message, error.code);
    }
    if ("status" in error && error.status === 400) return fail(context, 400, "The body is not valid JSON.");
    if ("status" in error && error.status === 415) return fail(context, 415, "This content type is not taken here.");
    const trouble = storeTrouble(error);
    if (trouble) return fail(context, 503, trouble.message, trouble.code);
    log.error("a request failed", { path: context.req.path, error });
    return fail(context, 500, "Something went wrong inside IO. The log has the details: io logs.");
  });
  app.notFound((context) => fail(context, 404, "There is nothing at this address."));

  app.use("*", closeUnread);
  app.use("*", guard.address);
  app.use("*", plainAddress);
  app.use("/api/login", loginReader);
  const health = createRoute({
    method: "get",
    path: "/api/health",
    summary: "Whether the daemon serves",
    responses: answers(200, z.object({ status: z.literal("ok") })),
  });
  app.openapi(health, (context) => context.json({ status: "ok" as const }, 200));

  const afterSignIn = signInRoutes(app, guard);
  app.use("/api/*", guard.auth);
  app.use("/api/*", bodyReader(app));
  app.use("*", async (context, next) => {
    if (waitsToWrite(context.req)) await parts.whenWritable();
    await next();
  });
  afterSignIn();

  daemonRoutes(app, parts);
  backupRoutes(app, parts);
  doctorRoutes(app, parts);
  messageRoutes(app, parts);
  fileRoutes(app, parts);
  progressRoutes(app, parts);
  conversationRoutes(app, parts);
  callRoutes(app, parts);
  changeRoutes(app, parts);
  backgroundRoutes(app, parts);
  eventRoutes(app, parts);
  approvalRoutes(app, parts, guard.channelOf);
  settingsRoutes(app, parts);
  usageRoutes(app, parts);
  budgetRoutes(app, parts);
  tokenRoutes(app, parts);
  mcpServerRoutes(app, parts);
  editorRoutes(app, parts);
  unattendedRoutes(app, parts, guard.channelOf);
  telegramRoutes(app, parts);
  workerRoutes(app, parts);
  wikiRoutes(app, parts, guard.channelOf);
  skillRoutes(app, parts);
  squadRoutes(app, parts);
  taskRoutes(app, parts, guard.channelOf);
  runRoutes(app, parts, guard.channelOf);
  planRoutes(app, parts, guard.channelOf);
  app.get("/api/openapi.json", async (context) =>
    context.body(await readFile(parts.descriptionFile, "utf8"), 200, { "content-type": "application/json" }),
  );

  forgeHook(app, parts);
  programRoutes(app, parts, guard, () => isClosing);
  pageRoutes(app, { folder: parts.pageFolder, isKnown: guard.isKnown });

  const server = createAdaptorServer({ fetch: app.fetch });
  return {
    name: "http",
    app,
    carries: ({ channel }) => FETCHED_SOURCES.includes(channel),
    async start() {
      const listen = (at: number) =>
        new Promise<void>((ready, failed) => {
          server.once("error", failed);
          server.listen(at, host, ready);
        }).finally(() => server.removeAllListeners("error"));
      await listen(port)
        .catch((error: unknown) => {
          if (!parts.anyPort || codeOf(error) !== "EADDRINUSE") throw error;
          return listen(0);
        })
        .catch((error: unknown) => {
          throw listenError(error, { host, port });
        });
    },
    hasClients: () => new Promise((tell) => server.getConnections((error, count) => tell(error !== null || count > 0))),
    port: bound,
    /** Clients fetch their replies; the routes mark them as delivered. */
    deliver: (what) => ("news" in what ? "delivered" : "kept"),
    close: () =>
      new Promise<void>((closed) => {
        // Connections that close from now on do not count as clients leaving.
        isClosing = true;
        server.close(() => closed());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}

/** Routes for work and news while nobody watches. */
function unattendedRoutes(app: OpenAPIHono, parts: HttpDeps, channelOf: ChannelOf): void {
  scheduleRoutes(app, parts, channelOf);
  newsRoutes(app, parts);
  pullRoutes(app, parts);
  watchRoutes(app, parts);
  ruleRoutes(app, parts, channelOf);
  pageReviewRoutes(app, parts, channelOf);
}
