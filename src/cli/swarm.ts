import type { Command } from "commander";
import { nearest } from "../lib/config.ts";
import { UserError, usageError } from "../lib/errors.ts";
import type { Event } from "../protocol/events.ts";
import type { Run, Said } from "../protocol/runs.ts";
import { settingsIn } from "../swarm/pipeline/settings.ts";
import type { RunHandle } from "../swarm/run/lives.ts";
import { standIns } from "../swarm/run/served.ts";
import { describeRun } from "../swarm/tools.ts";
import { cleanCommand } from "./clean.ts";
import { askYesNo } from "./input.ts";
import type { Shell } from "./output.ts";
import { createQuestionsHere } from "./swarm-approvals.ts";
import { type OpenSwarm, withSwarm } from "./swarm-engine.ts";
import {
  ISSUE_ARGUMENT,
  JSON_OPTION,
  plainProgress,
  projectHere,
  STAND_INS_OPTION,
  settingsFor,
  VERBOSE_OPTION,
  viewHere,
} from "./swarm-options.ts";
import { planCommand } from "./swarm-plan.ts";
import { recordCommands } from "./swarm-records.ts";

interface RunOptions {
  plan?: string;
  verbose?: boolean;
  apply?: boolean;
  standIns?: boolean;
  yes?: boolean;
  json?: boolean;
}

/** `io swarm …`, also known as `swarm …`: the pipeline in this process, with or without a daemon, on the same store. */
export function swarmCommands(program: Command, shell: Shell): void {
  const swarm = program
    .command("swarm")
    .description("a pipeline that turns an issue into reviewed, tested code; works on the checkout you stand in");

  swarm
    .command("run", { isDefault: true })
    .description("run the pipeline on an issue")
    .argument(...ISSUE_ARGUMENT)
    .option("-p, --plan <file>", "take the issue from a plan, as `swarm plan` writes it")
    .option(...VERBOSE_OPTION)
    .option("--apply", "merge the result into the checkout when everything is approved")
    .option("--yes", "outside git, work on a folder however large it is")
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action(async (words: string[], options: RunOptions, command: Command) => {
      if (command.parent?.args[0] !== "run") await makeSure(shell, swarm, words, options);
      const settings = settingsFor(shell, words, options.plan);
      const projectPath = await projectHere();
      const about = [`Project: ${projectPath}`];
      await follow(shell, { ...options, verbose: options.verbose || settings.verbose, about }, (open) =>
        open.start({
          ...{ projectPath, issue: settings.issue, settings },
          ...{ apply: options.apply, standIns: options.standIns, large: options.yes },
          onNote: (text) => about.push(text),
          plan: options.plan !== undefined,
        }),
      );
    });
  planCommand(swarm, shell);
  recordCommands(swarm, shell);
  cleanCommand(swarm, shell);
  swarm
    .command("resume")
    .description("go on with a run that was interrupted, cancelled or has failed")
    .argument("<run>")
    .option(...VERBOSE_OPTION)
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action((id: string, options: RunOptions) => {
      const settings = settingsIn(shell.env);
      const verbose = options.verbose || settings.verbose === true;
      return follow(shell, { ...options, verbose }, (open) =>
        open.resume(id, { settings, issue: settings.issue, standIns: options.standIns }),
      );
    });
}

/** One lower-case word is more likely a mistyped command than an issue: a pipeline is not begun by mistake. */
async function makeSure(shell: Shell, swarm: Command, words: readonly string[], { plan, yes }: RunOptions): Promise<void> {
  const [word] = words;
  if (yes || plan !== undefined || words.length !== 1 || word === undefined || !/^[a-z][a-z0-9_-]{2,}$/.test(word)) return;
  const near = nearest(
    word,
    swarm.commands.map((each) => each.name()),
  );
  const hint = `"${word}" is no command of swarm.${near ? ` Did you mean "swarm ${near}"?` : ""}`;
  if (!shell.isTerminal) throw usageError(`${hint} If it is the issue, say so: swarm run "${word}"`);
  if (!(await askYesNo(`${hint} Run the pipeline with "${word}" as the issue?`))) throw new UserError("Nothing was started.");
}

/** Begins or resumes a run and shows it to its end. Ctrl-C leaves a run that can be resumed. */
async function follow(
  shell: Shell,
  options: RunOptions & { about?: string[] },
  begin: (swarm: OpenSwarm["swarm"]) => Promise<RunHandle>,
): Promise<void> {
  const view = await viewHere(shell);
  const progress = view ?? plainProgress(shell);
  const onSay = options.verbose ? { onSay: (said: Said) => progress.say(said) } : {};
  const { exitCodeOf } = await import("../swarm/run/swarm.ts");
  await withSwarm(shell, onSay, async ({ swarm, hub, approvals, choice }) => {
    const about = [...(options.about ?? []), `Model: ${choice.why}.`];
    // The hub also tells of runs in other processes, so nothing is shown before this run's id is known.
    const early: Event[] = [];
    let hear = (event: Event) => void early.push(event);
    const unsubscribe = hub.subscribe((event) => hear(event));
    const handle = await begin(swarm).catch((error: unknown) => {
      about.forEach(shell.note);
      throw error;
    });
    const note = (text: string) => progress.note(text);
    const input = view?.answers ?? (process.stdin.isTTY && process.stderr.isTTY ? process.stdin : undefined);
    const questions = createQuestionsHere({ runId: handle.id, decide: approvals.decide, note, input });
    hear = (event) => {
      questions.hear(event);
      if (!isOf(event, handle.id)) return;
      progress.hear(event);
      // Scripts read the run's id from the first line.
      if (event.type === "run.started") [...standIns(event.data.models), ...about, ...handle.notes].forEach(note);
    };
    early.forEach(hear);
    const interrupt = () => void swarm.close();
    process.once("SIGINT", interrupt);
    process.once("SIGTERM", interrupt);
    const run = await handle.finished.finally(async () => {
      // The last of it may wait for another process that holds the database.
      await hub.settled();
      unsubscribe();
      questions.close();
      progress.end();
    });
    shell.print(run, () => ending(run), options);
    process.exitCode = exitCodeOf(run);
  });
}

function isOf(event: Event, id: string): boolean {
  if (event.type === "approval.asked" || event.type === "approval.decided") return event.data.owner.id === id;
  return "runId" in event.data && event.data.runId === id;
}

function ending(run: Run): string {
  const resume =
    run.status === "interrupted" ? `\nGo on with it: swarm resume ${run.id}    Remove what it left: swarm clean ${run.id}` : "";
  const look =
    run.branch && !run.applied && run.outcome === "approved"
      ? `\nLook at it: git diff ...${run.branch}    Take it: git merge ${run.branch}`
      : "";
  return `${describeRun(run)}${look}${resume}`;
}
