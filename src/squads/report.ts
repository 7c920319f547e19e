import type { Activity, Task } from "../protocol/squads.ts";
import { oneLine, tellEvidence } from "./evidence.ts";

const MAX_RESULT = 6_000;
const MAX_SHOWN = 50_000;

/** What whoever asked for a task is told when it has ended. */
export function reportOf(task: Task, limit = MAX_RESULT): string {
  const { id, squad, agent, status, description, result, error, evidence } = task;
  const verdict = evidence?.verdict?.includes(", but ") ? `${status}, by the agent's word: ${evidence.verdict}` : status;
  return [
    `Task ${id} of the squad "${squad}" has ended: ${verdict}. Agent: ${agent}.`,
    `Asked for: ${oneLine(description, 400)}`,
    ...(error ? [`Why: ${error.message}`] : []),
    ...(evidence ? [`What IO itself saw:\n${tellEvidence(evidence)}`] : []),
    ...(result === null ? [] : [`The agent's own words${error ? ", as far as they came" : ""}:\n${clip(result, id, limit)}`]),
  ].join("\n\n");
}

/** A task for somebody who looks after it. */
export function tellTask(task: Task, seen: readonly Activity[]): string {
  const { id, squad, agent, status, reason, model, usage, createdAt, startedAt, finishedAt } = task;
  const tokens = `${usage.calls} model calls, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`;
  return [
    finishedAt === null
      ? `Task ${id} of ${squad}, ${agent}: ${status}.\nAsked for: ${oneLine(task.description, 400)}`
      : reportOf(task, MAX_SHOWN),
    [
      `Asked ${createdAt}${startedAt ? `, begun ${startedAt}` : ""}${finishedAt ? `, ended ${finishedAt}` : ""}; ${tokens}.`,
      ...(reason ? [`Chosen: ${reason}`] : []),
      ...(model && !reason?.includes(model) ? [`Model: ${model}`] : []),
    ].join("\n"),
    ...(seen.length > 0
      ? [`Last seen:\n${seen.map(({ createdAt: at, summary }) => `  ${at.slice(11, 19)} ${summary}`).join("\n")}`]
      : []),
  ].join("\n\n");
}

function clip(text: string, id: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (cut; the whole text: squad_task_status ${id})`;
}
