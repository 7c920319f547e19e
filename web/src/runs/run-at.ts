import type { Run } from "../../../src/protocol/runs.ts";

/**
 * A run as it was at a given time, derived from the same data: what had not started is left out, and what had not ended is
 * running.
 */
export function runAt(run: Run, time: number): Run {
  const at = (iso: string | null) => (iso === null ? Number.POSITIVE_INFINITY : Date.parse(iso));
  if (time >= at(run.finishedAt)) return run;
  const steps = run.steps
    .filter((step) => at(step.tries?.[0]?.startedAt ?? step.startedAt) <= time)
    .map((step) => {
      if (at(step.finishedAt) <= time) return step;
      const attempts = Math.max(1, step.tries?.filter(({ startedAt }) => at(startedAt) <= time).length ?? 1);
      return { ...step, state: "begun" as const, attempts, verdict: null, error: null, finishedAt: null };
    });
  const phases = run.phases
    .filter(({ startedAt }) => at(startedAt) <= time)
    .map((phase) =>
      at(phase.finishedAt) <= time ? phase : { ...phase, status: "running" as const, reason: null, finishedAt: null },
    );
  const lastOf = (stream: number) =>
    Math.max(...run.steps.filter((step) => step.stream === stream).map((step) => at(step.finishedAt)));
  const streams = run.streams
    .filter(({ number }) => steps.some((step) => step.stream === number))
    .map((stream) =>
      lastOf(stream.number) <= time ? stream : { ...stream, status: "running" as const, merged: false, reason: null },
    );
  const loops = run.loops.filter(({ key }) => {
    const rounds = run.steps.filter((step) => step.key.startsWith(`${key}/`));
    return rounds.length > 0 && rounds.every((step) => at(step.finishedAt) <= time);
  });
  const evidence = run.evidence.filter((each) => at(each.at) <= time);
  return { ...run, status: "running", outcome: null, reason: null, finishedAt: null, steps, phases, streams, loops, evidence };
}

/** The times at which something started or ended, in order. */
export function momentsOf(run: Run): number[] {
  const times = run.steps.flatMap(({ startedAt, finishedAt }) => (finishedAt === null ? [startedAt] : [startedAt, finishedAt]));
  const all = [run.createdAt, ...times, ...(run.finishedAt === null ? [] : [run.finishedAt])].map((iso) => Date.parse(iso));
  return [...new Set(all)].sort((a, b) => a - b);
}
