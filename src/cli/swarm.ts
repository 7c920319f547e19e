import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { ExitCode, missing, usageError } from "../lib/errors.ts";
import type { Event } from "../protocol/events.ts";
import type { Run, Said } from "../protocol/runs.ts";
import type { Plan } from "../swarm/pipeline/plan.ts";
import { readRunSettings, settingsIn } from "../swarm/pipeline/settings.ts";
import { standIns } from "../swarm/run/served.ts";
import type { RunHandle } from "../swarm/run/swarm.ts";
import { describeRun } from "../swarm/tools.ts";
import type { Shell } from "./output.ts";
import { createProgress, type ProgressDeps } from "./progress.ts";

interface RunOptions {
  plan?: string;
  verbose?: boolean;
  apply?: boolean;
  standIns?: boolean;
  json?: boolean;
}

const STAND_INS_OPTION = ["--stand-ins", "let other models serve for named ones that are not there"] as const;
const JSON_OPTION = ["--json", "print one JSON document"] as const;

/** `io swarm …`, which is also `swarm …`: the pipeline in this process, with or without a daemon, on the same store. */
export function swarmCommands(program: Command, shell: Shell): void {
  const swarm = program
    .command("swarm")
    .description("a pipeline that turns an issue into reviewed, tested code; works on the checkout you stand in");

  swarm
    .command("run", { isDefault: true })
    .description("run the pipeline on an issue")
    .argument("[issue...]", "the issue, in words; else ISSUE_BODY")
    .option("-p, --plan <file>", "take the issue from a plan, as `swarm plan` writes it")
    .option("-v, --verbose", "show what the agents say")
    .option("--apply", "merge the result into the checkout when everything is approved")
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action(async (words: string[], options: RunOptions) => {
      const settings = readRunSettings(shell.env, {
        words: options.plan ? readPlan(options.plan) : words.join(" "),
        issueNeeded: true,
      });
      const projectPath = await projectHere();
      const about = [`Project: ${projectPath}`];
      await follow(shell, { ...options, verbose: options.verbose || settings.verbose, about }, (open) =>
        open.start({ projectPath, issue: settings.issue!, settings, apply: options.apply, standIns: options.standIns }),
      );
    });

  swarm
    .command("plan")
    .description("clarify an issue with the pm, have it analysed, and write plan.md")
    .argument("[issue...]", "the issue, in words; else ISSUE_BODY")
    .option("-p, --plan <file>", "take the issue from a file, such as the draft of a plan that was interrupted")
    .option("-v, --verbose", "show what the agents say")
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action(async (words: string[], options: RunOptions) => {
      const settings = readRunSettings(shell.env, {
        words: options.plan ? readPlan(options.plan) : words.join(" "),
        issueNeeded: true,
      });
      const projectPath = await projectHere();
      shell.note(`Project: ${projectPath}`);
      const progress = createProgress(progressParts(shell));
      const ask = createAsker(shell);
      const stop = new AbortController();
      process.once("SIGINT", () => {
        stop.abort();
        ask.close();
      });
      await withSwarm(shell, true, {}, async ({ swarm: open, choice }) => {
        shell.note(`Model: ${choice.why}.`);
        const planned = await open.plan({
          projectPath,
          issue: settings.issue!,
          settings,
          ask: ask.question,
          standIns: options.standIns,
          signal: stop.signal,
          onModel: (model) => standIns([model]).forEach(shell.note),
          onTurn: (agent) => {
            progress.end();
            shell.note(`${agent} reads and thinks …`);
          },
          ...((options.verbose || settings.verbose) && { onSay: progress.say }),
        });
        progress.end();
        shell.print(planned, `The plan is in ${planned.path}. Run it with: swarm run -p ${planned.path}`, options);
      }).finally(ask.close);
    });

  swarm
    .command("validate")
    .description("check the pipeline file, print what it resolves to and the most it can cost")
    .argument("[file]", "a pipeline file; else the swarm.config.yaml of the project, else the default")
    .option(...JSON_OPTION)
    .action(async (file: string | undefined, options: { json?: boolean }) => {
      const settings = readRunSettings(shell.env);
      const projectPath = await projectHere();
      const { WrongPipeline } = await import("../swarm/pipeline/file.ts");
      await withSwarm(shell, false, {}, async ({ swarm: open }) => {
        try {
          const plan = open.validate({ projectPath, settings, pipelineFile: file && resolve(file) });
          shell.print({ valid: true, problems: [], ...plan }, () => describePlan(plan), options);
        } catch (error) {
          if (!options.json || !(error instanceof WrongPipeline)) throw error;
          shell.print({ valid: false, problems: error.problems, notes: [] }, error.message, options);
          process.exitCode = ExitCode.usage;
        }
      });
    });

  swarm
    .command("list")
    .description("the runs, the latest first")
    .option(...JSON_OPTION)
    .action((options: { json?: boolean }) =>
      withSwarm(shell, false, {}, async ({ swarm: open }) => {
        const items = open.list();
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
    .action((id: string, options: { json?: boolean }) =>
      withSwarm(shell, false, {}, async ({ swarm: open }) => {
        const run = open.show(id);
        if (!run) throw missing(`There is no run "${id}". List the runs with: swarm list`);
        shell.print(run, () => describeRun(run), options);
      }),
    );

  swarm
    .command("resume")
    .description("go on with a run that was interrupted, cancelled or has failed")
    .argument("<run>")
    .option("-v, --verbose", "show what the agents say")
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action((id: string, options: RunOptions) => {
      const settings = settingsIn(shell.env);
      const verbose = options.verbose || settings.verbose === true;
      return follow(shell, { ...options, verbose }, (open) =>
        open.resume(id, { settings, issue: settings.issue, standIns: options.standIns }),
      );
    });

  swarm
    .command("cancel")
    .description("end a run, wherever it works")
    .argument("<run>")
    .option(...JSON_OPTION)
    .action((id: string, options: { json?: boolean }) =>
      withSwarm(shell, false, {}, async ({ swarm: open }) => {
        const run = open.cancel(id);
        shell.print(run, `Run ${id}: ${run.status === "running" ? "is being cancelled" : run.status}.`, options);
      }),
    );
}

async function projectHere(): Promise<string> {
  const { projectAround } = await import("../swarm/run/checkout.ts");
  return projectAround(process.cwd());
}

type OpenSwarm = Awaited<ReturnType<typeof import("../daemon/core.ts").openSwarm>>;

async function withSwarm<T>(
  shell: Shell,
  needsEngine: boolean,
  options: { onSay?: (said: Said) => void },
  work: (open: OpenSwarm) => Promise<T>,
): Promise<T> {
  const { openSwarm } = await import("../daemon/core.ts");
  const open = await openSwarm({ env: shell.env, needsEngine, ...options });
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** Starts or resumes a run and shows it to its end. Ctrl-C leaves it to be resumed. */
async function follow(
  shell: Shell,
  options: RunOptions & { about?: string[] },
  begin: (swarm: OpenSwarm["swarm"]) => Promise<RunHandle>,
): Promise<void> {
  const progress = createProgress({ ...progressParts(shell), live: process.stderr.isTTY === true && !shell.env.CI });
  const onSay = options.verbose ? { onSay: progress.say } : {};
  const { exitCodeOf } = await import("../swarm/run/swarm.ts");
  await withSwarm(shell, true, onSay, async ({ swarm, hub, choice }) => {
    const about = [...(options.about ?? []), `Model: ${choice.why}.`];
    // The runs of other processes on this store are heard here too.
    const early: Event[] = [];
    let hear = (event: Event) => void early.push(event);
    const unsubscribe = hub.subscribe((event) => hear(event));
    const handle = await begin(swarm).catch((error: unknown) => {
      about.forEach(shell.note);
      throw error;
    });
    hear = (event) => {
      if (!("runId" in event.data) || event.data.runId !== handle.id) return;
      progress.hear(event);
      // Scripts read the run's id from the first line.
      if (event.type === "run.started") about.forEach(progress.note);
    };
    early.forEach(hear);
    const interrupt = () => void swarm.close();
    process.once("SIGINT", interrupt);
    process.once("SIGTERM", interrupt);
    const run = await handle.finished;
    unsubscribe();
    progress.end();
    shell.print(run, () => ending(run), options);
    process.exitCode = exitCodeOf(run);
  });
}

function progressParts(shell: Shell): ProgressDeps {
  return {
    write: (text) => process.stderr.write(text),
    live: false,
    colour: process.stderr.isTTY === true && !shell.env.NO_COLOR,
    columns: () => process.stderr.columns || 80,
    rows: () => process.stderr.rows || 24,
  };
}

function ending(run: Run): string {
  const resume = run.status === "interrupted" ? `\nGo on with it: swarm resume ${run.id}` : "";
  const look =
    run.branch && !run.applied && run.outcome === "approved"
      ? `\nLook at it: git diff ...${run.branch}    Take it: git merge ${run.branch}`
      : "";
  return `${describeRun(run)}${look}${resume}`;
}

function describePlan(plan: Plan): string {
  const phases = plan.phases.flatMap(({ phase, condition, agents, maxCalls }) => [
    `${phase}${condition ? ` (if ${condition})` : ""}: at most ${maxCalls} calls${phase === "implement" ? " a task" : ""}`,
    ...agents.map(
      ({ name, duty, model, tools, path }) => `  ${name} ${duty} on ${model}, tools: ${tools.join(", ") || "none"} (${path})`,
    ),
  ]);
  const costs = plan.maxCalls.map(({ tasks, calls }) => `${calls} with ${tasks} task${tasks === 1 ? "" : "s"}`).join(", ");
  return [
    `${plan.file} is in order.`,
    `Models: ${plan.primaryModel}, for reviews ${plan.reviewModel}. Streams at once: ${plan.concurrency}. Checks: ${plan.checks?.join("; ") ?? "found in the project"}.`,
    "Whether the models are there is looked up when a run begins, before any of them is asked.",
    ...phases,
    `Most agent calls: ${costs}; each may be tried ${plan.triesPerCall} times.`,
    ...plan.notes,
  ].join("\n");
}

function readPlan(file: string): string {
  const path = resolve(file);
  if (!existsSync(path)) throw usageError(`${path}: there is no such plan. Make one with: swarm plan "<issue>"`);
  const text = readFileSync(path, "utf8");
  if (text.trim() === "") throw usageError(`${path}: the plan is empty.`);
  return text;
}

/** Puts questions to a person, or reads answers from a pipe; an empty line or the end of input means: use your judgement. */
function createAsker(shell: Shell) {
  const lines = createInterface({ input: process.stdin, terminal: false });
  const waiting: ((line: string | null) => void)[] = [];
  const ready: string[] = [];
  let ended = false;
  lines.on("line", (line) => {
    const next = waiting.shift();
    if (next) next(line);
    else ready.push(line);
  });
  lines.on("close", () => {
    ended = true;
    for (const next of waiting.splice(0)) next(null);
  });
  return {
    question(questions: string): Promise<string | null> {
      shell.note(`\n${questions}\n\n(your answer, or an empty line for: use your judgement)`);
      const line = ready.shift();
      if (line !== undefined) return Promise.resolve(line);
      if (ended) return Promise.resolve(null);
      return new Promise((answer) => waiting.push(answer));
    },
    close: () => lines.close(),
  };
}
