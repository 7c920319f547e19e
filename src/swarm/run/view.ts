import { join } from "node:path";
import { z } from "zod";
import {
  CheckEvidence,
  ReviewLoop,
  type Run,
  RunPhase,
  type RunRepository,
  type RunStatus,
  type RunStep,
  RunStream,
  type RunSummary,
} from "../../protocol/runs.ts";
import { noUsage } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import { type RunRow, type Runs, type StepRow, stepOf } from "../../store/runs.ts";
import { Inputs } from "../pipeline/inputs.ts";
import { runKeys } from "../steps/keys.ts";
import { readResult, unreadable } from "../steps/stored.ts";
import { addUsage } from "../steps/usage.ts";

/** Whether a run is in progress. */
export type IsAtWork = (runId: string) => boolean;

/** Builds a run from its journal; leaves out what another version wrote, and says so in the reason. */
export function viewRun(runs: Runs, row: RunRow, isAtWork: IsAtWork): Run {
  const steps = runs.steps(row.id);
  const read = createReader();
  const { reason, ...summary } = summaryFrom(runs, row, isAtWork, read);
  const loops = read.results(steps, "loop", ReviewLoop);
  const isBaseline = (step: StepRow) => step.key === runKeys.baseline || step.key.startsWith(`${runKeys.baseline}/`);
  const isPreparation = (step: StepRow) => step.key === runKeys.prepare || step.key.startsWith(`${runKeys.prepare}/`);
  const evidenceIn = (those: StepRow[]) => read.results(those, "checks", z.array(CheckEvidence)).flat();
  const isDecisions = (step: StepRow) => step.key === runKeys.decisions;
  const decisions = read.results(steps.filter(isDecisions), "note", z.array(z.string())).flat();
  const notes = read.results(
    steps.filter((step) => !isDecisions(step)),
    "note",
    z.string(),
  );
  const tries = runs.tries(row.id);
  const withTries = (step: StepRow): RunStep => ({
    ...stepOf(step),
    ...(tries.has(step.key) && { tries: tries.get(step.key) }),
  });
  return {
    ...summary,
    reason: read.missed() ? withUnreadable(row.reason) : reason,
    documents: documentsOf(row, steps),
    loops,
    baseline: evidenceIn(steps.filter(isBaseline)),
    preparation: evidenceIn(steps.filter(isPreparation)),
    evidence: evidenceIn(steps.filter((step) => !isBaseline(step) && !isPreparation(step))),
    steps: steps.filter((step) => step.kind === "call" || step.kind === "checks" || step.kind === "git").map(withTries),
    decisions,
    notes,
  };
}

/** The documents folder, once the last document is written. */
function documentsOf({ inputs, project_path }: RunRow, steps: readonly StepRow[]): string | null {
  const docDir = readJson(Inputs, inputs)?.settings.docDir;
  const isWritten = steps.some(({ key, state }) => key === runKeys.summary && state === "done");
  return docDir !== undefined && isWritten ? join(project_path, docDir) : null;
}

/** Builds a run for a list, without reading what its agents said. */
export function summarizeRun(runs: Runs, row: RunRow, isAtWork: IsAtWork): RunSummary {
  return summaryFrom(runs, row, isAtWork, createReader());
}

function summaryFrom(runs: Runs, row: RunRow, isAtWork: IsAtWork, read: Reader): RunSummary {
  const status = statusOf(row, isAtWork);
  const inputs = read.stored(Inputs, row.inputs);
  const phases = read.results(runs.stepsOf(row.id, "phase"), "phase", RunPhase);
  const streams = read.results(runs.stepsOf(row.id, "stream"), "stream", RunStream);
  const waitsFor = status === "running" ? runs.waitsFor(row) : undefined;
  return {
    id: row.id,
    status,
    ...(waitsFor && { waitsFor }),
    outcome: row.outcome,
    reason: read.missed() ? withUnreadable(row.reason) : row.reason,
    projectPath: row.project_path,
    issue: row.issue,
    branch: row.branch,
    base: row.base,
    tree: row.tree,
    repositories: inputs ? repositoriesOf(row, inputs) : [],
    applied: row.applied,
    models: inputs?.models ?? [],
    phases: phases.map((phase) => endedWith(phase, status)),
    streams: streams.map((stream) => endedWith(stream, status)).sort((a, b) => a.number - b.number),
    usage: runs.usages(row.id).reduce(addUsage, noUsage()),
    conversation: row.conversation,
    squad: row.squad,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}

/** The other repositories come first: the run's own may need their changes. */
function repositoriesOf({ project_path, branch, base }: RunRow, { with: others, ownTree }: Inputs): RunRepository[] {
  if (others.length === 0) return [];
  const all = [...others, { projectPath: project_path, base, tree: ownTree }];
  return all.map((each) => ({ projectPath: each.projectPath, branch, base: each.base, tree: each.tree ?? null }));
}

/** Reads stored values one by one, and remembers whether one was unreadable. */
function createReader() {
  let missed = false;
  const noted = <T>(value: T | undefined): T | undefined => {
    missed ||= value === undefined;
    return value;
  };
  return {
    stored: <T>(schema: z.ZodType<T>, text: string): T | undefined => noted(readJson(schema, text)),
    results: <T>(steps: readonly StepRow[], kind: StepRow["kind"], schema: z.ZodType<T>): T[] =>
      steps
        .filter((step) => step.kind === kind && step.result !== null)
        .flatMap((step) => {
          const value = noted(readResult(schema, step));
          return value === undefined ? [] : [value];
        }),
    missed: () => missed,
  };
}
type Reader = ReturnType<typeof createReader>;

function withUnreadable(reason: string | null): string {
  const told = unreadable("some of this run");
  return reason === null ? told : `${reason} (${told})`;
}

/** A phase or stream that was running when its run stopped ended as the run did. */
function endedWith<T extends RunPhase | RunStream>(part: T, run: RunStatus): T {
  return part.status === "running" && run !== "done" ? { ...part, status: run } : part;
}

/** An unfinished run that the store's owner does not work on was interrupted. */
export function statusOf({ id, status }: Pick<RunRow, "id" | "status">, isAtWork: IsAtWork): RunStatus {
  return status === "running" && !isAtWork(id) ? "interrupted" : status;
}
