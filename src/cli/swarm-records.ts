import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { ExitCode, messageOf } from "../lib/errors.ts";
import type { PlannedCheck } from "../protocol/plans.ts";
import type { Run, RunSummary } from "../protocol/runs.ts";
import type { ProjectConventions, Squad } from "../protocol/squads.ts";
import { type ChosenChecks, chosenBy, formatPlannedChecks } from "../swarm/checks/chosen-checks.ts";
import type { Plan } from "../swarm/pipeline/plan.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import { describeRun, stateOf } from "../swarm/tools.ts";
import type { Shell } from "./output.ts";
import { throughOwner } from "./owner.ts";
import { JSON_OPTION, pathOf, projectHere } from "./swarm-options.ts";

interface Options {
  json?: boolean;
}

/** The commands about runs and pipelines that need no engine, so they work even if the provider does not. */
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
    .action(async (options: Options) => {
      const list = await throughOwner<{ items: RunSummary[] }>(shell, {
        ask: (client) => client.request("GET", "/api/runs"),
        here: ({ records }) => ({ items: records().list() }),
      });
      const lines = list.items.map(
        ({ id, createdAt, issue, ...run }) =>
          `${id}  ${createdAt.slice(0, 16).replace("T", " ")}  ${stateOf({ kind: "run", ...run }).padEnd(15)} ${(issue.trim().split("\n", 1)[0] ?? "").slice(0, 80)}`,
      );
      shell.print(list, lines.join("\n") || "There are no runs yet.", options);
    });

  swarm
    .command("show")
    .description("one run: phases, streams, verdicts, evidence")
    .argument("<run>")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Options) => {
      const run = await throughOwner<Run>(shell, {
        ask: (client) => client.request<Run>("GET", pathOf(id)),
        here: ({ records }) => records().view(id),
      });
      shell.print(run, () => describeRun(run), options);
    });

  swarm
    .command("cancel")
    .description("end a run, wherever it works")
    .argument("<run>")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Options) => {
      const run = await throughOwner<Run>(shell, {
        ask: (client) => client.request<Run>("POST", `${pathOf(id)}/cancel`),
        here: ({ records }) => records().cancel(id),
      });
      const [is, then] = run.status === "running" ? ["is being cancelled", "When it has ended, remove"] : [run.status, "Remove"];
      shell.print(run, `Run ${id}: ${is}.\n${then} what it left with: swarm clean ${id}`, options);
    });
}

async function validate(shell: Shell, file: string | undefined, options: Options): Promise<void> {
  const settings = readRunSettings(shell.env);
  const projectPath = await projectHere();
  const { WrongPipeline } = await import("../swarm/pipeline/problems.ts");
  const { createPipelines } = await import("../swarm/run/pipelines.ts");
  try {
    const pipelines = createPipelines();
    const of = { projectPath, settings, pipelineFile: file && resolve(file) };
    const plan = await pipelines.validate(of);
    const conventions = await pipelines.conventions(projectPath);
    const commands = await pipelines.checks(of, await checkFinders(shell, pipelines.open(projectPath)));
    const document = { valid: true, problems: [], ...plan, commands, conventions };
    shell.print(document, () => describePlan(plan, { conventions, commands }), options);
  } catch (error) {
    if (!options.json || !(error instanceof WrongPipeline)) throw error;
    shell.print({ valid: false, problems: error.problems, notes: [] }, error.message, options);
    process.exitCode = ExitCode.usage;
  }
}

/** Finds the checks of a project: those set for its squad, else those named in its files. */
async function checkFinders(shell: Shell, projectPath: string) {
  const { findChecksAlone } = await import("../daemon/git-alone.ts");
  const chosen = !existsSync(shell.paths.database)
    ? null
    : await throughOwner<ChosenChecks | null>(shell, {
        async ask(client) {
          const { items } = await client.request<{ items: Squad[] }>("GET", "/api/squads");
          return chosenBy(items.find((squad) => squad.projectPath === projectPath));
        },
        here: ({ chosenChecks }) => chosenChecks(projectPath),
      }).catch((error: unknown) => {
        shell.note(`Whether a squad has checks of its own for this project is not known: ${messageOf(error)}`);
        return null;
      });
  return {
    findChecks: (folder: string) => findChecksAlone(shell.env, folder),
    chosenChecks: () => chosen,
  };
}

interface AboutProject {
  conventions: ProjectConventions;
  commands: readonly PlannedCheck[];
}

function describePlan(plan: Plan, { conventions, commands }: AboutProject): string {
  const phases = plan.phases.flatMap(({ phase, condition, agents, maxCalls, perTask }) => [
    `${phase}${condition ? ` (if ${condition})` : ""}: at most ${maxCalls} calls${perTask ? " a task" : ""}`,
    ...agents.map(
      ({ name, duty, model, tools, path }) => `  ${name} ${duty} on ${model}, tools: ${tools.join(", ") || "none"} (${path})`,
    ),
  ]);
  const costs = plan.maxCalls.map(({ tasks, calls }) => `${calls} with ${tasks} task${tasks === 1 ? "" : "s"}`).join(", ");
  return [
    `${plan.file} is in order.`,
    `Models: ${plan.primaryModel}, for reviews ${plan.reviewModel}. Streams at once: ${plan.concurrency}.`,
    ...formatPlannedChecks(commands),
    "Whether the models are there is looked up when a run begins, before any of them is asked.",
    `The project's conventions: ${conventions.files.join(", ") || "none (no AGENTS.md)"}.`,
    ...conventions.refused.map((why) => `  not read: ${why}`),
    ...phases,
    `Most agent calls: ${costs}; each may be tried ${plan.triesPerCall} times.`,
    ...plan.notes,
  ].join("\n");
}
