import { z } from "zod";
import type { CheckEvidence, RunStream } from "../../protocol/runs.ts";
import { askWithAnswers } from "../phases/clarify.ts";
import { clarifyPrompt, describeTask, fixPrompt, implementPrompt, reviewPrompt } from "../phases/prompts.ts";
import type { SwarmTask } from "../phases/task-list.ts";
import { CLARIFICATION_KEYWORD, type ImplementPhase } from "../pipeline/schema.ts";
import { createLoops, type Loops, type Reviewer } from "../review/loop.ts";
import { readVerdict } from "../review/verdict.ts";
import { type Call, type Expected, type Reply, sessionOf } from "../run/caller.ts";
import { type Progress, type RunContext, reviewersOf } from "../run/context.ts";
import { NotApproved, RunFailed } from "../run/journal.ts";
import { streamPrefix, streamSession } from "../run/prefetch.ts";
import type { Workspace } from "../run/workspace.ts";
import { describeEvidence, passed } from "./checks.ts";

export const SavedState = z.object({ tree: z.string(), commit: z.string().nullable() });

/** One task's way through the phase: an engineer in one lasting session, in one tree. */
export interface Stream {
  readonly record: RunStream;
  readonly task: SwarmTask;
  readonly prefix: string;
  readonly loops: Loops;
  state(): { tree: string; commit: string | null; evidence: readonly CheckEvidence[]; report: string };
  /** Asks the engineer, then commits and checks what it left. */
  engineer(step: string, prompt: string): Promise<Reply>;
  /** Commits and checks what is in the tree now. */
  settle(message: string): Promise<void>;
}

export interface StreamDeps {
  context: RunContext;
  phase: ImplementPhase;
  progress: Progress;
  record: RunStream;
  task: SwarmTask;
  workspace: Workspace;
  /** The tree the stream began with. */
  baseTree: string;
}

export function createStream({ context, phase, progress, record, task, workspace, baseTree }: StreamDeps): Stream {
  const { caller, journal, checks, about, pipeline } = context;
  const { number } = record;
  const prefix = streamPrefix(number);
  const told = describeTask(task);
  const base = { phase: "implement", stream: number, model: pipeline.primaryModel, cwd: workspace.cwd };
  let state: ReturnType<Stream["state"]> = { tree: baseTree, commit: null, evidence: [], report: "" };
  let turns = 0;

  const tidy = async (label: string): Promise<string | null> => {
    const ref = (await workspace.tidy?.(label)) ?? null;
    if (ref) context.note(`stream ${number}: files that a command left in the tree were set aside as ${ref}`);
    return ref;
  };

  async function settle(message: string): Promise<void> {
    turns += 1;
    const head = { key: `${prefix}/commit/${turns}`, kind: "git" as const, phase: "implement", stream: number };
    const saved = await journal.step(SavedState, head, { turns, from: state.tree }, async () => ({
      value: await workspace.save(message),
    }));
    // The reviewers read the difference: it is made while the checks run, and a failure is met where it is read.
    workspace.diff(baseTree, saved.tree).catch(() => undefined);
    const evidence = await checks.run({
      prefix,
      phase: "implement",
      stream: number,
      folder: workspace.cwd,
      tree: saved.tree,
      after: () => tidy(`checks-${turns}`),
    });
    state = { ...state, ...saved, evidence };
    await lookAgain(`${prefix}/commit/${turns}/after-checks`);
  }

  /** Where nothing can be set aside, what a command left is part of the work: it is seen, and voids what was approved before it. */
  async function lookAgain(key: string): Promise<void> {
    if (workspace.tidy) return;
    const { tree } = await journal.step(SavedState, { ...base, key, kind: "git" as const }, { from: state.tree }, async () => ({
      value: await workspace.save(""),
    }));
    if (tree !== state.tree) context.note(`stream ${number}: commands changed files in place; they are reviewed with the rest`);
    state = { ...state, tree };
  }

  const qa: Reviewer[] = phase.qa
    ? [
        {
          key: `${prefix}/qa:${phase.qa.agent}`,
          agent: phase.qa.agent,
          maxIterations: phase.qa.maxIterations,
          approvalKeyword: phase.qa.approvalKeyword,
          onExhausted: phase.qa.onExhausted,
        },
      ]
    : [];
  const isQa = (reviewer: Reviewer) => qa[0]?.key === reviewer.key;

  const reviewers = [...reviewersOf(prefix, phase.reviews), ...qa];
  const nextUp = reviewers.map(
    (reviewer): Expected => ({
      ...base,
      key: `${reviewer.key}/1`,
      agent: reviewer.agent,
      duty: isQa(reviewer) ? "qa" : "review",
    }),
  );

  async function engineer(step: string, prompt: string): Promise<Reply> {
    const key = `${prefix}/${step}`;
    const call: Call = {
      ...base,
      key,
      agent: phase.agent,
      duty: "build",
      prompt,
      session: sessionOf(journal.runId, streamSession(number)),
      next: nextUp,
    };
    const answering = phase.clarificationAgent;
    const reply = await askWithAnswers(caller, call, {
      keyword: phase.clarificationKeyword ?? CLARIFICATION_KEYWORD,
      answer: answering
        ? (round, question) =>
            caller.ask({
              ...base,
              key: `${key}/clarify/${round}`,
              agent: answering,
              duty: "plan",
              prompt: clarifyPrompt(about, progress.spec, phase.agent, question),
            })
        : undefined,
    });
    if (reply.ok) state = { ...state, report: reply.text };
    return reply;
  }

  const loops = createLoops({
    reviewers,
    phase: "implement",
    stream: number,
    record: context.recordLoop,
    work: {
      state: () => state.tree,
      async review({ reviewer, number: round, findings }) {
        const reply = await caller.ask({
          ...base,
          key: `${reviewer.key}/${round}`,
          agent: reviewer.agent,
          duty: isQa(reviewer) ? "qa" : "review",
          prompt: reviewPrompt({
            about,
            spec: progress.spec,
            task: told,
            artefact: { diff: await workspace.diff(baseTree, state.tree), tree: state.tree },
            evidence: state.evidence,
            findings,
            approvalKeyword: reviewer.approvalKeyword,
            clarificationKeyword: reviewer.clarificationKeyword,
          }),
          verdict: (text) => readVerdict(text, reviewer.approvalKeyword, reviewer.clarificationKeyword),
        });
        if (isQa(reviewer) && workspace.tidy) {
          const key = `${reviewer.key}/${round}/tidy`;
          await journal.step(z.string().nullable(), { ...base, key, kind: "git" }, {}, async () => ({
            value: await tidy(`qa-${round}`),
          }));
        }
        if (isQa(reviewer)) await lookAgain(`${reviewer.key}/${round}/after`);
        return reply;
      },
      veto: (reviewer) =>
        isQa(reviewer) && !passed(state.evidence)
          ? `The runtime's own record of this tree does not bear out ${reviewer.approvalKeyword}:\n${describeEvidence(state.evidence.filter((each) => each.exitCode !== 0))}`
          : undefined,
      clarify: ({ reviewer, number: round, question }) =>
        caller.ask({
          ...base,
          key: `${reviewer.key}/${round}/clarify`,
          agent: reviewer.clarificationAgent!,
          duty: "plan",
          prompt: clarifyPrompt(about, progress.spec, reviewer.agent, question),
        }),
      async revise({ reviewer, number: round, findings, answer }) {
        const reply = await engineer(
          `${reviewer.key.slice(prefix.length + 1)}/${round}/fix:${phase.agent}`,
          fixPrompt(told, reviewer.agent, findings.join("\n\n"), state.evidence, answer),
        );
        if (reply.ok) await settle(`Meet the findings of ${reviewer.agent}\n\n${task.id}`);
        return reply;
      },
    },
  });
  return { record, task, prefix, loops, state: () => state, engineer, settle };
}

/** Implements a task and takes it through its reviews. Throws when the stream cannot go on. */
export async function work(stream: Stream, { context, progress }: Pick<StreamDeps, "context" | "progress">): Promise<void> {
  const { task } = stream;
  const first = await stream.engineer("draft", implementPrompt(context.about, progress.spec, task, progress.design));
  if (!first.ok) throw new RunFailed(`the engineer gave no work: ${first.reason}`);
  await stream.settle(`${title(task)}\n\n${task.id} of ${context.runId}`);
  await review(stream);
}

/** Takes the present tree through every reviewer that has not approved exactly it. */
export async function review(stream: Stream): Promise<void> {
  if (await stream.loops.run()) return;
  const stopped = stream.loops.loops().find((loop) => loop.outcome !== "approved" && loop.reviews > 0);
  throw new NotApproved(`${stopped?.agent} did not approve (${stopped?.outcome})`);
}

export function title(task: SwarmTask): string {
  return task.text.split("\n")[0]!.slice(0, 72);
}
