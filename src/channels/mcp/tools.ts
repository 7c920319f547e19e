import type { CallToolResult, McpServer, ServerContext, ToolAnnotations } from "@modelcontextprotocol/server";
import { z } from "zod";
import { ExitCode, messageOf, UserError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { isFolder } from "../../lib/is-folder.ts";
import { quoted } from "../../lib/quoted.ts";
import { explainIssues } from "../../lib/validation.ts";
import type { Status as IoStatus } from "../../protocol/api.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import { Conversation } from "../../protocol/messages.ts";
import type { BegunRun, Run } from "../../protocol/runs.ts";
import type { Squad, Task } from "../../protocol/squads.ts";
import { BAD_REQUEST, type IoAccess, pageAddress, persistently, segment } from "./access.ts";
import { createWaits, MOST_WAIT_S, type ShownMessage, type Waits } from "./waits.ts";

const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
const ACTS: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const ENDS: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

const wait_seconds = z
  .number()
  .min(0)
  .default(MOST_WAIT_S)
  .describe(`how long to wait for the end, at most ${MOST_WAIT_S} seconds; ask again after that`);
const Id = z.string().min(1).max(100);
const WholePath = z
  .string()
  .max(4_096)
  .regex(/^(?:\/|[A-Za-z]:[\\/])/, "must be a whole path");
const Approvals = z
  .array(z.object({ id: z.string(), summary: z.string(), command: z.string() }))
  .describe("questions that only the user can answer, each with the command that does");
const Status = z.enum(["queued", "running", "waiting", "done", "failed", "cancelled"]);
const Shown = z.object({
  message: z.string(),
  conversation: z.string(),
  status: Status.describe("waiting: the user is being asked"),
  reply: z.string().nullable(),
  approvals: Approvals,
});
const TaskShown = z.object({
  task: z.string(),
  squad: z.string(),
  agent: z.string(),
  description: z.string(),
  status: Status,
  result: z.string().nullable(),
  approvals: Approvals,
});
const RunShown = z.object({
  run: z.string(),
  status: z.string(),
  outcome: z.string().nullable(),
  reason: z.string().nullable(),
  branch: z.string().nullable(),
  phases: z.array(z.object({ name: z.string(), status: z.string() })),
  approvals: Approvals,
});
const Page = z.object({ path: z.string(), title: z.string(), content: z.string() });

interface Definition<I extends z.ZodObject, O extends z.ZodObject> {
  name: string;
  description: string;
  input: I;
  output: O;
  annotations: ToolAnnotations;
  run: (args: z.output<I>, context: ServerContext) => Promise<z.input<O>>;
}

/** What other programs can make IO do. No tool decides a question, sets a budget or changes a setting. */
export function registerTools(server: McpServer, access: IoAccess): void {
  const waits = createWaits(access);
  function add<I extends z.ZodObject, O extends z.ZodObject>({
    name,
    description,
    input,
    output,
    annotations,
    run,
  }: Definition<I, O>) {
    const call = async (args: unknown, context: ServerContext): Promise<CallToolResult> => {
      try {
        const read = input.safeParse(args);
        if (!read.success) throw new UserError(`${name}: ${explainIssues(read.error)}.`, { code: BAD_REQUEST });
        const structuredContent: Record<string, unknown> = output.parse(await run(read.data, context));
        return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
      } catch (error) {
        return { isError: true, content: [{ type: "text", text: failureText(error) }] };
      }
    };
    const inputSchema = unchecked(input);
    server.registerTool(name, { description, inputSchema, outputSchema: output, annotations }, call as never);
  }
  addTalk(add, access, waits);
  addSquads(add, access, waits);
  addRuns(add, access, waits);
  addWiki(add, access);
}

/** Publishes a schema without enforcing it: the API reports errors in IO's own words, like every other failure. */
function unchecked<I extends z.ZodObject>(schema: I): Pick<I, "~standard"> {
  return { "~standard": { ...schema["~standard"], validate: (value: unknown) => ({ value: value as z.output<I> }) } };
}

type Add = <I extends z.ZodObject, O extends z.ZodObject>(definition: Definition<I, O>) => void;

/** Messages, the status, and stopping. */
function addTalk(add: Add, { request }: IoAccess, waits: Waits): void {
  add({
    name: "io_ask",
    description:
      "Say something to IO, an assistant with its own tools, memory and teams on the user's machine. Answers with its reply, or with a message id to ask about with io_message.",
    input: z.object({
      text: z.string().min(1).max(200_000),
      conversation: Conversation.optional().describe("go on in this conversation; without it, that of the folder, or a new one"),
      folder: WholePath.optional().describe("the project it is about"),
      wait_seconds,
    }),
    output: Shown,
    annotations: ACTS,
    async run({ text, conversation, folder, wait_seconds: seconds }, context): Promise<ShownMessage> {
      if (folder !== undefined && !isFolder(folder))
        throw new UserError(`folder: there is no folder ${quoted(folder, 300)}.`, { code: BAD_REQUEST });
      const opened = { ...(folder && { folder }), ...(conversation && { name: conversation }) };
      const place = folder === undefined ? undefined : await request<ConversationInfo>("POST", "/api/conversations", opened);
      // Without a project, the request must not join the user's own conversation `main`.
      const ofProject = place && place.folder !== null ? place.name : undefined;
      const name = conversation ?? ofProject ?? newId("mcp").replace("_", "-");
      const message = { text, conversation: name, source: "mcp", ...(folder && { folder }), idempotencyKey: newId("mcp") };
      const { id } = await persistently(() => request<{ id: string }>("POST", "/api/messages", message));
      return waits.message(id, seconds, context, { cancels: true });
    },
  });
  add({
    name: "io_message",
    description: "What became of a message to IO; waits for its end.",
    input: z.object({ message: Id, wait_seconds }),
    output: Shown,
    annotations: READS,
    run: ({ message, wait_seconds: seconds }, context) => waits.message(message, seconds, context),
  });
  add({
    name: "io_status",
    description: "What IO is doing: its model, its mode, what runs and what waits.",
    input: z.object({}),
    output: z.object({
      version: z.string(),
      mode: z.string().optional(),
      engine: z.object({ kind: z.string(), state: z.string(), model: z.string() }),
      queue: z.object({ waiting: z.number(), running: z.number() }),
      counts: z.record(z.string(), z.number()),
    }),
    annotations: READS,
    run: () => request<IoStatus>("GET", "/api/status"),
  });
  add({
    name: "io_cancel",
    description: "End a message, a task or a run. Give one of the three.",
    input: z.object({ message: Id.optional(), task: Id.optional(), run: Id.optional() }),
    output: z.object({ cancelled: z.string(), status: z.string() }),
    annotations: ENDS,
    async run(given) {
      const named = Object.entries(given).filter(([, id]) => id !== undefined);
      const [kind, id] = named[0] ?? [];
      if (named.length !== 1 || kind === undefined || id === undefined)
        throw new UserError("Give a message, a task or a run: one of them.", { code: BAD_REQUEST });
      const { status } = await request<{ status: string }>("POST", `/api/${kind}s/${segment(id)}/cancel`);
      return { cancelled: id, status };
    },
  });
}

/** Squads and their tasks. */
function addSquads(add: Add, { request }: IoAccess, waits: Waits): void {
  add({
    name: "io_squads",
    description: "IO's squads: lasting teams of agents, one for each project.",
    input: z.object({}),
    output: z.object({
      items: z.array(z.object({ slug: z.string(), name: z.string(), projectPath: z.string(), status: z.string() })),
    }),
    annotations: READS,
    run: () => request<{ items: Squad[] }>("GET", "/api/squads"),
  });
  add({
    name: "io_delegate",
    description: "Give a task to a squad. It works in the background: ask about it with io_task.",
    input: z.object({ squad: Id, task: z.string().min(1).max(200_000), agent: Id.optional() }),
    output: z.object({ task: z.string() }),
    annotations: ACTS,
    async run({ squad, task, agent }) {
      const body = { task, ...(agent && { agent }), conversation: "mcp" };
      return { task: (await request<Task>("POST", `/api/squads/${segment(squad)}/tasks`, body)).id };
    },
  });
  add({
    name: "io_tasks",
    description: "Tasks of IO's squads, newest first.",
    input: z.object({ squad: Id.optional(), status: Status.optional() }),
    output: z.object({ items: z.array(TaskShown) }),
    annotations: READS,
    async run({ squad, status }) {
      // For the API, a task that waits is one that runs.
      const wanted = status === "waiting" ? "running" : status;
      const query = new URLSearchParams({ limit: "50", ...(squad && { squad }), ...(wanted && { status: wanted }) });
      const { items } = await request<{ items: Task[] }>("GET", `/api/tasks?${query}`);
      const shown = (await waits.withApprovals(items)).map(({ seen, approvals }) => shownTask(seen, approvals));
      return { items: shown.filter((task) => status === undefined || task.status === status) };
    },
  });
  add({
    name: "io_task",
    description: "One task of a squad; waits for its end.",
    input: z.object({ task: Id, wait_seconds }),
    output: TaskShown,
    annotations: READS,
    async run({ task, wait_seconds: seconds }, context) {
      const { seen, approvals } = await waits.work<Task>(`/api/tasks/${segment(task)}`, task, seconds, context);
      return shownTask(seen, approvals);
    },
  });
}

/** Runs of the pipeline. */
function addRuns(add: Add, { request }: IoAccess, waits: Waits): void {
  add({
    name: "io_swarm_start",
    description: "Start a run of IO's pipeline: from an issue to reviewed, tested code on a branch. Ask about it with io_swarm.",
    input: z.object({
      project: WholePath.describe("the project's folder, a whole path"),
      issue: z.string().min(1).max(200_000),
      stand_ins: z.boolean().default(false).describe("let other models stand in for those that are not there"),
    }),
    output: z.object({ run: z.string() }),
    annotations: ACTS,
    async run({ project, issue, stand_ins }) {
      const body = { projectPath: project, issue, ...(stand_ins && { standIns: true }) };
      return { run: (await request<BegunRun>("POST", "/api/runs", body)).id };
    },
  });
  add({
    name: "io_swarm",
    description: "One run of the pipeline; waits for its end.",
    input: z.object({ run: Id, wait_seconds }),
    output: RunShown,
    annotations: READS,
    async run({ run, wait_seconds: seconds }, context) {
      const { seen, approvals } = await waits.work<Run>(`/api/runs/${segment(run)}`, run, seconds, context);
      const { id, status, outcome, reason, branch, phases } = seen;
      const shown = phases.map(({ name, status: state }) => ({ name, status: state }));
      return { run: id, status: approvals.length > 0 ? "waiting" : status, outcome, reason, branch, phases: shown, approvals };
    },
  });
}

function addWiki(add: Add, { request }: IoAccess): void {
  add({
    name: "io_wiki_search",
    description: "Pages of IO's long-term memory that hold a text, the best first.",
    input: z.object({ query: z.string().min(1).max(1_000), limit: z.number().int().min(1).max(50).default(10) }),
    output: z.object({ items: z.array(z.looseObject({ path: z.string(), title: z.string() })) }),
    annotations: READS,
    run: ({ query, limit }) => request("GET", `/api/wiki/search?${new URLSearchParams({ q: query, limit: String(limit) })}`),
  });
  add({
    name: "io_wiki_read",
    description: "One page of IO's long-term memory.",
    input: z.object({ path: z.string().min(1).max(500) }),
    output: Page,
    annotations: READS,
    run: ({ path }) => request("GET", pageAddress(path)),
  });
  add({
    name: "io_wiki_write",
    description: "Write a page of IO's long-term memory. What it held before stays in its history.",
    input: z.object({ path: z.string().min(1).max(500), content: z.string().max(400_000) }),
    output: z.object({ path: z.string(), title: z.string() }),
    annotations: { ...ENDS, destructiveHint: false },
    run: ({ path, content }) => request("PUT", pageAddress(path), { content }),
  });
}

/** A failure as `code: sentence`. */
export function failureText(error: unknown): string {
  if (!(error instanceof UserError)) return `internal: ${messageOf(error)}`;
  // IO's API calls what has no code of its own a bad request.
  const code = error.exitCode === ExitCode.unreachable ? "unavailable" : BAD_REQUEST;
  return `${error.code ?? code}: ${error.message}`;
}

const shownTask = (task: Task, approvals: z.input<typeof Approvals>): z.input<typeof TaskShown> => ({
  task: task.id,
  ...{ squad: task.squad, agent: task.agent, description: task.description },
  status: approvals.length > 0 ? "waiting" : task.status,
  result: task.result ?? task.error?.message ?? null,
  approvals,
});
