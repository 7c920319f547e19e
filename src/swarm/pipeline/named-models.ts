import { relative } from "node:path";
import type { RunModel } from "../../protocol/runs.ts";
import { inside } from "./agents.ts";
import type { LoadedPipeline } from "./file.ts";
import { type DeclaredKind, kindOf } from "./kind.ts";
import type { Phase } from "./schema.ts";
import { VARIABLES } from "./settings.ts";

/** A model as a pipeline names it. */
export interface NamedModel {
  name: string;
  /** Where a person named it, such as `PRIMARY_MODEL` or `swarm.config.yaml:3: primaryModel`; undefined if it is our default. */
  where: string | undefined;
  /** Whether anybody is asked on it, or a condition depends on it. */
  used: boolean;
  /** Set for a list of models, which the name stands for: the first that is there is asked. */
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
  const general = (key: "primaryModel" | "reviewModel", used: boolean): NamedModel => {
    const named = namedBy[key];
    const where =
      named.by === "environment"
        ? VARIABLES[key]
        : named.by === "file" && path !== shipped.pipeline
          ? `${place(path)}:${named.line}: ${key}`
          : undefined;
    return { name: pipeline[key], where, used };
  };
  const asked = (review: boolean) =>
    members.some((member) => (member.review ?? false) === review && agents.get(member.name)?.model === undefined);
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
  return [general("primaryModel", asked(false) || compared), general("reviewModel", asked(true) || compared), ...own];
}

/** The two models that `differentReviewModel` compares for a phase. */
export function comparedModels(
  phase: Phase,
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
