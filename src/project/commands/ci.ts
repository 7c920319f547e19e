import type { Breath } from "../../lib/breath.ts";
import { readYaml } from "../../lib/yaml.ts";
import { isMap, type Yaml } from "./ci-expressions.ts";
import { actionsIn, ofGithub } from "./ci-github.ts";
import { ofAzure, ofCircle, ofGitlab, ofTravis } from "./ci-others.ts";
import { type CiScript, linesOf } from "./ci-script.ts";
import type { ProjectView } from "./scope.ts";
import { readWritten, type WrittenCommand, within } from "./written.ts";

const MAX_FILES = 20;
const MAX_ACTIONS = 10;
/** How many scripts and lines are read per file. */
const MAX_SCRIPTS = 200;
const MAX_LINES = 500;

const READERS: readonly [file: RegExp, read: (document: Yaml) => CiScript[]][] = [
  [/^\.gitlab-ci\.yml$/, ofGitlab],
  [/^\.circleci\/config\.yml$/, ofCircle],
  [/^\.?azure-pipelines\.ya?ml$/, ofAzure],
  [/^\.travis\.yml$/, ofTravis],
];
const isWorkflow = (file: string) => /^\.github\/workflows\/[^/]+\.ya?ml$/.test(file);

/** Whether a file is a CI configuration that can be read here. */
export const isCiFile = (file: string): boolean => isWorkflow(file) || READERS.some(([pattern]) => pattern.test(file));

export interface CiCommands {
  commands: WrittenCommand[];
  /** Lines that were not understood. */
  unread: string[];
}

/** What the project's CI runs on changes, in the order of its files, jobs and steps. */
export async function fromCi(files: readonly string[], view: ProjectView, breathe: Breath): Promise<CiCommands> {
  const found: CiCommands = { commands: [], unread: [] };
  const actions = new Map<string, Yaml | undefined>();
  const documentOf = async (file: string) => {
    const text = view.read(file);
    const read = text === undefined ? undefined : await readYaml(text);
    await breathe();
    return read && "value" in read && isMap(read.value) ? read.value : undefined;
  };
  for (const file of files.filter(isCiFile).sort(byUsefulness).slice(0, MAX_FILES)) {
    const document = await documentOf(file);
    if (!document) continue;
    if (isWorkflow(file))
      for (const action of actionsIn(document)) {
        const at = [`${action}/action.yml`, `${action}/action.yaml`].find(view.has);
        if (!actions.has(action) && actions.size < MAX_ACTIONS)
          actions.set(action, at === undefined ? undefined : await documentOf(at));
      }
    const scripts = isWorkflow(file)
      ? ofGithub(document, file, actions)
      : READERS.filter(([pattern]) => pattern.test(file)).flatMap(([, read]) => read(document));
    const distinct = new Map(scripts.map((one) => [JSON.stringify(one), one]));
    const budget = { lines: MAX_LINES };
    for (const script of [...distinct.values()].slice(0, MAX_SCRIPTS)) {
      ofScript(script, { file, view, budget }, found);
      await breathe();
    }
  }
  return found;
}

/** Workflows named for testing come first: they run what the project calls its checks. */
function byUsefulness(a: string, b: string): number {
  const rank = (file: string) => (/(?:^|[/._-])(?:ci|tests?|checks?|main|build)(?:[._-]|$)/i.test(file) ? 0 : 1);
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

const CONTROL = /^(?:if|for|while|until|case|function|select|then|else|fi|do|done|esac|set \+e|trap|\{|\})(?:\s|;|$)/;

interface Around {
  file: string;
  view: ProjectView;
  /** How many lines of the file may still be read. */
  budget: { lines: number };
}

/** The checks of a script, line by line. A script with branches or loops is left alone. */
function ofScript(script: CiScript, { file, view, budget }: Around, { commands, unread }: CiCommands): void {
  const lines = linesOf(script.text).slice(0, budget.lines);
  budget.lines -= lines.length;
  if (lines.some((line) => CONTROL.test(line))) {
    unread.push(...lines);
    return;
  }
  const env: Record<string, string> = { ...script.env };
  const called = lines.length === 1 ? script.called : undefined;
  let { cwd } = script;
  for (const line of lines) {
    const moved = /^cd ([^ ;&|]+)$/.exec(line)?.[1];
    const [, name, value] = /^export (\w+)=([\w@%+=:,./-]*)$/.exec(line) ?? [];
    if (name !== undefined) env[name] = value!;
    else if (moved !== undefined) cwd = cwd === undefined ? undefined : within(cwd, moved);
    else if (cwd !== undefined) {
      const read = readWritten(line, view, { cwd, from: file, called });
      const command = read && (withVariables(read.command, { ...script.around, ...env }) ?? withVariables(read.command, env));
      if (read && command !== undefined) commands.push({ ...read, command });
      else unread.push(line);
      // A line that was not understood may have changed the folder.
      if (!read && /(?:^|[\s;&|(])(?:cd|pushd)\s/.test(line)) cwd = undefined;
    }
  }
}

/** Variables that belong to the machine, or only change how something looks. */
const OF_THE_MACHINE = /^(?:CI|ENV|TERM|PATH|HOME|SHELL|BASH_ENV|IFS|PWD|TMPDIR|LANG)$|^(?:LC|LD|DYLD|GITHUB|RUNNER)_/i;
const LOOKS_OR_SECRETS =
  /COLOR|TOKEN|PROXY|CACHE|VERSION|BACKTRACE|SECRET|PASSWORD|RETR(?:Y|IES)|INCREMENTAL|TELEMETRY|DOCKER|IMAGE/i;

/** Puts the variables of its workflow, job and step before each part of a command. */
function withVariables(command: string, env: Readonly<Record<string, string>>): string | undefined {
  const set = Object.entries(env)
    .filter(([name, value]) => /^[A-Za-z_]\w*$/.test(name) && value !== "" && !isSetElsewhere(name))
    .map(([name, value]) => `${name}=${/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value}'`} `)
    .join("");
  if (set.length > 300) return undefined;
  return set === ""
    ? command
    : command
        .split(" && ")
        .map((part) => `${set}${part}`)
        .join(" && ");
}

const isSetElsewhere = (name: string) => OF_THE_MACHINE.test(name) || LOOKS_OR_SECRETS.test(name);
