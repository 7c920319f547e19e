import { isAbsolute } from "node:path";
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Pulls } from "../../forge/pulls.ts";
import { newId } from "../../lib/ids.ts";
import { quoted } from "../../lib/quoted.ts";
import { Conversation } from "../../protocol/messages.ts";
import { PullOptions } from "../../protocol/pulls.ts";
import { BegunRun, Cleaned, Run, RunDiff, RunStepDetail, RunSummary, type SaidSoFar } from "../../protocol/runs.ts";
import { rewordMissingModels } from "../../swarm/agents/models.ts";
import { readRunSettings, settingsIn, VARIABLE_NAMES } from "../../swarm/pipeline/settings.ts";
import type { Swarm } from "../../swarm/run/swarm.ts";
import { HttpError } from "./errors.ts";
import { answers, body, ProjectPath, pageOf } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

export interface RunDeps {
  swarm: Swarm;
  /** The output of the running steps. */
  words: { soFar: (run: string, key: string, after: number) => SaidSoFar | undefined };
  pulls: Pulls;
  /** Deletes the data kept for undoing messages and tasks; returns how much that was. */
  cleanChanges: (options: { before: Date | undefined; dryRun: boolean }) => Promise<number>;
  env: NodeJS.ProcessEnv;
  squadProject: (slug: string) => { projectPath: string; decisions: string[] } | undefined;
  /** Called when a command has started a run. */
  onCommandRun: (runId: string) => void;
  /** Checks a pipeline file's text, with the agents of the project if one is given. */
  checkPipeline: (yaml: string, projectPath: string | undefined) => Promise<z.infer<typeof Checked>>;
}

/** How a request permits substitute models. */
export const ALLOW = '"standIns": true';
const RunId = z.object({ id: z.string() });
const StandIns = z
  .boolean()
  .default(false)
  .describe("Let other models serve for those that a person named and that are not there.");
/** The environment variables that configure a run, with the values of whoever asks. */
export const Variables = z
  .partialRecord(z.enum(VARIABLE_NAMES), z.string().max(1_000))
  .describe("The variables of the environment that settle how a run works; without them those of the daemon count.");
const Attended = z
  .boolean()
  .default(false)
  .describe("Whoever asks stays with it: should the daemon end, the run waits until it is resumed.");
const StepSummary = z.string().max(4_096).optional().describe("The page of a GitHub job that the summary is added to.");
export const OtherProjects = z
  .array(z.string().min(1).max(4_096))
  .max(9)
  .default([])
  .describe("Other projects that are changed with it as one piece of work: their folders, or the slugs of their squads.");
const NewRun = z.strictObject({
  projectPath: ProjectPath.optional(),
  squad: z.string().min(1).optional(),
  with: OtherProjects,
  issue: z.string().trim().min(1, "a run needs an issue"),
  conversation: Conversation.optional(),
  apply: z.boolean().default(false),
  requireChecks: z.boolean().default(false).describe("Ask no model unless the project's checks can run."),
  standIns: StandIns,
  variables: Variables.optional(),
  attended: Attended,
  plan: z.boolean().default(false).describe("The issue is a plan, as planning writes it."),
  large: z.boolean().default(false).describe("Outside git, work on a folder however large it is."),
  stepSummary: StepSummary,
  pull: PullOptions.optional().describe("End it with a pull request, if it comes to a result."),
});
const Resume = z.strictObject({
  standIns: StandIns,
  variables: Variables.optional(),
  attended: Attended,
  issue: z.string().optional().describe("Refused if it is not the issue that the run began with."),
  stepSummary: StepSummary,
});
const CleanRequest = z.strictObject({
  runs: z.array(z.string().max(100)).max(1_000).default([]).describe("Only these; an interrupted run goes only by its name."),
  before: z.iso.datetime().optional().describe("Only runs that ended before."),
  unmerged: z.boolean().default(false).describe("Also branches whose commits nothing else has, and work that is not committed."),
  dryRun: z.boolean().default(false).describe("Only tell what would be removed."),
  changes: z
    .boolean()
    .default(false)
    .describe("Also what is kept to undo messages and tasks from before then, or without it from more than a week ago."),
});
const Settled = z
  .enum(["true", "false"])
  .optional()
  .describe("With true it answers when the run has ended and what it leaves behind is put away.");
const Problem = z.object({ line: z.number().int(), path: z.string(), message: z.string() });
const Checked = z.object({ problems: z.array(Problem), notes: z.array(z.string()) });

export function runRoutes(app: OpenAPIHono, deps: RunDeps, channelOf: ChannelOf): void {
  const { swarm, pulls, env, squadProject, checkPipeline, onCommandRun } = deps;
  const howToAllow = (context: Context) => (channelOf(context) === "terminal" ? undefined : ALLOW);
  const find = (id: string): Run => {
    const run = swarm.show(id);
    if (!run) throw new HttpError(404, `There is no run "${id.slice(0, 60)}". List the runs with: swarm list`);
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
    responses: answers(201, BegunRun),
  });
  app.openapi(start, async (context) => {
    const { projectPath, squad, variables = env, attended, pull, with: named, ...wanted } = context.req.valid("json");
    const others = named.map((name) => squadProject(name)?.projectPath ?? name);
    const unknown = others.find((path) => !isAbsolute(path));
    if (unknown !== undefined)
      throw new HttpError(400, `${quoted(unknown, 200)}: is neither a squad nor the whole path of a project's folder.`);
    const team = squad === undefined ? undefined : squadProject(squad);
    if (squad !== undefined && !team) throw new HttpError(404, "There is no squad with this slug.");
    const folder = team?.projectPath ?? projectPath;
    if (folder === undefined) throw new HttpError(400, "Give projectPath or squad.");
    const remarks: string[] = [];
    const given = newId("r");
    if (pull) await pulls.plan({ id: given, projects: [folder, ...others] }, pull);
    const { id, notes } = await swarm
      .start({
        ...wanted,
        id: given,
        projectPath: folder,
        with: others,
        settings: readRunSettings(variables),
        squad,
        decisions: team?.decisions,
        unattended: !attended,
        onNote: (text) => remarks.push(text),
      })
      .catch((error: unknown) => {
        pulls.forget(given);
        return rewordMissingModels(howToAllow(context))(error);
      });
    if (channelOf(context) === "terminal") onCommandRun(id);
    return context.json({ ...find(id), remarks: [...remarks, ...notes] }, 201);
  });

  const validate = createRoute({
    method: "post",
    path: "/api/runs/validate",
    summary: "Checks a pipeline file",
    request: { body: body(z.strictObject({ yaml: z.string(), projectPath: ProjectPath.optional() })) },
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
    request: { params: RunId, query: z.object({ settled: Settled }) },
    responses: answers(200, Run),
  });
  app.openapi(one, async (context) => {
    const { id } = context.req.valid("param");
    if (context.req.valid("query").settled === "true") await swarm.settled(id);
    return context.json(find(id), 200);
  });

  const resume = createRoute({
    method: "post",
    path: "/api/runs/{id}/resume",
    summary: "Goes on with a run that stopped",
    request: { params: RunId, body: { ...body(Resume), required: false } },
    responses: answers(200, BegunRun),
  });
  app.openapi(resume, async (context) => {
    const { id } = context.req.valid("param");
    const { variables = env, attended = false, ...wanted } = context.req.valid("json");
    find(id);
    // The issue of a run came with its original request, not from the daemon's environment.
    const { issue: _, ...settings } = settingsIn(variables);
    const { notes } = await swarm
      .resume(id, { ...wanted, settings, unattended: !attended })
      .catch(rewordMissingModels(howToAllow(context)));
    return context.json({ ...find(id), remarks: [...notes] }, 200);
  });

  endingRoutes(app, deps, find);
  detailRoutes(app, deps);
}

/** How to cancel, stop or clean up a run. */
function endingRoutes(
  app: OpenAPIHono,
  { swarm, cleanChanges }: Pick<RunDeps, "swarm" | "cleanChanges">,
  find: (id: string) => Run,
): void {
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

  const interrupt = createRoute({
    method: "post",
    path: "/api/runs/{id}/interrupt",
    summary: "Stops a run so that it can be resumed, and answers when it has stopped",
    request: { params: RunId },
    responses: answers(200, Run),
  });
  app.openapi(interrupt, async (context) => {
    const { id } = context.req.valid("param");
    find(id);
    return context.json(await swarm.interrupt(id), 200);
  });

  const clean = createRoute({
    method: "post",
    path: "/api/runs/clean",
    summary: "Removes what runs left that have ended: worktrees, branches, refs, sessions, copies",
    request: { body: body(CleanRequest) },
    responses: answers(200, Cleaned),
  });
  app.openapi(clean, async (context) => {
    const { runs, before: given, changes, ...options } = context.req.valid("json");
    const before = given === undefined ? undefined : new Date(given);
    const cleaned = await swarm.clean(runs, { ...options, before });
    return context.json({ ...cleaned, ...(changes && { changes: await cleanChanges({ ...options, before }) }) }, 200);
  });
}

/** The details of a run, and how to apply its result. */
function detailRoutes(app: OpenAPIHono, { swarm, words }: Pick<RunDeps, "swarm" | "words">): void {
  const step = createRoute({
    method: "get",
    path: "/api/runs/{id}/step",
    summary: "One step of a run: what was asked, what was answered, what was seen",
    request: {
      params: RunId,
      query: z.object({
        key: z.string().min(1).max(1_000),
        after: z.coerce
          .number()
          .int()
          .min(0)
          .default(0)
          .describe("What it says while it is at work only from this character on."),
      }),
    },
    responses: answers(200, RunStepDetail),
  });
  app.openapi(step, (context) => {
    const { id } = context.req.valid("param");
    const { key, after } = context.req.valid("query");
    const found = swarm.step(id, key);
    const said = found.state === "begun" ? words.soFar(id, key, after) : undefined;
    return context.json({ ...found, said: said ?? null }, 200);
  });

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
