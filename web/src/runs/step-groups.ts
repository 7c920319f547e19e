import type { Run, RunStep } from "../../../src/protocol/runs.ts";

/** A line of the timeline: the head of a phase or a stream, or a step in it. */
export type TimelineRow =
  | { head: string; level: "phase" | "stream"; status: string | undefined; step?: undefined }
  | { head?: undefined; step: RunStep; level: "phase" | "stream" };

/** The phase of what git and the journal do for a run as a whole. */
const OF_RUN = "run";

/** The steps phase by phase, in each its streams from the first on, and after them those of the run as a whole. */
export function groupSteps({ steps, phases, streams }: Pick<Run, "steps" | "phases" | "streams">): TimelineRow[] {
  const byPhase = new Map<string, RunStep[]>();
  for (const step of steps) byPhase.set(step.phase, [...(byPhase.get(step.phase) ?? []), step]);
  const placeOf = (phase: string) => (phase === OF_RUN ? phases.length : phases.findIndex(({ name }) => name === phase));
  const inOrder = [...byPhase].sort(([a], [b]) => placeOf(a) - placeOf(b));
  return inOrder.flatMap(([phase, mine]): TimelineRow[] => {
    const numbers = [...new Set(mine.flatMap(({ stream }) => stream ?? []))].sort((a, b) => a - b);
    return [
      {
        head: phase === OF_RUN ? "the run itself" : phase,
        level: "phase",
        status: phases.find(({ name }) => name === phase)?.status,
      },
      ...mine.filter(({ stream }) => stream === null).map((step) => ({ step, level: "phase" as const })),
      ...numbers.flatMap((number): TimelineRow[] => {
        const stream = streams.find((each) => each.number === number);
        const words = stream?.task.trim().split("\n", 1)[0] ?? "";
        return [
          { head: `Stream ${number}${words ? `: ${words}` : ""}`, level: "stream", status: stream?.status },
          ...mine.filter((step) => step.stream === number).map((step) => ({ step, level: "stream" as const })),
        ];
      }),
    ];
  });
}

/** A step's key without what stands above it anyway: its phase, its stream, and who did it. */
export function stepWords({ key, phase, stream, agent }: Pick<RunStep, "key" | "phase" | "stream" | "agent">): string {
  const parts = key.split("/").filter((part) => part !== phase && part !== `stream-${stream}`);
  return parts.map((part) => (agent !== null && part.endsWith(`:${agent}`) ? part.slice(0, -agent.length - 1) : part)).join(" ");
}
