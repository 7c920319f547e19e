import { relative } from "node:path";
import type { RunModel } from "../../protocol/runs.ts";
import { inside } from "./agents.ts";
import type { LoadedPipeline } from "./file.ts";
import { membersOf } from "./plan.ts";
import type { Phase } from "./schema.ts";
import { VARIABLES } from "./settings.ts";

/** A model as a pipeline names it. */
export interface NamedModel {
  name: string;
  /** Where a person named it, such as `PRIMARY_MODEL` or `swarm.config.yaml:3: primaryModel`; undefined for a default of ours. */
  where: string | undefined;
  /** Whether anybody is asked on it, or a condition depends on it. */
  used: boolean;
}

export interface ModelPlaces {
  root: string;
  /** What ships with us names defaults only. */
  shipped: { agents: string; pipeline: string };
}

/** Every model that a pipeline names, and where. */
export function namedModels({ path, pipeline, namedBy, agents }: LoadedPipeline, { root, shipped }: ModelPlaces): NamedModel[] {
  const members = pipeline.pipeline.flatMap(membersOf);
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
  const compared = pipeline.pipeline.some((phase) => phase.phase !== "cross-model-review" && comparesModels(phase));
  const own = [...new Set(members.map(({ name }) => name))].flatMap((name): NamedModel[] => {
    const agent = agents.get(name);
    if (agent?.model === undefined) return [];
    const ours = inside(shipped.agents, agent.path);
    return [{ name: agent.model, where: ours ? undefined : `${place(agent.path)}: model`, used: true }];
  });
  return [general("primaryModel", asked(false) || compared), general("reviewModel", asked(true) || compared), ...own];
}

function comparesModels(phase: Phase): boolean {
  return "condition" in phase && phase.condition === "differentReviewModel";
}

/** The models that `differentReviewModel` compares: of who built and who reviews, or where nobody of the phase does, the two of the file. */
export function comparedModels(
  phase: Phase,
  { pipeline, agents }: Pick<LoadedPipeline, "pipeline" | "agents">,
  serving: (name: string) => RunModel,
): { primary: RunModel; review: RunModel } {
  const of = (agent: string | undefined, fallback: string) =>
    serving((agent === undefined ? undefined : agents.get(agent)?.model) ?? fallback);
  const reviewed = phase.phase === "cross-model-review";
  const builder = pipeline.pipeline.find((each) => each.phase === "implement")?.agent;
  return {
    primary: of(reviewed ? builder : undefined, pipeline.primaryModel),
    review: of(reviewed ? phase.agent : undefined, pipeline.reviewModel),
  };
}
