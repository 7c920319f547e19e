import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { LiveConfig } from "../../home/live-config.ts";
import { protectionOf } from "../../home/modes.ts";
import { SquadSafety } from "../../home/safety-config.ts";
import { Analysis } from "../../protocol/analysis.ts";
import { kindsIn } from "../../protocol/budgets.ts";
import { Conversation } from "../../protocol/messages.ts";
import {
  Activity,
  Agent,
  CheckCommand,
  Decision,
  Isolation,
  ModelTier,
  ProjectConventions,
  Squad,
  Task,
  TaskStatus,
  UniverseName,
} from "../../protocol/squads.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Budgets } from "../../tools/budgets/budgets.ts";
import { answers, body, pageOf } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

const Slug = z.object({ slug: z.string() });
const Id = z.object({ id: z.string() });
const SquadView = Squad.extend({
  agents: z.array(Agent),
  decisions: z.array(Decision),
  tasks: z.array(Task),
  conventions: ProjectConventions,
}).meta({ id: "SquadView" });
const { mode, sandbox, approvals, budgets, news } = SquadSafety.shape;
/** null resets a setting. */
const SafetyChange = z.strictObject({
  mode: mode.nullable(),
  sandbox: sandbox.nullable(),
  approvals: approvals.nullable(),
  budgets: budgets.nullable(),
  news: news.nullable(),
});
const list = <T extends z.ZodType>(schema: T) => z.object({ items: z.array(schema), next: z.string().optional() });
const Limit = z.coerce.number().int().min(1).max(200);

export interface SquadRoutesDeps {
  squads: Squads;
  settings: LiveConfig;
  budgets: Pick<Budgets, "limitsChanged">;
}

export function squadRoutes(app: OpenAPIHono, { squads, settings, budgets: limits }: SquadRoutesDeps): void {
  const all = createRoute({ method: "get", path: "/api/squads", summary: "All squads", responses: answers(200, list(Squad)) });
  app.openapi(all, (context) => context.json({ items: squads.list() }, 200));

  const create = createRoute({
    method: "post",
    path: "/api/squads",
    summary: "Makes the squad of a project; 200 if the folder already has one",
    request: {
      body: body(
        z.strictObject({
          name: z.string().min(1),
          projectPath: z.string().min(1),
          slug: z.string().min(1).optional(),
          universe: UniverseName.optional(),
          isolation: Isolation.optional(),
        }),
      ),
    },
    responses: { ...answers(201, Squad), ...answers(200, Squad) },
  });
  app.openapi(create, (context) => {
    const { isolation, ...wanted } = context.req.valid("json");
    const { squad: made, isNew } = squads.create(wanted);
    const squad = isNew && isolation !== undefined ? squads.isolate(made.slug, isolation) : made;
    return isNew ? context.json(squad, 201) : context.json(squad, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/squads/{slug}",
    summary: "A squad with its agents, latest decisions and latest tasks",
    request: { params: Slug },
    responses: answers(200, SquadView),
  });
  app.openapi(one, async (context) => {
    const { slug } = context.req.valid("param");
    return context.json({ ...squads.recall(slug), conventions: await squads.conventions(slug) }, 200);
  });

  const change = createRoute({
    method: "patch",
    path: "/api/squads/{slug}",
    summary:
      "Lets a squad work in another folder, or each task in a worktree of its own, or says how its project is checked, or holds it tighter than all",
    request: {
      params: Slug,
      body: body(
        z.strictObject({
          projectPath: z.string().min(1).optional(),
          safety: SafetyChange.optional(),
          isolation: Isolation.optional(),
          /** null: use the checks found in the project. */
          checks: z.array(CheckCommand).min(1).max(20).nullable().optional(),
        }),
      ),
    },
    responses: answers(200, SquadView),
  });
  app.openapi(change, async (context) => {
    const { slug } = context.req.valid("param");
    const { projectPath, safety, isolation, checks } = context.req.valid("json");
    if (checks !== undefined) squads.check(slug, checks);
    if (isolation !== undefined) squads.isolate(slug, isolation);
    if (safety) squads.hold(slug, safety, { ...settings.current(), ...protectionOf(settings.current()) });
    if (safety?.budgets) limits.limitsChanged({ squad: slug, set: kindsIn(safety.budgets) });
    if (projectPath !== undefined) squads.move(slug, projectPath);
    return context.json({ ...squads.recall(slug), conventions: await squads.conventions(slug) }, 200);
  });

  const remove = createRoute({
    method: "delete",
    path: "/api/squads/{slug}",
    summary: "Deletes a squad and all that is its own; the project's files stay",
    request: { params: Slug },
    responses: answers(200, Squad),
  });
  app.openapi(remove, async (context) => context.json(await squads.delete(context.req.valid("param").slug), 200));

  agentRoutes(app, squads);
  decisionRoutes(app, squads);

  const analyze = createRoute({
    method: "post",
    path: "/api/analyze",
    summary: "What a project is made of, and who should work on it",
    request: { body: body(z.strictObject({ projectPath: z.string().min(1) })) },
    responses: answers(200, Analysis),
  });
  app.openapi(analyze, async (context) => {
    const { projectPath } = context.req.valid("json");
    return context.json(await squads.analyze(projectPath, { signal: context.req.raw.signal }), 200);
  });
}

function agentRoutes(app: OpenAPIHono, squads: Squads): void {
  const agents = createRoute({
    method: "get",
    path: "/api/squads/{slug}/agents",
    summary: "The agents of a squad",
    request: { params: Slug },
    responses: answers(200, list(Agent)),
  });
  app.openapi(agents, (context) => context.json({ items: squads.agents(context.req.valid("param").slug) }, 200));

  const addAgent = createRoute({
    method: "post",
    path: "/api/squads/{slug}/agents",
    summary: "Adds an agent",
    request: {
      params: Slug,
      body: body(z.strictObject({ roleTitle: z.string().min(1), charter: z.string().min(1), modelTier: ModelTier.optional() })),
    },
    responses: answers(201, Agent),
  });
  app.openapi(addAgent, (context) =>
    context.json(squads.addAgent(context.req.valid("param").slug, context.req.valid("json")), 201),
  );

  const removeAgent = createRoute({
    method: "delete",
    path: "/api/squads/{slug}/agents/{character}",
    summary: "Removes an agent",
    request: { params: Slug.extend({ character: z.string() }) },
    responses: answers(200, Agent),
  });
  app.openapi(removeAgent, async (context) => {
    const { slug, character } = context.req.valid("param");
    return context.json(await squads.removeAgent(slug, character), 200);
  });
}

function decisionRoutes(app: OpenAPIHono, squads: Squads): void {
  const decisions = createRoute({
    method: "get",
    path: "/api/squads/{slug}/decisions",
    summary: "A squad's decisions, newest first; with q those that hold these words",
    request: {
      params: Slug,
      query: z.object({
        q: z.string().min(1).max(500).optional(),
        limit: Limit.default(50),
        before: z.coerce.number().int().min(1).optional(),
      }),
    },
    responses: answers(200, list(Decision)),
  });
  app.openapi(decisions, (context) => {
    const { q, limit, before } = context.req.valid("query");
    const { slug } = context.req.valid("param");
    const ask = (count: number) => squads.decisions(slug, { text: q, limit: count, before });
    return context.json(
      pageOf(limit, ask, ({ id }) => String(id)),
      200,
    );
  });

  const decide = createRoute({
    method: "post",
    path: "/api/squads/{slug}/decisions",
    summary: "Logs a decision",
    request: { params: Slug, body: body(z.strictObject({ decision: z.string().min(1), context: z.string().optional() })) },
    responses: answers(201, Decision),
  });
  app.openapi(decide, (context) =>
    context.json(squads.logDecision(context.req.valid("param").slug, { ...context.req.valid("json"), author: "user" }), 201),
  );
}

export function taskRoutes(app: OpenAPIHono, { squads }: { squads: Squads }, channelOf: ChannelOf): void {
  const delegate = createRoute({
    method: "post",
    path: "/api/squads/{slug}/tasks",
    summary: "Gives a task to a squad; on disk when this answers. 200 if the same is under way already",
    request: {
      params: Slug,
      body: body(
        z.strictObject({
          task: z.string().min(1),
          agent: z.string().min(1).optional(),
          with: z
            .array(z.string().min(1))
            .max(9)
            .default([])
            .describe("other projects to change too, as one piece of work: folders, or squads' slugs"),
          conversation: Conversation.default("main"),
        }),
      ),
    },
    responses: { ...answers(201, Task), ...answers(200, Task) },
  });
  app.openapi(delegate, async (context) => {
    const { task, agent, with: names, conversation } = context.req.valid("json");
    const { slug } = context.req.valid("param");
    const by = channelOf(context);
    const channel = by === "mcp" || by === "acp" ? by : ("api" as const);
    const origin = { conversation, source: { channel } };
    const others = await squads.otherProjects(slug, names);
    const made = squads.delegate(slug, { task, agent, with: others, origin });
    return made.joined ? context.json(made.task, 200) : context.json(made.task, 201);
  });

  const tasks = createRoute({
    method: "get",
    path: "/api/tasks",
    summary: "Background tasks, newest first",
    request: {
      query: z.object({
        squad: z.string().optional(),
        status: TaskStatus.optional(),
        limit: Limit.default(50),
        before: z.string().optional(),
      }),
    },
    responses: answers(200, list(Task)),
  });
  app.openapi(tasks, (context) => {
    const { squad, status, limit, before } = context.req.valid("query");
    const filter = { ...(squad && { squad }), ...(status && { status }), ...(before && { before }) };
    const ask = (count: number) => squads.tasks({ ...filter, limit: count });
    return context.json(
      pageOf(limit, ask, ({ id }) => id),
      200,
    );
  });

  const task = createRoute({
    method: "get",
    path: "/api/tasks/{id}",
    summary: "One task, with what was seen of its work",
    request: { params: Id },
    responses: answers(200, Task),
  });
  app.openapi(task, (context) => context.json(squads.task(context.req.valid("param").id), 200));

  const activity = createRoute({
    method: "get",
    path: "/api/tasks/{id}/activity",
    summary: "What was seen of a task, oldest first",
    request: {
      params: Id,
      query: z.object({
        after: z.coerce.number().int().min(0).default(0),
        limit: z.coerce.number().int().min(1).max(1_000).default(500),
      }),
    },
    responses: answers(200, list(Activity)),
  });
  app.openapi(activity, (context) => {
    const { after, limit } = context.req.valid("query");
    const task = context.req.valid("param").id;
    const ask = (count: number) => squads.activity(task, { after, limit: count });
    return context.json(
      pageOf(limit, ask, ({ id }) => String(id)),
      200,
    );
  });

  const cancel = createRoute({
    method: "post",
    path: "/api/tasks/{id}/cancel",
    summary: "Ends a task that waits or runs, with every process it began",
    request: { params: Id },
    responses: answers(200, Task),
  });
  app.openapi(cancel, async (context) => context.json(await squads.cancel(context.req.valid("param").id), 200));
}
