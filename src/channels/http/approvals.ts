import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { approvalKey } from "../../orchestrator/approval-news.ts";
import type { Outbox } from "../../orchestrator/outbox.ts";
import { Approval, ApprovalDecision, ApprovalState, KeptRule } from "../../protocol/approvals.ts";
import type { EditChannel } from "../../protocol/pages.ts";
import type { Approvals } from "../../tools/approvals/approvals.ts";
import { HttpError } from "./errors.ts";
import { FETCHED_SOURCES } from "./fetched-sources.ts";
import { answers, body, pageOf } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

const Id = z.object({ id: z.string().max(100) });

export interface ApprovalRoutesDeps {
  approvals: Approvals;
  outbox: Pick<Outbox, "received">;
}

export function approvalRoutes(app: OpenAPIHono, { approvals, outbox }: ApprovalRoutesDeps, channelOf: ChannelOf): void {
  /** Marks a question as delivered, because this response shows it to somebody. */
  const markDelivered = (approval: Approval): Approval => {
    outbox.received(approvalKey(approval.id), FETCHED_SOURCES);
    return approval;
  };

  const list = createRoute({
    method: "get",
    path: "/api/approvals",
    summary: "What waits for a person and what was decided, newest first",
    request: {
      query: z.object({
        state: ApprovalState.optional(),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().optional(),
      }),
    },
    responses: answers(200, z.object({ items: z.array(Approval), next: z.string().optional() })),
  });
  app.openapi(list, (context) => {
    const { state, limit, before } = context.req.valid("query");
    const ask = (count: number) => approvals.list({ state, limit: count, before });
    const { items, ...rest } = pageOf(limit, ask, ({ id }) => id);
    return context.json({ items: items.map(markDelivered), ...rest }, 200);
  });

  const rules = createRoute({
    method: "get",
    path: "/api/approvals/rules",
    summary: "What people allowed for a whole task or project",
    responses: answers(200, z.object({ items: z.array(KeptRule) })),
  });
  app.openapi(rules, (context) => context.json({ items: approvals.rules.list() }, 200));

  const forget = createRoute({
    method: "delete",
    path: "/api/approvals/rules/{id}",
    summary: "Takes back what was allowed for a whole task or project",
    request: { params: Id },
    responses: answers(200, KeptRule),
  });
  app.openapi(forget, (context) => context.json(approvals.rules.forget(context.req.valid("param").id), 200));

  const one = createRoute({
    method: "get",
    path: "/api/approvals/{id}",
    summary: "One question, with everything that is known of it",
    request: { params: Id },
    responses: answers(200, Approval),
  });
  app.openapi(one, (context) => context.json(markDelivered(approvals.find(context.req.valid("param").id)), 200));

  const decide = createRoute({
    method: "post",
    path: "/api/approvals/{id}",
    summary: "Decides; on disk when this answers. 409 when it is decided or over",
    request: { params: Id, body: body(ApprovalDecision) },
    responses: answers(200, Approval),
  });
  app.openapi(decide, (context) => {
    const { id } = context.req.valid("param");
    const decision = context.req.valid("json");
    const by = channelOf(context);
    const refusal = whyNot(by, approvals.find(id), decision);
    if (refusal !== undefined) throw new HttpError(403, refusal);
    return context.json(approvals.decide(id, decision, by), 200);
  });
}

/**
 * Why this channel must not decide: some approvals need a person at IO's own interface, because an editor or program may answer
 * by itself.
 */
function whyNot(by: EditChannel, { id, kind }: Approval, { scope }: ApprovalDecision): string | undefined {
  const howElse = `Decide it in a terminal (io approval show ${id}), on the page or in Telegram.`;
  if (by === "mcp") return `No program that speaks MCP can decide this. ${howElse}`;
  if (by !== "acp") return undefined;
  if (kind === "budget") return `A budget is not raised from an editor. ${howElse}`;
  return scope === "project" ? `From an editor nothing is allowed for a whole project. ${howElse}` : undefined;
}
