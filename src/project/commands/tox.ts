import { entriesOf, sectionsOf } from "../manifests/toml.ts";
import { nearest, type ProjectView } from "./scope.ts";
import { readWritten, type WrittenCommand } from "./written.ts";

const MAX_ENVIRONMENTS = 20;
const MAX_COMMANDS = 10;
const MAX_LETTERS = 5_000;
const RUNNERS = [
  ["uv.lock", "uv run "],
  ["poetry.lock", "poetry run "],
  ["pdm.lock", "pdm run "],
  ["Pipfile", "pipenv run "],
] as const;

/** Where tox defines its environments: the file, the common section, and the prefix of a single one's section. */
const PLACES = [
  { file: "tox.ini", base: "testenv", each: "testenv:", list: ["tox", "envlist", "env_list"] },
  { file: "setup.cfg", base: "testenv", each: "testenv:", list: ["tox:tox", "envlist", "env_list"] },
  { file: "tox.toml", base: "env_run_base", each: "env.", list: ["", "env_list"] },
  { file: "pyproject.toml", base: "tool.tox.env_run_base", each: "tool.tox.env.", list: ["tool.tox", "env_list"] },
] as const;

const RUNS_TOX = /(?:^|[\s;&|"'[,])tox(?=[\s"',\]]|$)/m;
/** A folded command continues on the next lines, which begin no step and no key. */
const FOLD = /\n[ \t]{1,100}(?![ \t]|- |\w{1,50}:)/g;
const NAMED = /\btox\b[^\n]{0,200}?[ \t]-e[ =]?([\w.,${}-]{1,200})/g;
/** Environments that measure, document or release. */
const NO_CHECK = /bench|codspeed|asv|^(?:docs?|changelog|release|publish)(?:-|$)/;
const CHOSEN_ELSEWHERE = /\bTOX_?ENV\b/;

/**
 * The commands of the tox environments that CI uses. tox would build them from the network; the same commands run in the
 * project's own environment.
 */
export function fromTox(view: ProjectView): WrittenCommand[] {
  const place = PLACES.find(({ file, base }) => sectionsOf(view.read(file) ?? "").has(base));
  if (!place || !RUNS_TOX.test(view.ci)) return [];
  const { file, base, each, list } = place;
  const sections = sectionsOf(view.read(file) ?? "");
  const named = [...view.ci.replace(FOLD, " ").matchAll(NAMED)]
    .flatMap((match) => match[1]!.split(","))
    .filter((name) => !NO_CHECK.test(name));
  const [section, ...keys] = list;
  const listed = CHOSEN_ELSEWHERE.test(view.ci)
    ? []
    : keys.flatMap((key) => valuesUnder(sections.get(section) ?? "", key)).flatMap((text) => text.split(/[\s,"'[\]]+/));
  const own = [...new Set([...named, ...(named.length > 0 ? [] : listed)])].filter((name) => sections.has(`${each}${name}`));
  const factors = new Set((named.length > 0 ? named : listed).flatMap((name) => name.split(/[-{},]/)));
  const run = nearest(".", view, RUNNERS) ?? "";
  const lines = [base, ...own.slice(0, MAX_ENVIRONMENTS).map((name) => `${each}${name}`)].flatMap((name) => {
    const body = sections.get(name)!;
    return (file.endsWith(".toml") ? tomlCommands(body) : iniCommands(body, factors)).slice(0, MAX_COMMANDS);
  });
  const read = lines.flatMap((line) => {
    const here = run === "" && /^pytest(?: |$)/.test(line) ? `python3 -m ${line}` : `${run}${line}`;
    return readWritten(here, view, { cwd: ".", from: file }) ?? [];
  });
  return [...new Map(read.filter(({ isDriver }) => !isDriver).map((one) => [one.command, one])).values()];
}

/** The lines under a key of an INI file, or in TOML the rest of its value up to the end of the list. */
function valuesUnder(body: string, key: string): string[] {
  const lines = body.split("\n");
  const at = lines.findIndex((line) => entriesOf(line).some(([name]) => name === key));
  if (at < 0) return [];
  const end = lines.findIndex((line, index) => index > at && !/^(?:[ \t]|\]|$)/.test(line));
  return [lines[at]!.slice(lines[at]!.indexOf("=") + 1), ...lines.slice(at + 1, end < 0 ? undefined : end)];
}

/** `tests: pytest` is a command of the environments that have the factor `tests` in their name. */
const CONDITION = /^([\w,.!-]+): +(?=\S)/;

/** Whether a line is for an environment with these factors. */
function appliesTo(factors: ReadonlySet<string>, line: string): boolean {
  const [, condition] = CONDITION.exec(line) ?? [];
  if (condition === undefined) return true;
  const holds = (factor: string) => (factor.startsWith("!") ? !factors.has(factor.slice(1)) : factors.has(factor));
  return condition.split(",").some((each) => each.split("-").every(holds));
}

function iniCommands(body: string, factors: ReadonlySet<string>): string[] {
  return valuesUnder(body, "commands")
    .join("\n")
    .slice(0, MAX_LETTERS)
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^[#!-]/.test(line) && appliesTo(factors, line))
    .flatMap((line) => substituted(line.replace(CONDITION, "")) ?? []);
}

/** The commands of a list of lists: each text is a word, and a table stands for the user's own arguments. */
function tomlCommands(body: string): string[] {
  const text = valuesUnder(body, "commands").join("\n").slice(0, MAX_LETTERS);
  const commands: string[] = [];
  let words: string[] | undefined;
  let isKnown = true;
  for (const [token, double, single] of text.matchAll(/"([^"\\\n]*)"|'([^'\n]*)'|\{[^{}]*\}|[[\]]/g)) {
    if (token === "[") {
      words = [];
      isKnown = true;
    } else if (token === "]") {
      const line = words && isKnown && words.length > 0 ? substituted(words.join(" ")) : undefined;
      if (line !== undefined) commands.push(line);
      words = undefined;
    } else if (token.startsWith("{")) {
      isKnown &&= token.includes("posargs");
      words?.push(...[...(/default = \[([^[\]]*)\]/.exec(token)?.[1]?.matchAll(/"([^"]*)"/g) ?? [])].map((match) => match[1]!));
    } else words?.push(double ?? single ?? "");
  }
  return commands;
}

/** A command with tox's substitutions, as far as they are known here. */
function substituted(line: string): string | undefined {
  const text = line
    .replaceAll(/\{posargs:([^{}]*)\}/g, "$1")
    .replaceAll(/\{posargs\}/g, "")
    .replaceAll(/\{env:\w+:([^{}]*)\}/g, "$1")
    .replaceAll(/\{(?:toxinidir|tox_root)\}/g, ".")
    .replaceAll(/\{env_?python\}/g, "python")
    .split(/\s+/)
    .filter((word) => word !== "" && !/^--[\w-]+=.*\{/.test(word))
    .join(" ");
  return text === "" || /[{}]/.test(text) ? undefined : text;
}
