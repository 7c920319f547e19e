import { z } from "zod";
import { addWorktree, current, type Saved } from "../../git/worktrees.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { RunStream } from "../../protocol/runs.ts";
import type { UpcomingCall } from "../agents/caller.ts";
import { describeTask } from "../agents/prompts.ts";
import type { SwarmTask } from "../agents/task-list.ts";
import { describeEvidence, passed } from "../checks/checks.ts";
import type { Progress, RunContext } from "../context/context.ts";
import { NotApproved, RunFailed } from "../steps/journal.ts";
import { IMPLEMENT, implementKeys, streamKeys } from "../steps/keys.ts";
import { companionCommits, includingCompanions, resetCompanions } from "../workspace/companions.ts";
import { type BranchWorkplace, isAbandoned, openStream, pathOfStream, type Workplace, worktree } from "../workspace/workspace.ts";
import { engineerOf } from "./engineers.ts";
import { mergeStream } from "./merge.ts";
import { createTurns, type Turns } from "./merge-order.ts";
import { createStream, type Stream, type StreamRules, work } from "./stream.ts";
import { SavedState } from "./stream-tree.ts";

const Began = z.object({ commit: z.string(), tree: z.string() });
const Opened = z.object({ branch: z.string(), path: z.string(), base: z.string(), tree: z.string() });

/** How the streams of a phase ended, and the state after their merges. */
export interface Ended {
  streams: RunStream[];
  tip: Saved;
}

/** Runs a stream for every task, in parallel on branches or one by one in place. Fails only if all of them do. */
export async function runStreams(context: RunContext, rules: StreamRules, progress: Progress): Promise<Ended> {
  const { workplace } = context;
  // Streams share the worktrees of the other repositories, so with companions they work one after another.
  const isParallel = workplace.kind === "branch" && workplace.companions.length === 0 && rules.parallel;
  const limit = isParallel ? context.pipeline.concurrency : 1;
  const ended = new Map<string, RunStream>();
  let wake = () => {};
  const turns = createTurns({
    give: (turn, first) =>
      context.journal.step(
        z.number(),
        { key: implementKeys(rules.id).turn(turn), kind: "git", phase: rules.id, decides: true },
        {},
        async () => ({
          value: first,
        }),
      ),
    onAwait: () => wake(),
  });
  const tip: Tip = { at: await startOf(context, rules, progress) };
  const before = progress.streams.length;
  const waiting = progress.tasks.map((task, index) => ({ task, number: before + index + 1 }));
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let crash: { error: unknown } | undefined;
  const last = before + progress.tasks.length;
  const followersOf = (number: number) => (number + limit <= last ? engineerOf(context, rules, number + limit) : []);

  const one = async (task: SwarmTask, number: number): Promise<void> => {
    try {
      const needs = task.dependsOn.find((id) => ended.get(id)?.status === "failed");
      const record = newRecord(task, number);
      ended.set(
        task.id,
        needs === undefined
          ? await runStream(
              { context, rules, progress, workplace, turns, tip, failures, following: followersOf(number) },
              task,
              record,
            )
          : finish(context, rules, { ...record, status: "failed", reason: `it needs ${needs}, which failed` }),
      );
    } catch (error) {
      crash ??= { error };
    } finally {
      turns.end(number);
    }
  };

  while (waiting.length > 0 || running.size > 0) {
    // After a crash no more streams begin, so none may be awaited.
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
  if (streams.some((stream) => stream.status !== "failed")) return { streams, tip: tip.at };
  const reason = `${rules.id}: no stream came to an end. Stream ${before + 1}: ${streams[0]?.reason ?? "failed"}`;
  throw failures.every((error) => error instanceof NotApproved) ? new NotApproved(reason) : new RunFailed(reason);
}

/** The state from which the first streams of a phase begin: where the run began, or the result of earlier phases of the kind. */
async function startOf({ journal, workplace }: RunContext, { id }: StreamRules, { baseTree }: Progress): Promise<Saved> {
  if (workplace.kind === "in place") return { commit: "", tree: baseTree };
  if (id === IMPLEMENT) return { commit: workplace.base, tree: baseTree };
  return journal.step(Began, { key: implementKeys(id).begin, kind: "git", phase: id }, {}, async () => ({
    value: await stateNow(workplace),
  }));
}

async function stateNow(workplace: BranchWorkplace): Promise<Saved> {
  const { commit, tree } = await current(workplace.workspace.tree);
  return { commit, tree: await workplace.stateWith(tree) };
}

/** Where new streams begin: the latest state of the run's branch that can no longer be undone. */
interface Tip {
  at: Saved;
}

interface StreamSetting {
  context: RunContext;
  rules: StreamRules;
  progress: Progress;
  workplace: Workplace;
  turns: Turns;
  tip: Tip;
  /** The errors of the streams that failed. */
  failures: unknown[];
  /** The agents that begin when streams have ended. */
  following: readonly UpcomingCall[];
}

/** Runs one stream to its end. It throws only a stop or a bug of ours, which ends the other streams too. */
async function runStream(setting: StreamSetting, task: SwarmTask, record: RunStream): Promise<RunStream> {
  const { context, rules, workplace, failures } = setting;
  context.recordStream({ ...record, status: "running" }, rules.id);
  context.tell("stream.started", { ...record, status: "running" });
  let stream: Stream | undefined;
  const onStream = (begun: Stream) => {
    stream = begun;
  };
  try {
    const done =
      workplace.kind === "in place"
        ? await workInPlace(setting, workplace, task, record, onStream)
        : await workOnBranch(setting, workplace, task, record, onStream);
    return finish(context, rules, done, stream);
  } catch (error) {
    if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
    failures.push(error);
    return finish(
      context,
      rules,
      { ...(stream?.record ?? record), status: "failed", tree: stream?.state().tree ?? null, reason: messageOf(error) },
      stream,
    );
  }
}

const openStep = (phase: string, number: number) => ({
  key: streamKeys(phase, number).open,
  kind: "git" as const,
  phase,
  stream: number,
});

async function workInPlace(
  { context, rules, progress }: StreamSetting,
  { workspace }: Extract<Workplace, { kind: "in place" }>,
  task: SwarmTask,
  record: RunStream,
  onStream: (stream: Stream) => void,
): Promise<RunStream> {
  const { tree } = await context.journal.step(SavedState, openStep(rules.id, record.number), {}, async () => ({
    value: await workspace.save(""),
  }));
  const stream = createStream({ context, rules, progress, record, task, workspace, baseTree: tree });
  onStream(stream);
  await work(stream, { context, progress });
  return { ...record, status: "done", tree: stream.state().tree, merged: true };
}

/** Works in the stream's own worktree, and merges when it is the stream's turn. */
async function workOnBranch(
  { context, rules, progress, turns, tip, following }: StreamSetting,
  workplace: BranchWorkplace,
  task: SwarmTask,
  record: RunStream,
  onStream: (stream: Stream) => void,
): Promise<RunStream> {
  const { number } = record;
  context.caller.prepareSessions(engineerOf(context, rules, number));
  const begun = await context.journal.step(Opened, openStep(rules.id, number), {}, async () => ({
    value: await openStream(workplace, number, tip.at),
  }));
  // A home that was restored elsewhere took the worktree along.
  const opened = { ...begun, path: pathOfStream(workplace, number) };
  await addWorktree(workplace.repo, { ...opened, kept: true, isLeft: isAbandoned });
  const note = (text: string) => context.note(`stream ${number}: ${text}`);
  const workspace = includingCompanions(
    worktree(workplace.repo, opened.path, opened.branch, { compared: workplace.compared, note }),
    workplace,
  );
  const known = { ...record, branch: opened.branch };
  const stream = createStream({ context, rules, progress, record: known, task, workspace, baseTree: opened.tree, following });
  onStream(stream);
  const merged = await resetCompanionsOnFailure({ context, rules, workplace, number }, async () => {
    await work(stream, { context, progress });
    return turns.take(number, async () => {
      const result = await mergeStream(stream, { context, workplace, tree: workspace.tree, base: opened.base });
      // Turns run in sequence, and in the same order after a resume, so each builds on the one before.
      tip.at = { commit: result.commit, tree: result.tree };
      return result;
    });
  });
  return { ...known, status: "done", tree: merged.tree, merged: true };
}

/** If the stream fails, resets the run's other repositories to where they were before it. */
async function resetCompanionsOnFailure<T>(
  {
    context,
    rules,
    workplace,
    number,
  }: Pick<StreamSetting, "context" | "rules"> & { workplace: BranchWorkplace; number: number },
  stream: () => Promise<T>,
): Promise<T> {
  if (workplace.companions.length === 0) return stream();
  const { journal, runId } = context;
  const { companionsBegin, companionsUndo } = streamKeys(rules.id, number);
  const head = { kind: "git" as const, phase: rules.id, stream: number, decides: true };
  const commits = await journal.step(z.array(z.string()), { ...head, key: companionsBegin }, {}, async () => ({
    value: (await companionCommits(workplace)).map(({ commit }) => commit),
  }));
  try {
    return await stream();
  } catch (error) {
    if (error instanceof RunFailed || error instanceof UserError)
      await journal.step(z.boolean(), { ...head, key: companionsUndo }, { commits }, async () => {
        await resetCompanions(workplace, commits, { runId, label: `stream-${number}` });
        return { value: true, verdict: "undone" };
      });
    throw error;
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

function finish(context: RunContext, { id, agent }: StreamRules, record: RunStream, stream?: Stream): RunStream {
  stream?.loops.close();
  context.recordStream(record, id);
  if (stream)
    context.documents.write(
      `${agent}-stream-${record.number}.md`,
      `Stream ${record.number} by ${agent}`,
      describe(record, stream),
      context.served(id, record.number),
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
