import { join, resolve } from "node:path";
import { packageRoot } from "../../lib/package-root.ts";
import { nameConventions } from "../../project/conventions.ts";
import type { PlannedCheck } from "../../protocol/plans.ts";
import { type CheckFinders, plannedChecks } from "../checks/planned-checks.ts";
import { PHASE_KINDS } from "../phases/index.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { findPipelineFile, type LoadedPipeline, loadPipeline } from "../pipeline/file.ts";
import { type NamedModel, namedModels } from "../pipeline/named-models.ts";
import { type Plan, resolvePlan } from "../pipeline/plan.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { checkAgentsDir, openProject } from "./checkout.ts";

export interface PipelinesDeps {
  dataFolder?: string | undefined;
  kinds?: readonly PhaseKind[] | undefined;
  /** The agents and the pipeline that ship with us. */
  shipped?: { agents: string; pipeline: string } | undefined;
}

const SHIPPED = { agents: join(packageRoot, "agents"), pipeline: join(packageRoot, "pipelines", "default.yaml") };

export interface PipelineOf {
  projectPath: string;
  settings: RunSettings;
  /** A pipeline file other than the project's own. */
  pipelineFile?: string | undefined;
}

/** The pipelines of projects. Needs neither the store nor an engine. */
export function createPipelines({ kinds = PHASE_KINDS, shipped = SHIPPED, dataFolder }: PipelinesDeps = {}) {
  const open = (projectPath: string) => openProject(projectPath, dataFolder);
  /** Throws one usage error with everything that is wrong. */
  async function load({ projectPath, settings, pipelineFile }: PipelineOf): Promise<LoadedPipeline> {
    const root = open(projectPath);
    checkAgentsDir(root, settings);
    const file = pipelineFile === undefined ? findPipelineFile(root, shipped.pipeline) : resolve(root, pipelineFile);
    return loadPipeline(file, {
      kinds,
      places: { root, agentsDir: settings.agentsDir, shipped: shipped.agents },
      models: settings,
      ...(pipelineFile === undefined && file !== shipped.pipeline && { within: root }),
    });
  }
  return {
    kinds,
    open,
    load,
    /** Which agent does what on which model, and the most it can cost. */
    validate: async (of: PipelineOf): Promise<Plan> => resolvePlan(await load(of), kinds, of.settings.maxRetries),
    /** The checks a run would use. */
    checks: async (of: PipelineOf, finders: CheckFinders): Promise<PlannedCheck[]> =>
      plannedChecks(open(of.projectPath), await load(of), finders),
    /** The files in which the project states its conventions. */
    conventions: nameConventions,
    namedModels: (loaded: LoadedPipeline, projectPath: string): NamedModel[] =>
      namedModels(loaded, { root: open(projectPath), shipped, kinds }),
  };
}
export type Pipelines = ReturnType<typeof createPipelines>;
