import type { DecomposePhase } from "../pipeline/schema.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { RunFailed } from "../run/journal.ts";
import { engineers, tasksKey } from "../run/prefetch.ts";
import { decomposePrompt, describeTask, repairPrompt } from "./prompts.ts";
import { readTasks, type SwarmTask } from "./task-list.ts";

/** Splits the specification into tasks; a reply that is no such list is asked for again. */
export async function runDecompose(context: RunContext, phase: DecomposePhase, progress: Progress): Promise<Progress> {
  const { caller, about, pipeline, workplace, settings } = context;
  const asked = decomposePrompt(about, progress.spec, phase.frontendMarker);
  let prompt = asked;
  let problem = "";
  for (let round = 1; round <= 1 + settings.maxRetries; round += 1) {
    const reply = await caller.ask({
      key: tasksKey(phase.agent, round),
      phase: "decompose",
      agent: phase.agent,
      duty: "plan",
      model: pipeline.primaryModel,
      cwd: workplace.workspace.cwd,
      prompt,
      next: engineers(pipeline, workplace, context.runId),
    });
    if (!reply.ok) throw new RunFailed(`decompose: ${phase.agent} gave no tasks: ${reply.reason}`);
    const read = readTasks(reply.text, phase.frontendMarker);
    if ("tasks" in read) {
      const list = read.tasks.map(listed).join("\n\n");
      context.documents.write(`${phase.agent}-tasks.md`, `Tasks by ${phase.agent}`, list, context.served("decompose"));
      return { ...progress, tasks: read.tasks };
    }
    problem = read.problem;
    prompt = repairPrompt(asked, reply.text, problem);
  }
  throw new RunFailed(`decompose: ${phase.agent} gave no list of tasks: ${problem}`);
}

function listed(task: SwarmTask): string {
  const facts = [task.frontend ? "frontend" : "", task.dependsOn.length > 0 ? `after ${task.dependsOn.join(", ")}` : ""].filter(
    Boolean,
  );
  return `${describeTask(task)}${facts.length > 0 ? `\n\n(${facts.join("; ")})` : ""}`;
}
