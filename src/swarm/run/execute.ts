import { z } from "zod";
import { applyBranch, must } from "../../git/repository.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Run, RunOutcome, RunPhase } from "../../protocol/runs.ts";
import { runCrossModel } from "../phases/cross-model.ts";
import { runDecompose } from "../phases/decompose.ts";
import { runDesign } from "../phases/design.ts";
import { runImplement } from "../phases/implement.ts";
import { decisionsOf, runSpec } from "../phases/spec.ts";
import { whySkipped } from "../pipeline/conditions.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Phase } from "../pipeline/schema.ts";
import { passed } from "../streams/checks.ts";
import { type Progress, type RunContext, reviewersOf } from "./context.ts";
import { currentEvidence } from "./current-evidence.ts";
import { NotApproved, RunFailed, RunStopped } from "./journal.ts";
import { DECISIONS } from "./view.ts";

export interface Ending {
  /** "done": every phase came to its end, whatever was thought of it. */
  status: "done" | "failed";
  outcome: RunOutcome;
  reason: string | null;
  tree: string | null;
}

/** Runs a pipeline from its first phase to its last, and says how it ended. Throws only when it was stopped, or for a fault of ours. */
export async function execute(context: RunContext, view: () => Run): Promise<Ending> {
  const { pipeline, journal } = context;
  let progress: Progress = { spec: "", tasks: [], design: "", streams: [], baseTree: "", tree: "" };
  try {
    const baseTree = await startingTree(context);
    progress = { ...progress, baseTree, tree: baseTree };
    for (const phase of pipeline.pipeline) progress = await runPhase(context, phase, progress);
    journal.put({ key: DECISIONS, kind: "note", phase: "run" }, "done", decisionsOf(progress.spec));
    return { status: "done", ...judge(view(), progress.tree), tree: progress.tree || null };
  } catch (error) {
    if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
    const outcome = error instanceof NotApproved ? "unapproved" : "failed";
    return { status: "failed", outcome, reason: messageOf(error), tree: progress.tree || null };
  }
}

function startingTree({ journal, workplace, pipeline }: RunContext): Promise<string> {
  if (!pipeline.pipeline.some((phase) => phase.phase === "implement")) return Promise.resolve("");
  return journal.step(z.string(), { key: "run/base", kind: "git", phase: "run" }, {}, async () => ({
    value:
      workplace.kind === "branch"
        ? await must(workplace.workspace.path, ["rev-parse", `${workplace.base}^{tree}`])
        : (await workplace.workspace.save("")).tree,
  }));
}

async function runPhase(context: RunContext, phase: Phase, progress: Progress): Promise<Progress> {
  const { journal, tell } = context;
  const head = { key: `phase:${phase.phase}`, kind: "phase" as const, phase: phase.phase };
  const startedAt = new Date().toISOString();
  const end = (status: RunPhase["status"], reason: string | null) => {
    const record: RunPhase = { name: phase.phase, status, reason, startedAt, finishedAt: new Date().toISOString() };
    journal.put(head, status === "failed" ? "failed" : "done", record, reason ?? undefined);
    tell("phase.finished", { ...record });
  };

  const skipped = whyLeftOut(context, phase, progress);
  if (skipped !== undefined) {
    skipLoops(context, phase);
    end("skipped", skipped);
    return progress;
  }
  const begun: RunPhase = { name: phase.phase, status: "running", reason: null, startedAt, finishedAt: null };
  journal.put(head, "begun", begun);
  tell("phase.started", { ...begun });
  try {
    const next = await dispatch(context, phase, progress);
    end("done", null);
    return next;
  } catch (error) {
    if (!(error instanceof RunStopped)) end("failed", messageOf(error));
    throw error;
  }
}

function dispatch(context: RunContext, phase: Phase, progress: Progress): Promise<Progress> {
  switch (phase.phase) {
    case "spec":
      return runSpec(context, phase, progress);
    case "decompose":
      return runDecompose(context, phase, progress);
    case "design":
      return runDesign(context, phase, progress);
    case "implement":
      return runImplement(context, phase, progress);
    case "cross-model-review":
      return runCrossModel(context, phase, progress);
  }
}

function whyLeftOut(context: RunContext, phase: Phase, progress: Progress): string | undefined {
  const condition = "condition" in phase ? phase.condition : undefined;
  const models = comparedModels(phase, context, context.serving);
  const why = whySkipped(condition, { models, tasks: progress.tasks });
  if (why !== undefined) return why;
  return phase.phase === "cross-model-review" && progress.tree === progress.baseTree ? "nothing was changed" : undefined;
}

function skipLoops({ recordLoop }: RunContext, phase: Phase): void {
  const reviews =
    phase.phase === "cross-model-review"
      ? [{ key: `${phase.phase}/review:${phase.agent}`, agent: phase.agent }]
      : "reviews" in phase
        ? reviewersOf(phase.phase, phase.reviews)
        : [];
  for (const { key, agent } of reviews) {
    recordLoop({
      key,
      phase: phase.phase,
      stream: null,
      agent,
      outcome: "skipped",
      reviews: 0,
      revisions: 0,
      approved: null,
      findings: null,
    });
  }
}

/** Everything that stands against calling a run approved. */
function judge(run: Run, tree: string): Pick<Ending, "outcome" | "reason"> {
  const against = [
    ...run.streams
      .filter((stream) => stream.status !== "done")
      .map((stream) => `stream ${stream.number} failed (${stream.reason})`),
    ...run.loops
      .filter((loop) => loop.outcome === "exhausted" || loop.outcome === "failed")
      .map((loop) => `${loop.key} is ${loop.outcome}`),
    ...currentEvidence(run, tree)
      .filter((each) => !passed([each]))
      .map((each) => `the check "${each.name}" fails`),
  ];
  return against.length === 0
    ? { outcome: "approved", reason: null }
    : { outcome: "unapproved", reason: [...new Set(against)].join("; ") };
}

/** Merges an approved result into the user's checkout; true when it is there. */
export async function apply(context: RunContext): Promise<boolean> {
  const { journal, workplace } = context;
  if (workplace.kind === "in place") return false;
  return journal.step(z.boolean(), { key: "run/apply", kind: "git", phase: "run" }, { branch: workplace.branch }, async () => {
    const why = await applyBranch(workplace.repo, workplace.branch);
    if (why !== undefined) context.note(`the result was not merged into the checkout: ${why}`);
    return { value: why === undefined };
  });
}
