import { resolve } from "node:path";
import type { Command } from "commander";
import { ExitCode, missing } from "../lib/errors.ts";
import type { ProjectConventions } from "../protocol/squads.ts";
import type { Plan } from "../swarm/pipeline/plan.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import type { RunRecords } from "../swarm/run/records.ts";
import { describeRun } from "../swarm/tools.ts";
import type { Shell } from "./output.ts";
import { JSON_OPTION, projectHere } from "./swarm-options.ts";

interface Options {
  json?: boolean;
}

/** The commands about runs and pipelines that need no engine: they work whatever is wrong with the provider. */
export function recordCommands(swarm: Command, shell: Shell): void {
  swarm
    .command("validate")
    .description("check the pipeline file, print what it resolves to and the most it can cost")
    .argument("[file]", "a pipeline file; else the swarm.config.yaml of the project, else the default")
    .option(...JSON_OPTION)
    .action((file: string | undefined, options: Options) => validate(shell, file, options));

  swarm
    .command("list")
    .description("the runs, the latest first")
    .option(...JSON_OPTION)
    .action((options: Options) =>
      withRecords(shell, (records) => {
        const items = records.list();
        const lines = items.map(
          ({ id, status, outcome, createdAt, issue }) =>
            `${id}  ${createdAt.slice(0, 16).replace("T", " ")}  ${(outcome ?? status).padEnd(11)} ${(issue.trim().split("\n", 1)[0] ?? "").slice(0, 80)}`,
        );
        shell.print({ items }, lines.join("\n") || "There are no runs yet.", options);
      }),
    );

  swarm
    .command("show")
    .description("one run: phases, streams, verdicts, evidence")
    .argument("<run>")
    .option(...JSON_OPTION)
    .action((id: string, options: Options) =>
      withRecords(shell, (records) => {
        const run = records.show(id);
        if (!run) throw missing(`There is no run "${id}". List the runs with: swarm list`);
        shell.print(run, () => describeRun(run), options);
      }),
    );

  swarm
    .command("cancel")
    .description("end a run, wherever it works")
    .argument("<run>")
    .option(...JSON_OPTION)
    .action((id: string, options: Options) =>
      withRecords(shell, (records) => {
        const run = records.cancel(id);
        const [is, then] =
          run.status === "running" ? ["is being cancelled", "When it has ended, remove"] : [run.status, "Remove"];
        shell.print(run, `Run ${id}: ${is}.\n${then} what it left with: swarm clean ${id}`, options);
      }),
    );
}

async function withRecords(shell: Shell, work: (records: RunRecords) => void): Promise<void> {
  const { openRunRecords } = await import("../daemon/run-records.ts");
  const { records, close } = openRunRecords(shell.env);
  try {
    work(records);
  } finally {
    close();
  }
}

async function validate(shell: Shell, file: string | undefined, options: Options): Promise<void> {
  const settings = readRunSettings(shell.env);
  const projectPath = await projectHere();
  const { WrongPipeline } = await import("../swarm/pipeline/problems.ts");
  const { createPipelines } = await import("../swarm/run/pipelines.ts");
  try {
    const pipelines = createPipelines();
    const plan = await pipelines.validate({ projectPath, settings, pipelineFile: file && resolve(file) });
    const conventions = await pipelines.conventions(projectPath);
    shell.print({ valid: true, problems: [], ...plan, conventions }, () => describePlan(plan, conventions), options);
  } catch (error) {
    if (!options.json || !(error instanceof WrongPipeline)) throw error;
    shell.print({ valid: false, problems: error.problems, notes: [] }, error.message, options);
    process.exitCode = ExitCode.usage;
  }
}

function describePlan(plan: Plan, conventions: ProjectConventions): string {
  const phases = plan.phases.flatMap(({ phase, condition, agents, maxCalls, perTask }) => [
    `${phase}${condition ? ` (if ${condition})` : ""}: at most ${maxCalls} calls${perTask ? " a task" : ""}`,
    ...agents.map(
      ({ name, duty, model, tools, path }) => `  ${name} ${duty} on ${model}, tools: ${tools.join(", ") || "none"} (${path})`,
    ),
  ]);
  const costs = plan.maxCalls.map(({ tasks, calls }) => `${calls} with ${tasks} task${tasks === 1 ? "" : "s"}`).join(", ");
  return [
    `${plan.file} is in order.`,
    `Models: ${plan.primaryModel}, for reviews ${plan.reviewModel}. Streams at once: ${plan.concurrency}. Checks: ${plan.checks?.join("; ") ?? "found in the project"}.`,
    "Whether the models are there is looked up when a run begins, before any of them is asked.",
    `The project's conventions: ${conventions.files.join(", ") || "none (no AGENTS.md)"}.`,
    ...conventions.refused.map((why) => `  not read: ${why}`),
    ...phases,
    `Most agent calls: ${costs}; each may be tried ${plan.triesPerCall} times.`,
    ...plan.notes,
  ].join("\n");
}
