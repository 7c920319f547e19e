import { createInterface } from "node:readline";
import type { Command } from "commander";
import { standIns } from "../swarm/run/served.ts";
import type { Shell } from "./output.ts";
import { withSwarm } from "./swarm-engine.ts";
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
  const stop = new AbortController();
  process.once("SIGINT", () => {
    stop.abort();
    asker.close();
  });
  await withSwarm(shell, {}, async ({ swarm, choice }) => {
    shell.note(`Model: ${choice.why}.`);
    const planned = await swarm.plan({
      projectPath,
      issue: settings.issue,
      settings,
      ask: (questions) => {
        working?.end();
        return asker.question(questions);
      },
      standIns: options.standIns,
      signal: stop.signal,
      onModel: (model) => standIns([model]).forEach(shell.note),
      onTurn: (agent) => {
        progress.end();
        working?.end();
        shell.note(`${agent} reads and thinks …`);
        if (!isTold) working = startWorking(shell, agent);
      },
      ...(isTold && { onSay: progress.say }),
    });
    progress.end();
    working?.end();
    shell.print(planned, `The plan is in ${planned.path}. Run it with: swarm run -p ${planned.path}`, options);
  }).finally(() => {
    working?.end();
    asker.close();
  });
}

/** Puts questions to a person, or reads the answers from a pipe; an empty line or the end of input means: use your judgement. */
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
