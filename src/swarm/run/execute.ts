import { z } from "zod";
import { messageOf, UserError } from "../../lib/errors.ts";
import { checkWords, isHeldAgainst, verdictOf } from "../../protocol/check-words.ts";
import type { ReviewLoop, Run, RunOutcome, RunPhase } from "../../protocol/runs.ts";
import { isTemporary } from "../../store/faults.ts";
import { whyUntested } from "../checks/untested.ts";
import { type CheckRecord, canNotice } from "../checks/verdicts.ts";
import type { Progress, RunContext } from "../context/context.ts";
import { decisionsOf } from "../phases/decisions.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { whySkipped } from "../pipeline/conditions.ts";
import { kindOf, withApprovers } from "../pipeline/kind.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Placed } from "../pipeline/schema.ts";
import { currentEvidence } from "../steps/current-evidence.ts";
import { NotApproved, RunFailed, RunStopped } from "../steps/journal.ts";
import { recordKeys, runKeys } from "../steps/keys.ts";
import { probeChecks } from "../streams/probe-checks.ts";
import { baseState } from "../workspace/companions.ts";
import { documentsOfPhase } from "./document-names.ts";

export interface Ending {
  /** "done" if every phase came to its end, approved or not. */
  status: "done" | "failed";
  outcome: RunOutcome;
  reason: string | null;
  tree: string | null;
}

/** Runs a pipeline's phases in order and returns how that ended. Throws only if the run was stopped or hit a bug of ours. */
export async function execute(context: RunContext, kinds: readonly PhaseKind[], view: () => Run): Promise<Ending> {
  const { pipeline, journal } = context;
  let progress: Progress = { spec: "", tasks: [], design: "", streams: [], baseTree: "", tree: "", approvers: [] };
  try {
    const baseTree = await startingTree(context, kinds);
    progress = { ...progress, baseTree, tree: baseTree };
    if (baseTree !== "") await beginChecks(context, baseTree, view);
    for (const phase of pipeline.pipeline) progress = await runPhase(context, kinds, phase, progress);
    journal.put({ key: runKeys.decisions, kind: "note", phase: "run" }, "done", decisionsOf(progress.spec));
    return { status: "done", ...judge(view(), progress), tree: progress.tree || null };
  } catch (error) {
    if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
    const outcome = error instanceof NotApproved ? "unapproved" : "failed";
    return { status: "failed", outcome, reason: messageOf(error), tree: progress.tree || null };
  }
}

/** How the reason begins if a run was refused because its checks cannot run. */
const REFUSED = "no model was asked, because the checks of the project are required and cannot run here: ";

/** Whether a run ended before any model was asked, because its checks cannot run. */
export const isRefused = ({ reason }: Pick<Run, "reason">): boolean => reason?.startsWith(REFUSED) === true;

/**
 * Installs what the checks need, and probes them while the first model thinks. It waits for the probe if the run depends on it,
 * or if all agents work in one place: nothing may change there meanwhile.
 */
export async function beginChecks(context: RunContext, baseTree: string, view: () => Run): Promise<void> {
  await context.prepare();
  let before: () => Promise<unknown> = async () => undefined;
  for (const { checks, ...part } of context.parts) {
    const previous = before;
    const probe = () => previous().then(() => probeChecks({ ...context, ...part, checks }, baseTree));
    checks.begin(probe, context.asked);
    before = checks.probeResult;
  }
  const isAwaited = context.requireChecks || context.workplace.kind === "in place";
  const probeResults = isAwaited ? await Promise.all(context.parts.map(({ checks }) => checks.probeResult())) : [];
  if (!context.requireChecks) return;
  const baseline = probeResults.flatMap((each) => each.baseline);
  const missing = view().preparation.flatMap((each) => (verdictOf(each) === "passed" ? [] : (each.why ?? [])));
  // A check that ran without distinguishing anything may lack what could not be installed.
  const isUnable = (each: CheckRecord) =>
    verdictOf(each) === "could not run" || (missing.length > 0 && !canNotice(each)) || !baseline.some(canNotice);
  const unable = baseline.filter(isUnable);
  if (baseline.length > 0 && unable.length === 0) return;
  const why = unable.map((each) => `"${each.name}" ${checkWords(each)}`);
  throw new RunFailed(`${REFUSED}${[...(why.length > 0 ? why : ["it has none"]), ...missing].join("; ")}`);
}

function startingTree({ journal, workplace, pipeline }: RunContext, kinds: readonly PhaseKind[]): Promise<string> {
  if (!pipeline.pipeline.some((phase) => kindOf(kinds, phase).workplace)) return Promise.resolve("");
  return journal.step(z.string(), { key: runKeys.base, kind: "git", phase: "run" }, {}, async () => ({
    value: workplace.kind === "branch" ? await baseState(workplace) : (await workplace.workspace.save("")).tree,
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
    // An interrupted phase continues when the run is resumed.
    if (!(error instanceof RunStopped) && !isTemporary(error)) end("failed", messageOf(error));
    throw error;
  }
}

function skippedLoop({ id: phase }: Placed, { key, agent }: { key: string; agent: string }): ReviewLoop {
  return { key, phase, stream: null, agent, outcome: "skipped", reviews: 0, revisions: 0, approved: null, findings: null };
}

/** A run is approved if it changed something, a check that could notice it passed, and nothing speaks against it. */
function judge(run: Run, { tree, baseTree, streams }: Progress): Pick<Ending, "outcome" | "reason"> {
  const evidence = currentEvidence(run, tree);
  const against = [
    ...run.streams
      .filter((stream) => stream.status !== "done")
      .map((stream) => `stream ${stream.number} failed (${stream.reason})`),
    ...run.loops
      .filter((loop) => loop.outcome === "exhausted" || loop.outcome === "failed")
      .map((loop) => `${loop.key} is ${loop.outcome}`),
    ...evidence.filter(isHeldAgainst).map((each) => `the check "${each.name}" fails${each.why ? ` (${each.why})` : ""}`),
  ];
  if (streams.length > 0 && tree === baseTree)
    return { outcome: "unchanged", reason: ["the result is what the run began from", ...new Set(against)].join("; ") };
  if (against.length > 0) return { outcome: "unapproved", reason: [...new Set(against)].join("; ") };
  const untested = streams.length > 0 ? whyUntested(evidence) : undefined;
  return untested === undefined ? { outcome: "approved", reason: null } : { outcome: "untested", reason: untested };
}
