import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import { formatWaits } from "../protocol/approval-text.ts";
import { callOf, showCommand, showState } from "../protocol/shown-state.ts";
import type { Activity, Task, TaskEvidence } from "../protocol/squads.ts";
import type { Shell } from "./output.ts";
import { delegateCommand } from "./squad-delegate.ts";

const MAX_SHOWN = 500;
const at = (id: string) => `/api/tasks/${encodeURIComponent(id)}`;

export function taskCommands(program: Command, shell: Shell): void {
  const task = program.command("task").description("what squads are doing in the background");

  delegateCommand(task, "add", shell);

  task
    .command("list")
    .description("the latest tasks")
    .option("--squad <slug>", "only of this squad")
    .option("--status <status>", "queued, running, done, failed or cancelled")
    .option("--json", "print one JSON document")
    .action(async (options: { squad?: string; status?: string; json?: boolean }) => {
      const { squad, status } = options;
      const query = new URLSearchParams({ ...(squad && { squad }), ...(status && { status }) });
      const tasks = await shell.client().request<{ items: Task[] }>("GET", `/api/tasks?${query}`);
      const none = squad || status ? "No task is like that." : 'No task was given yet: io task add <squad> "<task>"';
      shell.print(tasks, tasks.items.map(taskLine).join("\n") || none, options);
    });

  task
    .command("show")
    .description("a task, what was seen of it, and its result")
    .argument("<id>")
    .option("--json", "print one JSON document")
    .action(async (id: string, options: { json?: boolean }) => {
      const client = shell.client();
      const shown = await client.request<Task>("GET", at(id));
      if (options.json) return shell.print(shown, "", options);
      shell.print(shown, format(shown, await latest(client, id)), options);
    });

  task
    .command("cancel")
    .description("end a task, with every process it began")
    .argument("<id>")
    .option("--json", "print one JSON document")
    .action(async (id: string, options: { json?: boolean }) => {
      const ended = await shell.client().request<Task>("POST", `${at(id)}/cancel`);
      shell.print(ended, `${ended.id} is ${showState({ kind: "task", task: ended }).words}.`, options);
    });
}

/** The latest activity of a task, and how many entries precede it. */
async function latest(client: Client, id: string): Promise<{ items: Activity[]; earlier: number }> {
  let seen: Activity[] = [];
  let earlier = 0;
  for (let after: string | undefined = "0"; after !== undefined; ) {
    type Page = { items: Activity[]; next?: string };
    const page: Page = await client.request<Page>("GET", `${at(id)}/activity?limit=1000&after=${after}`);
    const all = [...seen, ...page.items];
    seen = all.slice(-MAX_SHOWN);
    earlier += all.length - seen.length;
    after = page.next;
  }
  return { items: seen, earlier };
}

/** A task in a line. */
export function taskLine(task: Task): string {
  const { id, squad, agent, description, evidence } = task;
  const line = description.replace(/\s+/g, " ");
  const { mark, words, tone } = showState({ kind: "task", task });
  const doubt = tone === "doubt" && evidence?.verdict ? ` (${evidence.verdict})` : "";
  return `${id}  ${mark} ${words}${doubt}  ${squad}/${agent}  ${line.length > 80 ? `${line.slice(0, 79)}…` : line}`;
}

function format(task: Task, { items, earlier }: { items: readonly Activity[]; earlier: number }): string {
  const { evidence, usage } = task;
  return [
    taskLine(task),
    ...(task.waitsFor ? [formatWaits(task.waitsFor)] : []),
    ...(task.with.length > 0 ? [`together with: ${task.with.join(", ")}`] : []),
    ...(task.reason ? [`chosen: ${task.reason}`] : []),
    ...(task.worker === null
      ? []
      : [`done by the worker ${task.worker}, begun ${task.attempts === 1 ? "once" : `${task.attempts} times`}`]),
    `${usage.calls} model calls, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`,
    ...(earlier > 0 ? [`  … ${earlier} earlier`] : []),
    ...items.map((each) => `  ${each.createdAt.slice(11, 19)} ${formatActivity(each)}`),
    ...(evidence
      ? [
          ...(evidence.verdict ? [`verdict: ${evidence.verdict}`] : []),
          ...(task.finishedAt === null ? [] : [`files changed: ${evidence.filesChanged.join(", ") || noFiles(evidence)}`]),
          ...(evidence.others ?? []).map((each) => `  in ${each.projectPath}: ${each.filesChanged.join(", ") || noFiles(each)}`),
          ...evidence.commands.map((each) => {
            const { mark, words } = showCommand(each);
            return `  ${mark} $ ${each.command.replace(/\s+/g, " ")} → ${each.exitCode ?? words}`;
          }),
        ]
      : []),
    ...(task.error ? [`error: ${task.error.message}`] : []),
    ...(task.result ? ["", task.result] : []),
  ].join("\n");
}

/** A line of a task's record; a call has its usual mark and words. */
function formatActivity(activity: Activity): string {
  const call = callOf(activity);
  if (!call) return activity.summary;
  const { mark, words, tone } = showState(call);
  return `${mark} ${activity.summary}${tone === "good" || tone === "busy" ? "" : `  ${words}`}`;
}

const noFiles = ({ treeBefore, treeAfter }: Pick<TaskEvidence, "treeBefore" | "treeAfter">) =>
  treeBefore === null || treeAfter === null ? "unknown, git could not tell" : "none seen";
