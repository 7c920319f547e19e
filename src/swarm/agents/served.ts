import { named } from "../../lib/quoted.ts";
import type { Run, RunModel, RunStep } from "../../protocol/runs.ts";
import { servingAmong } from "./models.ts";

/** What is known about a call's model. */
export type Served = Pick<RunStep, "agent" | "model" | "asked">;

/** A sentence for each substitute model. */
export function describeSubstitutes(models: readonly RunModel[]): string[] {
  return models.filter(({ standsIn }) => standsIn).map(({ name, model }) => `${named(model)} stands in for ${named(name)}`);
}

/** One line that says which model answered which agent, and why if it was not the one that was asked for. */
export function servedLine(calls: readonly Served[], models: readonly RunModel[]): string {
  const used = models.filter(({ name, rehearsal }) => rehearsal || calls.some((call) => (call.asked ?? call.model) === name));
  const who = unique(calls.map(({ agent }) => agent)).map((agent) => {
    const served = unique(calls.filter((call) => call.agent === agent).map(({ model }) => model));
    return `${named(agent ?? "")} on ${served.map((model) => named(model ?? "")).join(" and ")}`;
  });
  return [who.join(", "), ...describeSubstitutes(used), ...otherNames(calls, models)].filter(Boolean).join(" · ");
}

export interface ModelUse {
  model: string;
  asked: string | null;
  agents: string[];
  calls: number;
}

/** Which models answered in a run, and for which agents. */
export function modelUses({ steps }: Pick<Run, "steps">): ModelUse[] {
  const uses = new Map<string, ModelUse>();
  for (const { kind, state, agent, model, asked } of steps) {
    if (kind !== "call" || state === "begun" || model === null) continue;
    const key = JSON.stringify([model, asked]);
    const use = uses.get(key) ?? { model, asked, agents: [], calls: 0 };
    uses.set(key, { ...use, agents: unique([...use.agents, agent ?? ""]), calls: use.calls + 1 });
  }
  return [...uses.values()];
}

/** Models that were asked for and answered under another name. */
export function otherNames(calls: readonly Omit<Served, "agent">[], models: readonly RunModel[]): string[] {
  const serving = servingAmong(models);
  return unique(
    calls.flatMap(({ model, asked }) =>
      model === null || asked === null || asked === model || serving(asked).standsIn
        ? []
        : [`${named(asked)} answered as ${named(model)}`],
    ),
  );
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
