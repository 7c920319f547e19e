import { type Script, startSwarm, taskIn } from "./index.ts";

/** Tasks that become streams, each with a code review. */
export const YAML = (more = "", root = "") => `
${root}
pipeline:
  - {phase: decompose, agent: pm}
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED${more}}]
`;

/** A pm that splits the work into these tasks. */
export const split =
  (...tasks: object[]): Script =>
  ({ role }) =>
    role === "pm" ? { say: JSON.stringify(tasks) } : undefined;
/** Combines scripts: the first one that returns something acts. */
export const both =
  (...scripts: Script[]): Script =>
  (told) =>
    scripts.map((script) => script(told)).find((act) => act !== undefined);
/** An engineer that does `work` for its task. */
export const engineer =
  (work: (task: string, prompt: string, told: Parameters<Script>[0]) => ReturnType<Script>): Script =>
  (told) =>
    told.role === "engineer" && !told.afterTool ? work(taskIn(told.prompt), told.prompt, told) : undefined;

/** Runs a script to the end on a new project. */
export async function runStreams(
  script: Script,
  options: Parameters<typeof startSwarm>[0] & {
    yaml?: string;
    prepare?: (project: string) => void | Promise<void>;
    apply?: boolean;
  } = {},
) {
  const { yaml = YAML(), prepare, apply, ...rest } = options;
  const harness = await startSwarm({ script, ...rest, files: { "swarm.config.yaml": yaml, ...rest.files } });
  await prepare?.(harness.project);
  const run = await (
    await harness.swarm.start({ projectPath: harness.project, issue: "Do it", settings: harness.settings, apply })
  ).finished;
  return { ...harness, run };
}
