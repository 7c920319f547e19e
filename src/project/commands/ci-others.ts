import { isMap, listOf, mapOf, OTHER_SYSTEM, textOf, variablesOf, type Yaml } from "./ci-expressions.ts";
import { type CiScript, PUBLISHING, publishesIn } from "./ci-script.ts";
import { within } from "./written.ts";

const MAX_JOBS = 50;
const MAX_STEPS = 100;

const joined = (script: unknown): string => [script].flat().slice(0, MAX_STEPS).map(textOf).join("\n");
const literals = (env: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variablesOf(env, { matrix: undefined, env: {}, inputs: {} })).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );

const NO_JOBS = new Set(
  "stages variables default include workflow image services cache before_script after_script pages spec".split(" "),
);

export function ofGitlab(pipeline: Yaml): CiScript[] {
  return Object.entries(pipeline)
    .filter(([name]) => !name.startsWith(".") && !NO_JOBS.has(name))
    .slice(0, MAX_JOBS)
    .flatMap(([name, job]) => {
      if (!isMap(job) || job.environment !== undefined || job.when === "manual" || job.allow_failure === true) return [];
      const text = joined(job.script);
      if (PUBLISHING.test(`${name} ${textOf(job.stage)}`) || publishesIn(text)) return [];
      if ([job.only].flat().some((one) => one === "tags")) return [];
      return [{ text, cwd: ".", env: {} }];
    });
}

export function ofCircle(config: Yaml): CiScript[] {
  const jobs = Object.entries(mapOf(config.jobs)).slice(0, MAX_JOBS);
  return jobs.flatMap(([name, job]) => {
    if (!isMap(job) || PUBLISHING.test(name) || job.macos !== undefined || OTHER_SYSTEM.test(textOf(job.executor))) return [];
    const runs = listOf(job.steps)
      .slice(0, MAX_STEPS)
      .flatMap((step) => (isMap(step) && step.run !== undefined ? [isMap(step.run) ? step.run : { command: step.run }] : []));
    if (runs.some((run: Yaml) => publishesIn(textOf(run.command)))) return [];
    // A job's own folder is where the project is checked out; a step's folder is inside it.
    return runs
      .filter((run: Yaml) => !PUBLISHING.test(textOf(run.name)) && !/^on_fail/.test(textOf(run.when)))
      .map((run: Yaml) => ({
        text: textOf(run.command),
        cwd: run.working_directory === undefined ? "." : within(".", textOf(run.working_directory)),
        env: literals(run.environment),
      }));
  });
}

export function ofAzure(pipeline: Yaml): CiScript[] {
  const stages = [pipeline, ...listOf(pipeline.stages)].filter(isMap).slice(0, MAX_JOBS);
  const jobs = stages.flatMap((stage) => {
    if (PUBLISHING.test(`${textOf(stage.stage)} ${textOf(stage.displayName)}`)) return [];
    return [...(stage.steps === undefined ? [] : [stage]), ...listOf(stage.jobs)].filter(isMap);
  });
  return jobs.slice(0, MAX_JOBS).flatMap((job) => {
    const { vmImage } = mapOf(job.pool ?? pipeline.pool);
    if (job.deployment !== undefined || PUBLISHING.test(`${textOf(job.job)} ${textOf(job.displayName)}`)) return [];
    const steps = listOf(job.steps).filter(isMap).slice(0, MAX_STEPS);
    const scripts = steps.map((step) => textOf(step.script ?? step.bash));
    if (OTHER_SYSTEM.test(textOf(vmImage)) || scripts.some(publishesIn)) return [];
    if (steps.some(({ task, inputs }) => /publish|push|deploy/i.test(`${textOf(task)} ${textOf(mapOf(inputs).command)}`)))
      return [];
    return steps
      .filter((step) => !PUBLISHING.test(textOf(step.displayName)) && step.condition === undefined)
      .map((step) => ({
        text: textOf(step.script ?? step.bash),
        cwd: within(".", textOf(step.workingDirectory) || "."),
        env: literals(step.env),
      }));
  });
}

export const ofTravis = ({ script }: Yaml): CiScript[] => [{ text: joined(script), cwd: ".", env: {} }];
