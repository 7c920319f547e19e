import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { Planning } from "../../protocol/plans.ts";
import { rewordMissingModels } from "../../swarm/agents/models.ts";
import { readRunSettings } from "../../swarm/pipeline/settings.ts";
import type { PlanDesk } from "../../swarm/run/plan-desk.ts";
import { ALLOW, Variables } from "./runs.ts";
import { answers, body, ProjectPath } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

export interface PlanRoutesDeps {
  plans: PlanDesk;
}

const PlanId = z.object({ id: z.string() });
const NewPlan = z.strictObject({
  projectPath: ProjectPath,
  issue: z.string().trim().min(1, "a plan needs an issue"),
  standIns: z.boolean().default(false),
  variables: Variables.optional(),
});
const Answer = z.strictObject({
  text: z
    .string()
    .max(20_000)
    .nullable()
    .describe("What the person says; nothing means: use your judgement, null: nobody is left to ask."),
});

/** Plans whose questions a person answers here. */
export function planRoutes(app: OpenAPIHono, { plans }: PlanRoutesDeps, channelOf: ChannelOf): void {
  const list = createRoute({
    method: "get",
    path: "/api/plans",
    summary: "The plans of this life of the daemon, the latest first",
    responses: answers(200, z.object({ items: z.array(Planning) })),
  });
  app.openapi(list, (context) => context.json({ items: plans.list() }, 200));

  const begin = createRoute({
    method: "post",
    path: "/api/plans",
    summary: "Has an issue clarified and analysed before it is run; its questions wait for a person",
    request: { body: body(NewPlan) },
    responses: answers(201, Planning),
  });
  app.openapi(begin, async (context) => {
    const { variables, ...wanted } = context.req.valid("json");
    const isCommand = channelOf(context) === "terminal";
    const planning = await plans
      .begin({
        ...wanted,
        ...(variables && { settings: readRunSettings(variables) }),
        ...(isCommand && { source: "cli" }),
      })
      .catch(rewordMissingModels(isCommand ? undefined : ALLOW));
    return context.json(planning, 201);
  });

  const one = createRoute({
    method: "get",
    path: "/api/plans/{id}",
    summary: "One plan",
    request: { params: PlanId },
    responses: answers(200, Planning),
  });
  app.openapi(one, (context) => context.json(plans.find(context.req.valid("param").id), 200));

  const answer = createRoute({
    method: "post",
    path: "/api/plans/{id}/answer",
    summary: "Answers what a plan asks; 409 when it asks nothing",
    request: { params: PlanId, body: body(Answer) },
    responses: answers(200, Planning),
  });
  app.openapi(answer, (context) =>
    context.json(plans.answer(context.req.valid("param").id, context.req.valid("json").text), 200),
  );

  const cancel = createRoute({
    method: "post",
    path: "/api/plans/{id}/cancel",
    summary: "Ends a plan that is in the making",
    request: { params: PlanId },
    responses: answers(200, Planning),
  });
  app.openapi(cancel, (context) => context.json(plans.cancel(context.req.valid("param").id), 200));
}
