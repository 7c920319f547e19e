import { z } from "zod";
import { isAlive } from "../../lib/alive.ts";
import {
  CheckEvidence,
  ReviewLoop,
  type Run,
  RunPhase,
  type RunStatus,
  type RunStep,
  RunStream,
  type RunSummary,
} from "../../protocol/runs.ts";
import { noUsage } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import { type RunRow, type Runs, type StepRow, stepOf } from "../../store/runs.ts";
import { Inputs } from "../pipeline/inputs.ts";
import { runKeys } from "./keys.ts";
import { readResult, unreadable } from "./stored.ts";
import { addUsage } from "./usage.ts";

const STALE_MS = 60_000;

/** Draws a run from its journal; what another version wrote is left out, and the reason says so. */
export function viewRun(runs: Runs, row: RunRow, now: Date): Run {
  const steps = runs.steps(row.id);
  const read = createReader();
  const { reason, ...summary } = summaryFrom(runs, row, now, read);
  const loops = read.results(steps, "loop", ReviewLoop);
  const isBaseline = (step: StepRow) => step.key === runKeys.baseline;
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
    loops,
    baseline: evidenceIn(steps.filter(isBaseline)),
    evidence: evidenceIn(steps.filter((step) => !isBaseline(step))),
    steps: steps.filter((step) => step.kind === "call" || step.kind === "checks" || step.kind === "git").map(withTries),
    decisions,
    notes,
  };
}

/** Draws a run for a list, without reading what its agents said. */
export function summarizeRun(runs: Runs, row: RunRow, now: Date): RunSummary {
  return summaryFrom(runs, row, now, createReader());
}

function summaryFrom(runs: Runs, row: RunRow, now: Date, read: Reader): RunSummary {
  const status = statusOf(row, now);
  const models = read.stored(Inputs, row.inputs)?.models ?? [];
  const phases = read.results(runs.stepsOf(row.id, "phase"), "phase", RunPhase);
  const streams = read.results(runs.stepsOf(row.id, "stream"), "stream", RunStream);
  return {
    id: row.id,
    status,
    outcome: row.outcome,
    reason: read.missed() ? withUnreadable(row.reason) : row.reason,
    projectPath: row.project_path,
    issue: row.issue,
    branch: row.branch,
    base: row.base,
    tree: row.tree,
    applied: row.applied,
    models,
    phases: phases.map((phase) => endedWith(phase, status)),
    streams: streams.map((stream) => endedWith(stream, status)).sort((a, b) => a.number - b.number),
    usage: runs.usages(row.id).reduce(addUsage, noUsage()),
    conversation: row.conversation,
    squad: row.squad,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}

/** Reads what is stored piece by piece, and remembers whether one could not be read. */
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

/** A run that did not end, and that no living process works on, was interrupted. */
export function statusOf(row: RunRow, now: Date): RunStatus {
  if (row.status !== "running") return row.status;
  const fresh = row.beat_at !== null && now.getTime() - Date.parse(row.beat_at) < STALE_MS;
  return row.pid !== null && fresh && isAlive(row.pid) ? "running" : "interrupted";
}
