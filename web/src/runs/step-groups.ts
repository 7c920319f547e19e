import type { Run, RunStep } from "../../../src/protocol/runs.ts";

/** A row of the timeline: the heading of a phase or stream, or a step. */
export type TimelineRow =
  | { key: string; head: string; level: "phase" | "stream"; status: string | undefined; step?: undefined }
  | { key: string; head?: undefined; step: RunStep; level: "phase" | "stream" };

/** The phase name of steps that concern the run as a whole, such as git and journal work. */
const OF_RUN = "run";

/** Groups the steps by phase, and within a phase by stream in order. The steps of the run as a whole come last. */
export function groupSteps({ steps, phases, streams }: Pick<Run, "steps" | "phases" | "streams">): TimelineRow[] {
  const byPhase = new Map<string, RunStep[]>();
  for (const step of steps) byPhase.set(step.phase, [...(byPhase.get(step.phase) ?? []), step]);
  const placeOf = (phase: string) => (phase === OF_RUN ? phases.length : phases.findIndex(({ name }) => name === phase));
  const inOrder = [...byPhase].sort(([a], [b]) => placeOf(a) - placeOf(b));
  return inOrder.flatMap(([phase, mine]): TimelineRow[] => {
    const numbers = [...new Set(mine.flatMap(({ stream }) => stream ?? []))].sort((a, b) => a - b);
    return [
      {
        key: `phase ${phase}`,
        head: phase === OF_RUN ? "the run itself" : phase,
        level: "phase",
        status: phases.find(({ name }) => name === phase)?.status,
      },
      ...mine.filter(({ stream }) => stream === null).map((step) => ({ key: step.key, step, level: "phase" as const })),
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
    ];
  });
}

/** A step's key without the parts shown elsewhere: its phase, its stream and its agent. */
export function stepWords({ key, phase, stream, agent }: Pick<RunStep, "key" | "phase" | "stream" | "agent">): string {
  const parts = key.split("/").filter((part) => part !== phase && part !== `stream-${stream}`);
  return parts.map((part) => (agent !== null && part.endsWith(`:${agent}`) ? part.slice(0, -agent.length - 1) : part)).join(" ");
}
