import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../home/config.ts";
import { messageOf, usageError } from "../lib/errors.ts";
import { openAnswers } from "./input.ts";
import type { Shell } from "./output.ts";
import { type Ask, askProvider } from "./setup-provider.ts";
import { type Answered, type Changes, configWith } from "./setup-trial.ts";

/** Nobody types into a pipe: an answer that does not come at once will not come. */
const ANSWER_MS = 10_000;

/** The same questions for piped answers, one per line; unanswered settings stay as they are. */
export async function askByLines(shell: Shell, before: Config): Promise<Answered & { trial: boolean }> {
  const answers = openAnswers(false);
  const next = async (question: string): Promise<string | undefined> => {
    const late = new AbortController();
    const limit = sleep(ANSWER_MS, undefined, { signal: late.signal }).then(() => {
      throw usageError(
        "Nobody answers here. In a terminal io setup asks; for scripts there are flags: io setup --help lists them.",
      );
    });
    limit.catch(() => undefined);
    try {
      return await Promise.race([answers.next(question), limit]);
    } finally {
      late.abort();
    }
  };
  const ask: Ask = async (question, { fallback = "", list, check }) => {
    if (list) shell.note(list);
    const typed = (await next(`${question}${fallback === "" ? "" : ` [${fallback}]`}: `)) || fallback;
    try {
      if (typed !== fallback) check?.(typed);
      return typed;
    } catch (error) {
      throw usageError(messageOf(error), error);
    }
  };
  try {
    const changes = await askAll(shell, ask, before);
    const trial = await next("Ask the model something now, to see that it answers? yes or no [yes]: ");
    return { changes, engine: undefined, service: false, trial: trial !== undefined && /^(y(es)?)?$/i.test(trial) };
  } finally {
    answers.close();
  }
}

async function askAll(shell: Shell, ask: Ask, before: Config): Promise<Changes> {
  const changes: Changes = {};
  const fits = (more: Changes) => void configWith(shell, { ...changes, ...more });
  const provider = await askProvider(ask, {
    before: before.provider,
    env: shell.env,
    note: shell.note,
    fits: (draft) => fits({ provider: draft }),
  });
  if (provider !== "as it is") changes.provider = provider;
  if (provider === undefined || (provider === "as it is" && before.provider === undefined)) {
    const check = (defaultModel: string) => fits({ defaultModel });
    const model = await ask("Default model", { id: "default model", fallback: before.defaultModel, check });
    if (model !== before.defaultModel) changes.defaultModel = model;
  }
  const port = await ask("Port of the API (0 takes any free one)", {
    id: "port",
    fallback: String(before.port),
    check: (answer) => fits({ port: numberOf(answer) }),
  });
  if (numberOf(port) !== before.port) changes.port = numberOf(port);
  return changes;
}

function numberOf(answer: string): number {
  if (!/^\d+$/.test(answer)) throw usageError(`"${answer}" is not a whole number.`);
  return Number(answer);
}
