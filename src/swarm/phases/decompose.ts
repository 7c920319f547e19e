import { z } from "zod";
import { decomposePrompt, describeTask, repairPrompt } from "../agents/prompts.ts";
import { readTasks, type SwarmTask } from "../agents/task-list.ts";
import { phaseNextTo } from "../pipeline/kind.ts";
import { modelOn } from "../pipeline/named-models.ts";
import { AgentName, FRONTEND_MARKER } from "../pipeline/schema.ts";
import { RunFailed } from "../steps/journal.ts";
import { tasksKey } from "../steps/keys.ts";
import { firstEngineers, prepareFirstStream } from "../streams/engineers.ts";
import { implement } from "./implement.ts";
import { phaseKind } from "./kind.ts";

const name = "decompose";
const standard = { agent: "pm" };

/** Splits the specification into tasks; a reply without a task list is asked for again. */
export const decompose = phaseKind({
  name,
  schema: z.strictObject({
    phase: z.literal(name),
    agent: AgentName.default(standard.agent),
    frontendMarker: z.string().trim().min(1).default(FRONTEND_MARKER),
  }),
  standard,
  usedBy: [implement.name],
  members: ({ agent }) => [{ name: agent, duty: "plan", label: "splits", on: "fast" }],
  mostCalls: (_, { maxRetries }) => 1 + maxRetries,
  firstAsked: ({ id, agent }, { pipeline, cwd }) => [
    { key: tasksKey(id, agent, 1), agent, duty: "plan", model: modelOn(pipeline, "fast"), cwd },
  ],
  async run(context, phase, progress) {
    const { id, agent, frontendMarker } = phase;
    const { caller, about, pipeline, workplace, settings } = context;
    const built = phaseNextTo(pipeline, phase, "after", implement);
    const asked = decomposePrompt(about, progress, frontendMarker);
    let prompt = asked;
    let problem = "";
    for (let round = 1; round <= 1 + settings.maxRetries; round += 1) {
      const reply = await caller.ask({
        key: tasksKey(id, agent, round),
        phase: id,
        agent,
        duty: "plan",
        model: modelOn(pipeline, "fast"),
        cwd: workplace.workspace.cwd,
        prompt,
        verdict: (text) => {
          const read = readTasks(text, frontendMarker);
          return "tasks" in read ? `${read.tasks.length} ${read.tasks.length === 1 ? "task" : "tasks"}` : "no tasks";
        },
        next: built === undefined ? [] : firstEngineers(context, built, progress.streams.length),
        meanwhile: () => {
          if (built !== undefined && round === 1) prepareFirstStream(context, built, progress.streams.length);
        },
      });
      if (!reply.ok) throw new RunFailed(`${id}: ${agent} gave no tasks: ${reply.reason}`);
      const read = readTasks(reply.text, frontendMarker);
      if ("tasks" in read) {
        const list = read.tasks.map(listed).join("\n\n");
        context.documents.write(`${agent}-tasks.md`, `Tasks by ${agent}`, list, context.served(id));
        return { ...progress, tasks: read.tasks };
      }
      problem = read.problem;
      prompt = repairPrompt(asked, reply.text, problem);
    }
    throw new RunFailed(`${id}: ${agent} gave no list of tasks: ${problem}`);
  },
  documents: ({ agent }) => [`${agent}-tasks.md`],
  /** Replies without tasks are successful steps, so they have to be named. */
  askAgain(_, steps) {
    const calls = steps.filter((step) => step.kind === "call");
    return calls.some((step) => step.state === "failed") ? [] : calls;
  },
});

function listed(task: SwarmTask): string {
  const facts = [task.frontend ? "frontend" : "", task.dependsOn.length > 0 ? `after ${task.dependsOn.join(", ")}` : ""].filter(
    Boolean,
  );
  return `${describeTask(task)}${facts.length > 0 ? `\n\n(${facts.join("; ")})` : ""}`;
}
