import { usageError } from "../../lib/errors.ts";
import { named } from "../../lib/quoted.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { InspectedProject } from "../workspace/workspace.ts";
import type { Pipelines } from "./pipelines.ts";
import { inspectProject, type PreflightDeps, preflight } from "./preflight.ts";
import { inPlaceAlone } from "./workplace.ts";

/** The most repositories that a run may change besides its own. */
const MOST = 9;

export interface OtherProjects {
  runId: string;
  projectPath: string;
  /** The other projects, as a person named them. */
  named: readonly string[];
  settings: RunSettings;
  /** What was found out about the run's own project. */
  inspected: InspectedProject;
  /** Whether the run works on a branch. */
  onBranch: boolean;
  apply: boolean;
}

/**
 * Refuses other projects that a run could not change together with its own; otherwise returns what the run needs to know about
 * them, and notes for people.
 */
export async function openOtherProjects(
  { git, env, pipelines }: PreflightDeps & { pipelines: Pick<Pipelines, "open" | "load"> },
  { runId, projectPath, named: names, settings, inspected, onBranch, apply }: OtherProjects,
): Promise<Pick<Inputs, "with" | "branch"> & { notes: string[] }> {
  if (names.length === 0) return { with: [], notes: [] };
  if (names.length > MOST) throw usageError(`--with: at most ${MOST} other projects can be part of one run.`);
  if (apply)
    throw usageError(
      "--apply merges into one checkout, so it cannot be used with --with. Leave it out, and merge each branch yourself.",
    );
  if (!onBranch || inspected.repo === undefined) throw usageError(`--with: ${inPlaceAlone}`);
  const repositories = new Map([[inspected.repo.commonDir, projectPath]]);
  const found: Inputs["with"] = [];
  const notes: string[] = [];
  let { branch } = inspected;
  for (const name of names) {
    const path = pipelines.open(name);
    const look = inspectProject(git, path, runId);
    const about = { projectPath: path, docDir: settings.docDir, documents: [], onBranch: true, large: false };
    const repo = await look.repo;
    if (!repo)
      throw usageError(`--with: ${named(path, 300)} is in no git repository, so it cannot get a worktree. Nothing was begun.`);
    if (repo.head === null) throw usageError(`--with: ${named(path, 300)} has no commit yet. Nothing was begun. Make one first.`);
    const same = repositories.get(repo.commonDir);
    if (same !== undefined)
      throw usageError(`--with: ${named(path, 300)} is in the same repository as ${named(same, 300)}. Name it once.`);
    repositories.set(repo.commonDir, path);
    const there = await preflight({ git, env }, about, look);
    notes.push(...there.notes.map((note) => `${path}: ${note}`));
    if ((await repo.status()).dirty)
      notes.push(`${path}: the checkout has uncommitted changes; the run works from the last commit and does not see them`);
    // All repositories share one branch name that each of them can have.
    if (there.inspected.branch !== branch) branch = `swarm-${runId}`;
    const { pipeline } = await pipelines.load({ projectPath: path, settings: { ...settings, agentsDirSet: false } });
    found.push({ projectPath: path, base: repo.head, ...(pipeline.checks && { checks: [...pipeline.checks] }) });
  }
  return { with: found, branch, notes };
}
