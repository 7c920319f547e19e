import { z } from "zod";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { ReviewLoop, Run, RunOutcome, RunPhase } from "../../protocol/runs.ts";
import { decisionsOf } from "../phases/decisions.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { whySkipped } from "../pipeline/conditions.ts";
import { kindOf, withApprovers } from "../pipeline/kind.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Placed } from "../pipeline/schema.ts";
import { passed, unbound } from "../streams/checks.ts";
import { findWorth } from "../streams/worth.ts";
import type { Progress, RunContext } from "./context.ts";
import { currentEvidence } from "./current-evidence.ts";
import { documentsOfPhase } from "./document-names.ts";
import { NotApproved, RunFailed, RunStopped } from "./journal.ts";
import { recordKeys, runKeys } from "./keys.ts";

export interface Ending {
  /** "done" if every phase came to its end, approved or not. */
  status: "done" | "failed";
  outcome: RunOutcome;
  reason: string | null;
  tree: string | null;
}

/** Runs a pipeline's phases in order, and says how that ended. Throws only when it was stopped, or for a fault of ours. */
export async function execute(context: RunContext, kinds: readonly PhaseKind[], view: () => Run): Promise<Ending> {
  const { pipeline, journal } = context;
  let progress: Progress = { spec: "", tasks: [], design: "", streams: [], baseTree: "", tree: "", approvers: [] };
  try {
    const baseTree = await startingTree(context, kinds);
    progress = { ...progress, baseTree, tree: baseTree };
    if (baseTree !== "") context.checks.begin(() => findWorth(context, baseTree));
    // Where everybody works in one place, nothing may change there meanwhile.
    if (context.workplace.kind === "in place") await context.checks.settled();
    for (const phase of pipeline.pipeline) progress = await runPhase(context, kinds, phase, progress);
    journal.put({ key: runKeys.decisions, kind: "note", phase: "run" }, "done", decisionsOf(progress.spec));
    return { status: "done", ...judge(view(), progress), tree: progress.tree || null };
  } catch (error) {
    if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
    const outcome = error instanceof NotApproved ? "unapproved" : "failed";
    return { status: "failed", outcome, reason: messageOf(error), tree: progress.tree || null };
  }
}

function startingTree({ journal, workplace, pipeline }: RunContext, kinds: readonly PhaseKind[]): Promise<string> {
  if (!pipeline.pipeline.some((phase) => kindOf(kinds, phase).workplace)) return Promise.resolve("");
  return journal.step(z.string(), { key: runKeys.base, kind: "git", phase: "run" }, {}, async () => ({
    value: workplace.kind === "branch" ? workplace.baseTree : (await workplace.workspace.save("")).tree,
  }));
}

async function runPhase(context: RunContext, kinds: readonly PhaseKind[], phase: Placed, progress: Progress): Promise<Progress> {
  const kind = kindOf(kinds, phase);
  const { journal, tell } = context;
  const head = { key: recordKeys.phase(phase.id), kind: "phase" as const, phase: phase.id };
  const startedAt = new Date().toISOString();
  const end = (status: RunPhase["status"], reason: string | null) => {
    const record: RunPhase = { name: phase.id, status, reason, startedAt, finishedAt: new Date().toISOString() };
    journal.put(head, status === "failed" ? "failed" : "done", record, reason ?? undefined);
    tell("phase.finished", { ...record });
  };

  const models = comparedModels(phase, context, kind, context.serving);
  const skipped =
    whySkipped(phase.condition, { models, tasks: progress.tasks, planned: context.planned }) ??
    kind.whySkipped?.(phase, progress);
  if (skipped !== undefined) {
    for (const reviewer of kind.reviewers?.(phase) ?? []) context.recordLoop(skippedLoop(phase, reviewer));
    end("skipped", skipped);
    return progress;
  }
  const begun: RunPhase = { name: phase.id, status: "running", reason: null, startedAt, finishedAt: null };
  journal.put(head, "begun", begun);
  tell("phase.started", { ...begun });
  try {
    const documents = documentsOfPhase(context.documents, phase, context.pipeline.pipeline, kinds);
    const next = await kind.run({ ...context, documents }, phase, progress);
    end("done", null);
    return { ...next, approvers: withApprovers(next.approvers, kind.approvers?.(phase)) };
  } catch (error) {
    if (!(error instanceof RunStopped)) end("failed", messageOf(error));
    throw error;
  }
}

function skippedLoop({ id: phase }: Placed, { key, agent }: { key: string; agent: string }): ReviewLoop {
  return { key, phase, stream: null, agent, outcome: "skipped", reviews: 0, revisions: 0, approved: null, findings: null };
}

/** A run is approved if it changed something, and no stream, no review loop and no check stands against it. */
function judge(run: Run, { tree, baseTree, streams }: Progress): Pick<Ending, "outcome" | "reason"> {
  const evidence = currentEvidence(run, tree);
  const against = [
    ...run.streams
      .filter((stream) => stream.status !== "done")
      .map((stream) => `stream ${stream.number} failed (${stream.reason})`),
    ...run.loops
      .filter((loop) => loop.outcome === "exhausted" || loop.outcome === "failed")
      .map((loop) => `${loop.key} is ${loop.outcome}`),
    ...evidence.filter((each) => !passed([each])).map((each) => `the check "${each.name}" fails`),
    ...unbound(evidence).map((each) => `the check "${each.name}" passes on broken code too, so it is no evidence`),
  ];
  if (streams.length > 0 && tree === baseTree)
    return { outcome: "unchanged", reason: ["the result is what the run began from", ...new Set(against)].join("; ") };
  return against.length === 0
    ? { outcome: "approved", reason: null }
    : { outcome: "unapproved", reason: [...new Set(against)].join("; ") };
}
