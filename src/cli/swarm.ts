import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import { nearest } from "../home/config.ts";
import { ExitCode, messageOf, UserError, usageError } from "../lib/errors.ts";
import type { Status } from "../protocol/api.ts";
import { isForAll } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";
import type { BegunRun, Run, RunStatus, Words } from "../protocol/runs.ts";
import { formatDiskState } from "../protocol/shown-state.ts";
import { describeSubstitutes } from "../swarm/agents/served.ts";
import { settingsIn } from "../swarm/pipeline/settings.ts";
import { describeRun } from "../swarm/tools.ts";
import { cleanCommand } from "./clean.ts";
import { askYesNo } from "./input.ts";
import { otherProject, WITH_OPTION } from "./other-projects.ts";
import type { Shell } from "./output.ts";
import { formatPull, isGood, pullsOf } from "./pr.ts";
import { createQuestionsHere } from "./questions-here.ts";
import { approvalsOf, interruption, joinDaemon, variablesIn } from "./swarm-daemon.ts";
import {
  DETACH_OPTION,
  ISSUE_ARGUMENT,
  JSON_OPTION,
  pathOf,
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
  requireChecks?: boolean;
  yes?: boolean;
  detach?: boolean;
  pr?: boolean;
  draft?: boolean;
  with?: string[];
  json?: boolean;
}

/** `io swarm …`, also available as `swarm …`: the pipeline, run by the daemon or by one started for it. */
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
    .option("--pr", "end it with a pull request: push its branch and open one with the evidence")
    .option("--draft", "with --pr: open it as a draft")
    .option(...WITH_OPTION)
    .option("--require-checks", "ask no model unless the project's checks can run here (exit code 2 otherwise)")
    .option("--yes", "outside git, work on a folder however large it is")
    .option(...STAND_INS_OPTION)
    .option(...DETACH_OPTION)
    .option(...JSON_OPTION)
    .action(async (words: string[], options: RunOptions, command: Command) => {
      if (command.parent?.args[0] !== "run") await confirmIfTypo(shell, swarm, words, options);
      const settings = settingsFor(shell, words, options.plan);
      const projectPath = await projectHere();
      const others = (options.with ?? []).map(otherProject);
      const about = [`Project: ${projectPath}`, ...others.map((path) => `With: ${path}`)];
      await follow(shell, { ...options, verbose: options.verbose || settings.verbose, about }, (client) =>
        client.request<BegunRun>("POST", "/api/runs", {
          ...{
            projectPath,
            issue: settings.issue,
            ...requestOptions(shell, options),
            ...(others.length > 0 && { with: others }),
          },
          ...(options.pr && { pull: { ...(options.draft && { draft: true }) } }),
          ...{ apply: options.apply, requireChecks: options.requireChecks },
          ...{ large: options.yes, plan: options.plan !== undefined },
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
    .option(...DETACH_OPTION)
    .option(...JSON_OPTION)
    .action((id: string, options: RunOptions) => {
      const settings = settingsIn(shell.env);
      const verbose = options.verbose || settings.verbose === true;
      return follow(shell, { ...options, verbose }, (client) =>
        client.request<BegunRun>("POST", `${pathOf(id)}/resume`, { issue: settings.issue, ...requestOptions(shell, options) }),
      );
    });
}

/** The request's part about this command: its environment, and whether it stays. */
function requestOptions({ env }: Shell, { standIns, detach = false }: RunOptions) {
  return { standIns, attended: !detach, variables: variablesIn(env), stepSummary: env.GITHUB_STEP_SUMMARY || undefined };
}

/** One lower-case word is more likely a mistyped command than an issue, so it needs confirmation. */
async function confirmIfTypo(shell: Shell, swarm: Command, words: readonly string[], { plan, yes }: RunOptions): Promise<void> {
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

/** Starts or resumes a run and shows it until its end. After Ctrl-C the run can be resumed. */
async function follow(
  shell: Shell,
  options: RunOptions & { about?: string[] },
  begin: (client: Client) => Promise<BegunRun>,
): Promise<void> {
  const stop = interruption();
  const early: Event[] = [];
  // The daemon sends events of every run, so they are buffered until the id of this one is known.
  let hear = (event: Event) => void early.push(event);
  let look = () => {};
  let onWords = (_: Words) => {};
  const { client, news } = await joinDaemon(shell, stop, {
    hear: (event) => hear(event),
    onBack: () => look(),
    ...(options.verbose && { onWords: (words) => onWords(words) }),
  });
  const approvals = approvalsOf(client);
  const { engine } = await client.request<Status>("GET", "/api/status");
  const about = [...(options.about ?? []), `Model: ${engine.why}.`];
  const { id, remarks, ...begun } = await begin(client).catch((error: unknown) => {
    news.leave();
    about.forEach(shell.note);
    throw error;
  });
  if (options.detach) {
    news.leave();
    shell.note(`run ${id}`);
    [...describeSubstitutes(begun.models), ...about, ...remarks].forEach(shell.note);
    return shell.print({ id, ...begun }, `It works in the background. See how it stands: swarm show ${id}`, options);
  }
  const view = await viewHere(shell);
  const progress = view ?? plainProgress(shell);
  const note = (text: string) => progress.note(text);
  onWords = (words) => void (words.owner === id && progress.say(words));
  const input = view?.answers ?? (process.stdin.isTTY && process.stderr.isTTY ? process.stdin : undefined);
  const isOurs = (approval: Approval) => approval.owner.id === id || isForAll(approval);
  const questions = createQuestionsHere({ isOurs, decide: approvals.decide, note, input });
  try {
    const ended = new Promise<void>((end, lose) => {
      const stopped = (status: RunStatus) => void (status !== "running" && end());
      look = () => void client.request<Run>("GET", pathOf(id)).then(({ status }) => stopped(status), lose);
      hear = (event) => {
        questions.hear(event);
        if (event.type === "disk.changed") note(`! ${formatDiskState(event.data)}`);
        if (!isOf(event, id)) return;
        progress.hear(event);
        // Scripts read the run's id from the first line.
        if (event.type === "run.started") [...describeSubstitutes(event.data.models), ...about, ...remarks].forEach(note);
        if (event.type === "run.finished") end();
      };
      early.splice(0).forEach(hear);
      const interrupt = () => void client.request<Run>("POST", `${pathOf(id)}/interrupt`).then(() => end(), lose);
      if (stop.aborted) interrupt();
      else stop.addEventListener("abort", interrupt, { once: true });
      news.ended.catch((error: unknown) => lose(daemonGone(id, error)));
    });
    // Questions asked before the run began may block it too.
    (await approvals.waiting()).forEach(questions.update);
    await ended;
  } finally {
    news.leave();
    questions.close();
    progress.end();
  }
  const run = await client.request<Run>("GET", `${pathOf(id)}?settled=true`);
  const pulls = options.pr ? await pullsOf(shell, run, options) : [];
  shell.print(run, () => [ending(run), ...pulls.map(formatPull)].join("\n"), options);
  const { exitCodeOf } = await import("../swarm/run/swarm.ts");
  process.exitCode = exitCodeOf(run) || (pulls.every(isGood) ? ExitCode.done : ExitCode.failed);
}

/** The error for a run whose daemon is gone. */
function daemonGone(id: string, cause: unknown): UserError {
  return new UserError(
    `The daemon that works on run ${id} has ended or does not answer (${messageOf(cause)}). See how it stands: swarm show ${id}    Go on with it: swarm resume ${id}`,
    { exitCode: ExitCode.unreachable, cause },
  );
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
