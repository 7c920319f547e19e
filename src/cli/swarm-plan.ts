import { createInterface } from "node:readline";
import type { Command } from "commander";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { Status } from "../protocol/api.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";
import type { Planning } from "../protocol/plans.ts";
import type { Words } from "../protocol/runs.ts";
import { formatDiskState } from "../protocol/shown-state.ts";
import { describeSubstitutes } from "../swarm/agents/served.ts";
import { formatPlannedChecks } from "../swarm/checks/chosen-checks.ts";
import type { Shell } from "./output.ts";
import { createQuestionsHere } from "./questions-here.ts";
import { approvalsOf, interruption, joinDaemon, variablesIn } from "./swarm-daemon.ts";
import {
  ISSUE_ARGUMENT,
  JSON_OPTION,
  plainProgress,
  projectHere,
  STAND_INS_OPTION,
  settingsFor,
  VERBOSE_OPTION,
} from "./swarm-options.ts";
import { startWorking, type WorkingLine } from "./working.ts";

interface PlanOptions {
  plan?: string;
  verbose?: boolean;
  standIns?: boolean;
  json?: boolean;
}

export function planCommand(swarm: Command, shell: Shell): void {
  swarm
    .command("plan")
    .description("clarify an issue with the pm, have it analysed, and write plan.md")
    .argument(...ISSUE_ARGUMENT)
    .option("-p, --plan <file>", "take the issue from a file, such as the draft of a plan that was interrupted")
    .option(...VERBOSE_OPTION)
    .option(...STAND_INS_OPTION)
    .option(...JSON_OPTION)
    .action((words: string[], options: PlanOptions) => plan(shell, words, options));
}

async function plan(shell: Shell, words: readonly string[], options: PlanOptions): Promise<void> {
  const settings = settingsFor(shell, words, options.plan);
  const projectPath = await projectHere();
  shell.note(`Project: ${projectPath}`);
  const progress = plainProgress(shell);
  const asker = createAsker(shell);
  const isTold = options.verbose || settings.verbose;
  let working: WorkingLine | undefined;
  const stop = interruption();
  stop.addEventListener("abort", () => asker.close());
  const early: Planning[] = [];
  let follow = (planning: Planning) => void early.push(planning);
  let hear = (_: Event) => {};
  let onWords = (_: Words) => {};
  const { client, news } = await joinDaemon(shell, stop, {
    hear(event) {
      hear(event);
      if (event.type === "plan.changed") follow(event.data);
    },
    ...(isTold && { onWords: (words) => onWords(words) }),
  });
  try {
    const { engine } = await client.request<Status>("GET", "/api/status");
    shell.note(`Model: ${engine.why}.`);
    // A plan makes no tool call that needs approval: only a budget can block it. Lines typed here answer the pm.
    const isOurs = ({ kind }: Approval) => kind === "budget";
    const approvals = approvalsOf(client);
    const questions = createQuestionsHere({ isOurs, decide: approvals.decide, note: shell.note });
    (await approvals.waiting()).forEach(questions.update);
    hear = (event) => {
      questions.hear(event);
      if (event.type === "disk.changed") shell.note(`! ${formatDiskState(event.data)}`);
    };
    const { id } = await client.request<Planning>("POST", "/api/plans", {
      ...{ projectPath, issue: settings.issue, standIns: options.standIns, variables: variablesIn(shell.env) },
    });
    onWords = (words) => void (words.owner === id && progress.say(words));
    const answer = async (asked: string) => {
      working?.end();
      const text = await asker.question(asked);
      if (!stop.aborted) await client.request("POST", `/api/plans/${id}/answer`, { text });
    };
    const planned = await new Promise<Planning>((end, lose) => {
      let seen: Planning | undefined;
      follow = (planning) => {
        if (planning.id !== id) return;
        if (planning.model && !seen?.model) describeSubstitutes([planning.model]).forEach(shell.note);
        if (planning.agent !== null && planning.turns > (seen?.turns ?? 0)) {
          progress.end();
          working?.end();
          shell.note(`${planning.agent} reads and thinks …`);
          if (!isTold) working = startWorking(shell, planning.agent);
        }
        if (planning.questions !== null && planning.round > (seen?.round ?? 0)) answer(planning.questions).catch(lose);
        seen = planning;
        if (planning.finishedAt !== null) end(planning);
      };
      early.splice(0).forEach(follow);
      const cancel = () => void client.request("POST", `/api/plans/${id}/cancel`).catch(lose);
      if (stop.aborted) cancel();
      else stop.addEventListener("abort", cancel, { once: true });
      news.ended.catch(lose);
    });
    progress.end();
    working?.end();
    const { result, status, error } = planned;
    if (!result)
      throw new UserError(error ?? "planning ended early", {
        exitCode: status === "cancelled" ? ExitCode.interrupted : ExitCode.failed,
      });
    const told = [
      `The plan is in ${result.path}. Run it with: swarm run -p ${result.path}`,
      ...formatPlannedChecks(result.checks),
    ];
    shell.print(result, told.join("\n"), options);
  } finally {
    news.leave();
    working?.end();
    asker.close();
  }
}

/** Asks a person, or reads the answers from a pipe; an empty line or the end of input means: use your judgement. */
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
