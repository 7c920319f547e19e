import type { Run, RunStep } from "../../../src/protocol/runs.ts";

/** A row of the timeline: the heading of a phase or stream, or a step. */
export type TimelineRow =
  | { key: string; head: string; level: "phase" | "stream"; status: string | undefined; step?: undefined }
  | { key: string; head?: undefined; step: RunStep; level: "phase" | "stream" };

/** The phase name of steps that concern the run as a whole, such as git and journal work. */
const OF_RUN = "run";

/**
 * Groups the steps by phase in the order in which the phases began, and within a phase by stream. The steps of the run as a whole
 * come last.
 */
export function groupSteps({ steps, phases, streams }: Pick<Run, "steps" | "phases" | "streams">): TimelineRow[] {
  const byPhase = new Map<string, RunStep[]>();
  for (const step of steps) byPhase.set(step.phase, [...(byPhase.get(step.phase) ?? []), step]);
  return [...byPhase]
    .sort(([a], [b]) => positionOf(a, phases) - positionOf(b, phases))
    .flatMap(([phase, mine]): TimelineRow[] => {
      const numbers = [...new Set(mine.flatMap(({ stream }) => stream ?? []))].sort((a, b) => a - b);
      const { before, after } = aroundStreams(mine);
      const rowOf = (step: RunStep) => ({ key: step.key, step, level: "phase" as const });
      return [
        {
          key: `phase ${phase}`,
          head: phase === OF_RUN ? "the run itself" : phase,
          level: "phase",
          status: phases.find(({ name }) => name === phase)?.status,
        },
        ...before.map(rowOf),
        ...numbers.flatMap((number): TimelineRow[] => {
          const stream = streams.find((each) => each.number === number);
          const words = stream?.task.trim().split("\n", 1)[0] ?? "";
          return [
            {
              key: `stream ${phase} ${number}`,
              head: `Stream ${number}${words ? `: ${words}` : ""}`,
              level: "stream",
              status: stream?.status,
            },
            ...mine.filter((step) => step.stream === number).map((step) => ({ key: step.key, step, level: "stream" as const })),
          ];
        }),
        ...after.map(rowOf),
      ];
    });
}

/**
 * A phase that has not begun stands behind those that have: its baseline checks already run during the first phase, and a failed
 * run never begins it.
 */
function positionOf(phase: string, phases: Run["phases"]): number {
  const position = phases.findIndex(({ name }) => name === phase);
  if (position >= 0) return position;
  return phases.length + (phase === OF_RUN ? 1 : 0);
}

/** The steps of a phase that belong to none of its streams: those begun before the first stream, and those begun later. */
function aroundStreams(steps: readonly RunStep[]): { before: RunStep[]; after: RunStep[] } {
  const first = steps.findIndex(({ stream }) => stream !== null);
  const until = first === -1 ? steps.length : first;
  return { before: steps.slice(0, until), after: steps.slice(until).filter(({ stream }) => stream === null) };
}

/** A step's key without the parts shown elsewhere: its phase, its stream, its kind and its agent. Hashes are shortened. */
export function stepWords({
  key,
  phase,
  stream,
  kind,
  agent,
}: Pick<RunStep, "key" | "phase" | "stream" | "kind" | "agent">): string {
  const shown = new Set([OF_RUN, phase, `stream-${stream}`, kind]);
  const parts = key.split("/").filter((part) => !shown.has(part));
  return parts
    .map((part) => (/^[\da-f]{12,}$/.test(part) ? part.slice(0, 7) : part))
    .map((part) => (agent !== null && part.endsWith(`:${agent}`) ? part.slice(0, -agent.length - 1) : part))
    .join(" ");
}
