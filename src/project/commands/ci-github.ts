import { posix } from "node:path";
import {
  isMap,
  listOf,
  mapOf,
  mayHold,
  OTHER_SYSTEM,
  resolvePlaceholders,
  rowsOf,
  textOf,
  type Values,
  variablesOf,
  type Yaml,
} from "./ci-expressions.ts";
import { type CiScript, changesSources, linesOf, PUBLISHING, publishesIn, purposeByName } from "./ci-script.ts";
import { within } from "./written.ts";

const MAX_JOBS = 50;
const MAX_STEPS = 100;
const MAX_DEPTH = 3;

const PUBLISHING_ACTION = /publish|release|deploy|login-action|build-push-action/i;
/** A job with one of these scans the code for somebody else. */
const SCANNER = /^github\/codeql-action\/|^ossf\/scorecard-action/;

/** The commands that well-known actions run. */
const ACTIONS: Readonly<Record<string, (given: Yaml) => string>> = {
  "golangci/golangci-lint-action": ({ args }) => `golangci-lint run ${textOf(args)}`,
  "psf/black": () => "black --check .",
  "astral-sh/ruff-action": ({ args }) => `ruff ${textOf(args) || "check"}`,
  "pre-commit/action": () => "pre-commit run --all-files",
  "actions-rs/cargo": ({ command, args }) => `cargo ${textOf(command)} ${textOf(args)}`,
  "gradle/gradle-build-action": ({ arguments: args }) => `./gradlew ${textOf(args)}`,
};

/** The project's own actions that a workflow uses, by folder. */
export function actionsIn(workflow: Yaml): string[] {
  const steps = Object.values(mapOf(workflow.jobs))
    .slice(0, MAX_JOBS)
    .flatMap((job) => stepsOf(mapOf(job).steps));
  return [...new Set(steps.flatMap(({ uses }) => localAction(textOf(uses)) ?? []))];
}

const localAction = (uses: string) => (uses.startsWith("./") ? within(".", uses) : undefined);

const stepsOf = (steps: unknown): Yaml[] =>
  listOf(steps)
    .flatMap((step) => (isMap(step) && Array.isArray(step.parallel) ? (step.parallel as unknown[]) : [step]))
    .filter(isMap)
    .slice(0, MAX_STEPS);

/** The scripts of a workflow's jobs that run on changes and publish nothing. */
export function ofGithub(workflow: Yaml, file: string, actions: ReadonlyMap<string, Yaml | undefined>): CiScript[] {
  if (PUBLISHING.test(`${posix.basename(file)} ${textOf(workflow.name)}`) || !runsOnChanges(workflow.on)) return [];
  return Object.entries(mapOf(workflow.jobs))
    .slice(0, MAX_JOBS)
    .flatMap(([id, job]) => (isMap(job) ? ofJob(id, job, workflow, actions) : []));
}

/** Whether a push to a branch, a pull request or another workflow starts it. */
function runsOnChanges(on: unknown): boolean {
  if (typeof on === "string" || Array.isArray(on)) return isChange([on].flat());
  if (!isMap(on)) return on === undefined;
  const { push, ...others } = on;
  const onlyTags = isMap(push) && push.tags !== undefined && push.branches === undefined && push["branches-ignore"] === undefined;
  return (Object.hasOwn(on, "push") && !onlyTags) || isChange(Object.keys(others));
}
const isChange = (events: readonly unknown[]) =>
  events.some(
    (event) => typeof event === "string" && /^(?:push|pull_request|pull_request_target|merge_group|workflow_call)$/.test(event),
  );

function ofJob(id: string, job: Yaml, workflow: Yaml, actions: ReadonlyMap<string, Yaml | undefined>): CiScript[] {
  const steps = stepsOf(job.steps);
  if (PUBLISHING.test(`${id} ${textOf(job.name)}`) || job.environment !== undefined || isSecret(job.env)) return [];
  if (steps.some((step) => publishes(step) || isElsewhere(step))) return [];
  const folder = folderOf(job) ?? folderOf(workflow) ?? ".";
  const placeholders = variablesReadBy(workflow);
  return rowsOf(job.strategy).flatMap((matrix) => {
    const global = variablesOf(workflow.env, { matrix, env: {}, inputs: {} });
    const own = variablesOf(job.env, { matrix, env: known(global), inputs: {} });
    const around = known({ ...global, ...own });
    const values: Values = { matrix, env: around, inputs: {} };
    if (OTHER_SYSTEM.test(resolvePlaceholders(textOf(job["runs-on"]), values)) || !mayHold(job.if, values)) return [];
    const isOwn = ([name]: [string, string]) => !placeholders.has(name);
    return ofSteps(steps, { values, folder, actions, depth: 0 }).map((script) => ({
      ...script,
      around: Object.fromEntries(Object.entries(around).filter(isOwn)),
    }));
  });
}

/** Variables that the workflow itself reads in its commands and conditions. */
const variablesReadBy = (workflow: Yaml) =>
  new Set([...JSON.stringify(workflow).matchAll(/\benv\.(\w{1,100})/g)].map((match) => match[1]!));

interface JobRun {
  values: Values;
  folder: string;
  actions: ReadonlyMap<string, Yaml | undefined>;
  depth: number;
}

/** The scripts of a job's steps, up to a step that changes the sources or needs what was built elsewhere. */
function ofSteps(steps: readonly Yaml[], run: JobRun): CiScript[] {
  const found: CiScript[] = [];
  let { values } = run;
  for (const step of steps) {
    const uses = textOf(step.uses).split("@")[0]!;
    const text = textOf(step.run);
    if (uses === "actions/download-artifact" || linesOf(text).some(changesSources)) break;
    if (!mayHold(step.if, values)) continue;
    found.push(...ofStep(step, uses, text, { ...run, values }));
    // From here on a variable may have any value.
    if (/GITHUB_(?:ENV|PATH)/.test(text)) values = { ...values, env: {} };
  }
  return found;
}

function ofStep(step: Yaml, uses: string, text: string, { values, folder, actions, depth }: JobRun): CiScript[] {
  const given = mapOf(step.with);
  if (PUBLISHING.test(textOf(step.name)) || isSecret(step.env) || isSecret(text) || isSecret(given)) return [];
  if (step["continue-on-error"] === true || !/^(?:bash|sh)?$/.test(textOf(step.shell).split(" ")[0]!)) return [];
  const own = variablesOf(step.env, values);
  if (Object.entries(own).some(([name, value]) => value === undefined && !/TOKEN$/.test(name))) return [];
  const inside: Values = { ...values, env: { ...values.env, ...known(own) } };
  const at = step["working-directory"] ?? given["working-directory"] ?? folder;
  const cwd = within(".", resolvePlaceholders(textOf(at), inside));
  const local = localAction(uses);
  if (local !== undefined) {
    const action = depth < MAX_DEPTH ? actions.get(local) : undefined;
    const inputs = known({ ...defaultsOf(action?.inputs), ...variablesOf(given, values) });
    const run = { values: { ...inside, inputs }, folder: ".", actions, depth: depth + 1 };
    return ofSteps(stepsOf(mapOf(action?.runs).steps), run);
  }
  const script = Object.hasOwn(ACTIONS, uses) ? ACTIONS[uses]!(given) : text;
  return [{ text: resolvePlaceholders(script, inside), cwd, env: known(own), called: purposeByName(textOf(step.name)) }];
}

const defaultsOf = (inputs: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(mapOf(inputs)).map(([name, input]) => [name, textOf(mapOf(input).default)]));

const known = (variables: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined));

const publishes = (step: Yaml) =>
  publishesIn(textOf(step.run)) || PUBLISHING_ACTION.test(textOf(step.uses).split("@")[0]!) || isSecretWith(step);
/** An action that gets a secret publishes or signs; one that gets a token to read with does not. */
const isSecretWith = ({ uses, with: given }: Yaml) =>
  isSecret(given) && !/codecov|coveralls|setup-|checkout|cache|discord|slack/i.test(textOf(uses));

/** Whether the job works on code other than the project's, or in a folder that the project does not have. */
function isElsewhere({ uses, with: given }: Yaml): boolean {
  const action = textOf(uses).split("@")[0]!;
  const { repository, path } = mapOf(given);
  return SCANNER.test(action) || (action === "actions/checkout" && (repository !== undefined || path !== undefined));
}

const folderOf = (part: Yaml) => {
  const folder = mapOf(mapOf(part.defaults).run)["working-directory"];
  return folder === undefined ? undefined : textOf(folder);
};

/** Whether a value asks for a secret other than the token that every job has. */
function isSecret(value: unknown): boolean {
  const text = typeof value === "string" ? value : isMap(value) ? Object.values(value).map(textOf).join(" ") : "";
  return text.replaceAll("secrets.GITHUB_TOKEN", "").includes("secrets.");
}
