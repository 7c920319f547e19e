import { named, oneLine } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import { formatWaits } from "../protocol/approval-text.ts";
import { isProven, showState } from "../protocol/shown-state.ts";
import type { Activity, Task } from "../protocol/squads.ts";
import { formatEvidence } from "./evidence.ts";

const MAX_RESULT = 6_000;
const MAX_SHOWN = 50_000;

/** The report of an ended task, for whoever asked for it. */
export function reportOf(task: Task, limit = MAX_RESULT): string {
  const { id, squad, agent, status, description, result, error, evidence } = task;
  const { words } = showState({ kind: "task", task });
  const verdict = status === "done" && !isProven(task) && evidence?.verdict ? `${words}: ${evidence.verdict}` : words;
  return [
    `Task ${id} of the squad "${squad}" has ended: ${verdict}. Agent: ${oneLine(agent, 100)}.`,
    `Asked for: ${oneLine(description, 400)}`,
    ...(error ? [`Why: ${oneLine(error.message, 2_000)}`] : []),
    ...(evidence ? [`What IO itself saw:\n${formatEvidence(evidence, status)}`] : []),
    ...(result === null ? [] : [quoteAgent(task, limit)]),
  ].join("\n\n");
}

/** A task's details, for somebody who looks after it. */
export function formatTask(task: Task, seen: readonly Activity[]): string {
  const { id, squad, agent, reason, model, usage, createdAt, startedAt, finishedAt } = task;
  const { words } = showState({ kind: "task", task });
  const tokens = `${usage.calls} model calls, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`;
  return [
    finishedAt === null
      ? `Task ${id} of ${squad}, ${oneLine(agent, 100)}: ${words}.${task.waitsFor ? ` ${formatWaits(task.waitsFor)}.` : ""}\nAsked for: ${oneLine(task.description, 400)}`
      : reportOf(task, MAX_SHOWN),
    [
      `Asked ${createdAt}${startedAt ? `, begun ${startedAt}` : ""}${finishedAt ? `, ended ${finishedAt}` : ""}; ${tokens}.`,
      ...(reason ? [`Chosen: ${oneLine(reason, 1_000)}`] : []),
      ...(model && !reason?.includes(model) ? [`Model: ${named(model)}`] : []),
    ].join("\n"),
    ...(seen.length > 0
      ? [`Last seen:\n${seen.map(({ createdAt: at, summary }) => `  ${at.slice(11, 19)} ${oneLine(summary, 400)}`).join("\n")}`]
      : []),
  ].join("\n\n");
}

/** An agent's own words are untrusted, like the files it read. */
function quoteAgent({ id, result, error }: Task, limit: number): string {
  const words = result ?? "";
  const cut = words.length > limit ? `\nCut; the whole text: squad_task_status ${id}` : "";
  return `The agent's own words${error ? ", as far as they came" : ""}:\n${asData(words.slice(0, limit))}${cut}`;
}
