import { relative } from "node:path";
import type { RunModel } from "../../protocol/runs.ts";
import { inside } from "./agents.ts";
import { type LoadedPipeline, MODEL_KEYS, type ModelKey } from "./file.ts";
import { type DeclaredKind, kindOf, type Member } from "./kind.ts";
import type { Placed, ResolvedPipeline } from "./schema.ts";

/** The pipeline's model for agents that have none of their own. */
export function modelOn({ primaryModel, reviewModel, fastModel }: ResolvedPipeline, on: Member["on"] = "primary"): string {
  return { primary: primaryModel, review: reviewModel, fast: fastModel ?? primaryModel }[on];
}

/** A model as a pipeline names it. */
export interface NamedModel {
  name: string;
  /** Where a person named it, such as `PRIMARY_MODEL` or `swarm.config.yaml:3: primaryModel`; undefined if it is our default. */
  where: string | undefined;
  /** Whether an agent is asked on it, or a condition depends on it. */
  used: boolean;
  /** The models that `name` stands for if it is a list; the first that exists is asked. */
  anyOf?: readonly string[];
}

export interface ModelPlaces {
  root: string;
  /** Files that ship with us only name defaults. */
  shipped: { agents: string; pipeline: string };
  kinds: readonly DeclaredKind[];
}

/** Every model that a pipeline names, and where. */
export function namedModels(
  { path, pipeline, namedBy, agents }: LoadedPipeline,
  { root, shipped, kinds }: ModelPlaces,
): NamedModel[] {
  const members = pipeline.pipeline.flatMap((phase) => kindOf(kinds, phase).members(phase));
  const place = (file: string) => (inside(root, file) ? relative(root, file) : file);
  const whereNamed = (key: ModelKey): string | undefined => {
    const named = namedBy[key];
    if (named.by === "environment") return named.variable;
    return named.by === "file" && path !== shipped.pipeline ? `${place(path)}:${named.line}: ${key}` : undefined;
  };
  const asked = (model: string) =>
    members.some((member) => agents.get(member.name)?.model === undefined && modelOn(pipeline, member.on) === model);
  const compared = pipeline.pipeline.some(
    (phase) => phase.condition === "differentReviewModel" && !kindOf(kinds, phase).compares,
  );
  const own = [...new Set(members.map(({ name }) => name))].flatMap((name): NamedModel[] => {
    const agent = agents.get(name);
    if (agent?.model === undefined) return [];
    const ours = inside(shipped.agents, agent.path);
    const { model, modelChoices: anyOf } = agent;
    return [{ name: model, where: ours ? undefined : `${place(agent.path)}: model`, used: true, ...(anyOf && { anyOf }) }];
  });
  const general = MODEL_KEYS.flatMap((key): NamedModel[] => {
    const name = pipeline[key];
    const used = name !== undefined && (asked(name) || (compared && key !== "fastModel"));
    return name === undefined ? [] : [{ name, where: whereNamed(key), used }];
  });
  return [...general, ...own];
}

/** The two models that `differentReviewModel` compares for a phase. */
export function comparedModels(
  phase: Placed,
  { pipeline, agents }: Pick<LoadedPipeline, "pipeline" | "agents">,
  kind: DeclaredKind,
  serving: (name: string) => RunModel,
): { primary: RunModel; review: RunModel } {
  const compared = kind.compares?.(phase, pipeline);
  const modelOf = (agent: string | undefined, fallback: string) =>
    serving((agent === undefined ? undefined : agents.get(agent)?.model) ?? fallback);
  return {
    primary: modelOf(compared?.builder, pipeline.primaryModel),
    review: modelOf(compared?.reviewer, pipeline.reviewModel),
  };
}
