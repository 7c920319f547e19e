import { z } from "zod";
import { addWorktree, isAncestor } from "../../git/repository.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { RunStream } from "../../protocol/runs.ts";
import { describeTask } from "../phases/prompts.ts";
import type { SwarmTask } from "../phases/task-list.ts";
import type { ImplementPhase } from "../pipeline/schema.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { NotApproved, RunFailed } from "../run/journal.ts";
import { engineer } from "../run/prefetch.ts";
import { openStream, type Workplace, worktree } from "../run/workspace.ts";
import { describeEvidence, passed } from "./checks.ts";
import { mergeStream } from "./merge.ts";
import { createTurns, type Turns } from "./merge-order.ts";
import { createStream, SavedState, type Stream, work } from "./stream.ts";

const Opened = z.object({ branch: z.string(), path: z.string(), base: z.string(), tree: z.string() });

/**
 * Takes every task through its stream: side by side on branches of their own, or one after another in place. Fails only when
 * no stream came to an end.
 */
export async function runStreams(context: RunContext, phase: ImplementPhase, progress: Progress): Promise<RunStream[]> {
  const { workplace } = context;
  const limit = workplace.kind === "branch" ? context.pipeline.concurrency : 1;
  const ended = new Map<string, RunStream>();
  let wake = () => {};
  const turns = createTurns({
    give: (turn, first) =>
      context.journal.step(z.number(), { key: `implement/turn/${turn}`, kind: "git", phase: "implement" }, {}, async () => ({
        value: first,
      })),
    onAwait: () => wake(),
  });
  const tip = createTip(workplace);
  const waiting = progress.tasks.map((task, index) => ({ task, number: index + 1 }));
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let crash: { error: unknown } | undefined;

  const one = async (task: SwarmTask, number: number): Promise<void> => {
    try {
      const needs = task.dependsOn.find((id) => ended.get(id)?.status === "failed");
      const record = newRecord(task, number);
      ended.set(
        task.id,
        needs === undefined
          ? await runStream({ context, phase, progress, workplace, turns, tip, failures }, task, record)
          : finish(context, { ...record, status: "failed", reason: `it needs ${needs}, which failed` }),
      );
    } catch (error) {
      crash ??= { error };
    } finally {
      turns.end(number);
    }
  };

  while (waiting.length > 0 || running.size > 0) {
    // Nobody begins any more, so nobody is waited for.
    if (crash) for (const { number } of waiting.splice(0)) turns.end(number);
    for (const next of waiting.filter(({ task }) => task.dependsOn.every((id) => ended.has(id)))) {
      if (running.size >= limit && !turns.awaits(next.number)) continue;
      waiting.splice(waiting.indexOf(next), 1);
      const promise: Promise<void> = one(next.task, next.number).finally(() => running.delete(promise));
      running.add(promise);
    }
    if (running.size === 0) break;
    await Promise.race([...running, new Promise<void>((done) => (wake = done))]);
  }
  if (crash) throw crash.error;
  const streams = progress.tasks.map((task) => ended.get(task.id)!);
  if (streams.some((stream) => stream.status !== "failed")) return streams;
  const reason = `implement: no stream came to an end. Stream 1: ${streams[0]?.reason ?? "failed"}`;
  throw failures.every((error) => error instanceof NotApproved) ? new NotApproved(reason) : new RunFailed(reason);
}

interface StreamSetting {
  context: RunContext;
  phase: ImplementPhase;
  progress: Progress;
  workplace: Workplace;
  turns: Turns;
  tip: Tip;
  /** Why streams could not go on. */
  failures: unknown[];
}

async function runStream(
  { context, phase, progress, workplace, turns, tip, failures }: StreamSetting,
  task: SwarmTask,
  record: RunStream,
): Promise<RunStream> {
  const { journal } = context;
  const { number } = record;
  const at = { kind: "git" as const, phase: "implement", stream: number };
  context.recordStream({ ...record, status: "running" });
  context.tell("stream.started", { ...record, status: "running" });
  let stream: Stream | undefined;
  try {
    if (workplace.kind === "in place") {
      const { tree } = await journal.step(SavedState, { ...at, key: `implement/stream-${number}/open` }, {}, async () => ({
        value: await workplace.workspace.save(""),
      }));
      stream = createStream({ context, phase, progress, record, task, workspace: workplace.workspace, baseTree: tree });
      await work(stream, { context, progress });
      return finish(context, { ...record, status: "done", tree: stream.state().tree, merged: true }, stream, phase.agent);
    }
    context.caller.expect(engineer(context.pipeline, workplace, context.runId, number));
    const opened = await journal.step(Opened, { ...at, key: `implement/stream-${number}/open` }, {}, async () => ({
      value: await openStream(workplace, number, tip.commit()),
    }));
    await addWorktree(workplace.repo, { ...opened, kept: true });
    const workspace = worktree(workplace.repo, opened.path, opened.branch, (text) => context.note(`stream ${number}: ${text}`));
    const known = { ...record, branch: opened.branch };
    stream = createStream({ context, phase, progress, record: known, task, workspace, baseTree: opened.tree });
    const active = stream;
    await work(active, { context, progress });
    const merged = await turns.take(number, async () => {
      const result = await mergeStream(active, { context, workplace, path: opened.path, base: opened.base });
      await tip.advance(result.commit);
      return result;
    });
    return finish(context, { ...known, status: "done", tree: merged.tree, merged: true }, stream, phase.agent);
  } catch (error) {
    // One stream that cannot go on does not take the others with it; a stop, or a fault of ours, does.
    if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
    failures.push(error);
    return finish(
      context,
      { ...(stream?.record ?? record), status: "failed", tree: stream?.state().tree ?? null, reason: messageOf(error) },
      stream,
      phase.agent,
    );
  }
}

function newRecord(task: SwarmTask, number: number): RunStream {
  const { id: taskId, text, frontend, dependsOn } = task;
  return {
    number,
    taskId,
    task: text,
    frontend,
    dependsOn,
    status: "waiting",
    branch: null,
    tree: null,
    merged: false,
    reason: null,
  };
}

function finish(context: RunContext, record: RunStream, stream?: Stream, agent?: string): RunStream {
  stream?.loops.close();
  context.recordStream(record);
  if (stream && agent)
    context.documents.write(
      `${agent}-stream-${record.number}.md`,
      `Stream ${record.number} by ${agent}`,
      describe(record, stream),
      context.served("implement", record.number),
    );
  context.tell("stream.finished", { ...record });
  return record;
}

function describe(record: RunStream, stream: Stream): string {
  const { report, evidence, tree } = stream.state();
  const loops = stream.loops
    .loops()
    .map(
      (loop) =>
        `- ${loop.agent}: ${loop.outcome} after ${loop.reviews} reviews${loop.approved ? ` (tree ${loop.approved.slice(0, 12)})` : ""}`,
    );
  return [
    `**${record.status}**${record.reason ? `: ${record.reason}` : ""}${record.branch ? `, branch \`${record.branch}\`` : ""}, tree \`${tree.slice(0, 12)}\``,
    `## Task\n\n${describeTask(stream.task)}`,
    `## What the engineer says\n\n${report}`,
    `## Reviews\n\n${loops.join("\n")}`,
    `## Checks${passed(evidence) ? "" : " (failing)"}\n\n${describeEvidence(evidence)}`,
  ].join("\n\n");
}

/** The run's branch as far as it stands for good: a merge that may yet be undone is nothing for others to begin from. */
function createTip(workplace: Workplace) {
  let commit = workplace.kind === "branch" ? workplace.base : "";
  return {
    commit: () => commit,
    async advance(to: string): Promise<void> {
      if (workplace.kind === "branch" && !(await isAncestor(workplace.workspace.path, to, commit))) commit = to;
    },
  };
}
type Tip = ReturnType<typeof createTip>;
