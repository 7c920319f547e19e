import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { Conversation } from "../../protocol/messages.ts";
import { Run, RunDiff, RunStepDetail, RunSummary } from "../../protocol/runs.ts";
import { readRunSettings, settingsIn } from "../../swarm/pipeline/settings.ts";
import { allowedBy } from "../../swarm/run/models.ts";
import type { Swarm } from "../../swarm/run/swarm.ts";
import { HttpError } from "./errors.ts";
import { answers, body, pageOf } from "./shapes.ts";

export interface RunDeps {
  swarm: Swarm;
  env: NodeJS.ProcessEnv;
  squadProject: (slug: string) => { projectPath: string; decisions: string[] } | undefined;
  /** Checks the text of a pipeline file; the agents of a project are looked for where it is named. */
  checkPipeline: (yaml: string, projectPath: string | undefined) => Promise<z.infer<typeof Checked>>;
}

/** How a request lets other models serve. */
const ALLOW = '"standIns": true';
const RunId = z.object({ id: z.string() });
const StandIns = z
  .boolean()
  .default(false)
  .describe("Let other models serve for those that a person named and that are not there.");
const NewRun = z.strictObject({
  projectPath: z.string().min(1).optional(),
  squad: z.string().min(1).optional(),
  issue: z.string().trim().min(1, "a run needs an issue"),
  conversation: Conversation.optional(),
  apply: z.boolean().default(false),
  standIns: StandIns,
});
const Problem = z.object({ line: z.number().int(), path: z.string(), message: z.string() });
const Checked = z.object({ problems: z.array(Problem), notes: z.array(z.string()) });

export function runRoutes(app: OpenAPIHono, { swarm, env, squadProject, checkPipeline }: RunDeps): void {
  const find = (id: string): Run => {
    const run = swarm.show(id);
    if (!run) throw new HttpError(404, "There is no run with this id.");
    return run;
  };

  const list = createRoute({
    method: "get",
    path: "/api/runs",
    summary: "Swarm runs, the latest first",
    request: { query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50), before: z.string().optional() }) },
    responses: answers(200, z.object({ items: z.array(RunSummary), next: z.string().optional() })),
  });
  app.openapi(list, (context) => {
    const { limit, before } = context.req.valid("query");
    const ask = (count: number) => swarm.list({ limit: count, ...(before && { before }) });
    return context.json(
      pageOf(limit, ask, ({ id }) => id),
      200,
    );
  });

  const start = createRoute({
    method: "post",
    path: "/api/runs",
    summary: "Starts a run for a folder or a squad's project",
    request: { body: body(NewRun) },
    responses: answers(201, Run),
  });
  app.openapi(start, async (context) => {
    const { projectPath, squad, issue, conversation, apply, standIns } = context.req.valid("json");
    const team = squad === undefined ? undefined : squadProject(squad);
    if (squad !== undefined && !team) throw new HttpError(404, "There is no squad with this slug.");
    const folder = team?.projectPath ?? projectPath;
    if (folder === undefined) throw new HttpError(400, "Give projectPath or squad.");
    const { id } = await swarm
      .start({
        projectPath: folder,
        issue,
        settings: readRunSettings(env),
        squad,
        decisions: team?.decisions,
        conversation,
        apply,
        standIns,
        unattended: true,
      })
      .catch(allowedBy(ALLOW));
    return context.json(find(id), 201);
  });

  const validate = createRoute({
    method: "post",
    path: "/api/runs/validate",
    summary: "Checks a pipeline file",
    request: { body: body(z.strictObject({ yaml: z.string(), projectPath: z.string().min(1).optional() })) },
    responses: answers(200, Checked.extend({ valid: z.boolean() })),
  });
  app.openapi(validate, async (context) => {
    const { yaml, projectPath } = context.req.valid("json");
    const checked = await checkPipeline(yaml, projectPath);
    return context.json({ valid: checked.problems.length === 0, ...checked }, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/runs/{id}",
    summary: "One run, whole",
    request: { params: RunId },
    responses: answers(200, Run),
  });
  app.openapi(one, (context) => context.json(find(context.req.valid("param").id), 200));

  const resume = createRoute({
    method: "post",
    path: "/api/runs/{id}/resume",
    summary: "Goes on with a run that stopped",
    request: { params: RunId, body: { ...body(z.strictObject({ standIns: StandIns })), required: false } },
    responses: answers(200, Run),
  });
  app.openapi(resume, async (context) => {
    const { id } = context.req.valid("param");
    const { standIns = false } = context.req.valid("json");
    find(id);
    // The issue of a run came with its request, not from the daemon's environment.
    const { issue: _, ...settings } = settingsIn(env);
    await swarm.resume(id, { settings, standIns, unattended: true }).catch(allowedBy(ALLOW));
    return context.json(find(id), 200);
  });

  const cancel = createRoute({
    method: "post",
    path: "/api/runs/{id}/cancel",
    summary: "Ends a run",
    request: { params: RunId },
    responses: answers(200, Run),
  });
  app.openapi(cancel, (context) => {
    const { id } = context.req.valid("param");
    find(id);
    return context.json(swarm.cancel(id), 200);
  });
  detailRoutes(app, swarm);
}

/** What a person looks at who wants to know a run in detail, and how its result is taken. */
function detailRoutes(app: OpenAPIHono, swarm: Pick<Swarm, "step" | "diff" | "apply">): void {
  const step = createRoute({
    method: "get",
    path: "/api/runs/{id}/step",
    summary: "One step of a run: what was asked, what was answered, what was seen",
    request: { params: RunId, query: z.object({ key: z.string().min(1).max(1_000) }) },
    responses: answers(200, RunStepDetail),
  });
  app.openapi(step, (context) => context.json(swarm.step(context.req.valid("param").id, context.req.valid("query").key), 200));

  const diff = createRoute({
    method: "get",
    path: "/api/runs/{id}/diff",
    summary: "What a run, or one stream of it, changed since the commit it began from",
    request: { params: RunId, query: z.object({ stream: z.coerce.number().int().min(1).optional() }) },
    responses: answers(200, RunDiff),
  });
  app.openapi(diff, async (context) =>
    context.json(await swarm.diff(context.req.valid("param").id, context.req.valid("query").stream), 200),
  );

  const apply = createRoute({
    method: "post",
    path: "/api/runs/{id}/apply",
    summary: "Merges an approved result into the checkout; 409 with the reason and the commands where that cannot be done",
    request: { params: RunId },
    responses: answers(200, Run),
  });
  app.openapi(apply, async (context) => context.json(await swarm.apply(context.req.valid("param").id), 200));
}
