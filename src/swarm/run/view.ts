import { z } from "zod";
import { isAlive } from "../../lib/alive.ts";
import {
  CheckEvidence,
  ReviewLoop,
  type Run,
  type RunModel,
  RunPhase,
  type RunStatus,
  RunStream,
  type RunSummary,
} from "../../protocol/runs.ts";
import { noUsage } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import { type RunRow, type Runs, type StepRow, stepOf } from "../../store/runs.ts";
import { Inputs } from "../pipeline/inputs.ts";
import { add } from "./caller.ts";

const STALE_MS = 60_000;

/** Draws a run from its journal. */
export function viewRun(runs: Runs, row: RunRow, now: Date): Run {
  const steps = runs.steps(row.id);
  return {
    ...summarizeRun(runs, row, now),
    loops: results(steps, "loop", ReviewLoop),
    evidence: results(steps, "checks", z.array(CheckEvidence)).flat(),
    steps: steps.filter((step) => step.kind === "call" || step.kind === "checks" || step.kind === "git").map(stepOf),
    decisions: decisionsIn(steps),
    notes: results(
      steps.filter((step) => step.key !== DECISIONS),
      "note",
      z.string(),
    ),
  };
}

/** The key under which a run's decisions are noted. */
export const DECISIONS = "run/decisions";

/** Draws a run for a list, without reading what its agents said. */
export function summarizeRun(runs: Runs, row: RunRow, now: Date): RunSummary {
  const status = statusOf(row, now);
  return {
    id: row.id,
    status,
    outcome: row.outcome,
    reason: row.reason,
    projectPath: row.project_path,
    issue: row.issue,
    branch: row.branch,
    base: row.base,
    tree: row.tree,
    applied: row.applied,
    models: modelsIn(row),
    phases: results(runs.stepsOf(row.id, "phase"), "phase", RunPhase).map((phase) => asLeft(phase, status)),
    streams: results(runs.stepsOf(row.id, "stream"), "stream", RunStream)
      .map((stream) => asLeft(stream, status))
      .sort((a, b) => a.number - b.number),
    usage: runs.usages(row.id).reduce(add, noUsage()),
    conversation: row.conversation,
    squad: row.squad,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}

/** What serves for each name; runs from before it was written down do not say. */
function modelsIn({ inputs }: RunRow): RunModel[] {
  return readJson(Inputs.pick({ models: true }), inputs)?.models ?? [];
}

/** What was under way when its run was stopped ended as the run did. */
function asLeft<T extends RunPhase | RunStream>(part: T, run: RunStatus): T {
  return part.status === "running" && run !== "done" ? { ...part, status: run } : part;
}

/** A run that nobody works on any more, though it did not end, was interrupted. */
export function statusOf(row: RunRow, now: Date): RunStatus {
  if (row.status !== "running") return row.status;
  const fresh = row.beat_at !== null && now.getTime() - Date.parse(row.beat_at) < STALE_MS;
  return row.pid !== null && fresh && isAlive(row.pid) ? "running" : "interrupted";
}

/** What another version of IO wrote, and this one cannot read, is left out. */
function results<T>(steps: readonly StepRow[], kind: StepRow["kind"], schema: z.ZodType<T>): T[] {
  return steps.filter((step) => step.kind === kind).flatMap(({ result }) => readJson(schema, result) ?? []);
}

function decisionsIn(steps: readonly StepRow[]): string[] {
  const step = steps.find((each) => each.key === DECISIONS);
  return readJson(z.array(z.string()), step?.result) ?? [];
}
