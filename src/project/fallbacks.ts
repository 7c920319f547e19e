import { join, relative } from "node:path";
import { isExecutable } from "../lib/is-executable.ts";
import { isFolder } from "../lib/is-folder.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { isWithin } from "../lib/within.ts";
import { type ManagerPlace as CommandPlace, refusalOf } from "./package-manager.ts";
import { isOnPath } from "./prepare.ts";

export type { CommandPlace };

export interface Fallback {
  command: string;
  /** Why it is another command, for people. */
  why: string;
}

/** Tools that run a program in a Python project's environment, and their options that take the next word as a value. */
const PYTHON = /^(?:(?:uv|poetry|pdm|pipenv|rye) run|uvx)$/;
const VALUED = /^(?:-p|--(?:group|extra|with|with-editable|python|package|project|directory|only-group|no-group))$/;
/** Programs that are modules too: run as modules they see the project's own folder, as under those tools. */
const MODULES = new Set("pytest unittest mypy ruff black flake8 isort pylint tox nox coverage".split(" "));
/** Tools that run a program of installed packages. */
const PACKAGES = /^(?:(?:pnpm|yarn|npm) exec|pnpm dlx|bun x|npx|bunx|pnpx)$/;
/** Tools that run a script of a package file. */
const SCRIPTS = /^(?:pnpm|yarn|bun) (?:run|run-script)$/;
const BARE = /^(?:pnpm|yarn) [a-z][\w:.-]*$/;
const BARE_SCRIPTS = /^(?:pnpm|yarn) (?:test|lint|build|typecheck|check)$/;

/** Only measures what the program after it does. */
const COVERAGE = /^coverage run(?: -(?!m )\S+)* (?=-m |\S)/;

/** The folders that hold Python environments in most projects. */
const ENVIRONMENTS = [".venv", "venv"];

/** Replaces a tool that is missing, or refuses the project, with what is installed; undefined if the command needs no change. */
export function withoutTool(command: string, at: CommandPlace): Fallback | undefined {
  const parts = command.split(" && ").map((part) => ({ part, fallback: ofPart(part.trim(), at) }));
  const whys = parts.flatMap(({ fallback }) => fallback?.why ?? []);
  if (whys.length === 0) return undefined;
  const changed = parts.map(({ part, fallback }) => fallback?.command ?? part).join(" && ");
  return { command: changed, why: [...new Set(whys)].join("; ") };
}

function ofPart(part: string, at: CommandPlace): Fallback | undefined {
  const [tool = "", second = ""] = part.split(/\s+/, 2);
  if (tool === "" || tool.includes("/")) return undefined;
  const refusal = refusalOf(tool, at);
  if (refusal === undefined && isOnPath(tool, at.env)) return undefined;
  const without = refusal ?? `${tool} is not here`;
  if (COVERAGE.test(part)) return { command: part.replace(COVERAGE, "python3 "), why: `${without}; ran without it` };
  const [one, two] = [tool, `${tool} ${second}`];
  if (PYTHON.test(one) || PYTHON.test(two)) return inEnvironment(tool, after(part, PYTHON.test(one) ? 1 : 2), at);
  if (PACKAGES.test(one) || PACKAGES.test(two)) return fromPackages(without, after(part, PACKAGES.test(one) ? 1 : 2), at);
  const isBareScript = BARE_SCRIPTS.test(two) || (BARE.test(two) && hasScript(second, at));
  if (BARE.test(two) && !isBareScript && !SCRIPTS.test(two)) return fromPackages(without, after(part, 1), at);
  const script = SCRIPTS.test(two) ? after(part, 2) : isBareScript ? after(part, 1) : undefined;
  if (script === undefined || !isOnPath("npm", at.env) || nearest("node_modules", at) === undefined) return undefined;
  const { program: name, rest } = split(script);
  const args = rest === "" || /^--(?:\s|$)/.test(rest) ? rest : `-- ${rest}`;
  return name === "" ? undefined : { command: `npm run ${name} ${args}`.trim(), why: `${without}; ran with npm` };
}

function hasScript(name: string, { cwd }: CommandPlace): boolean {
  try {
    const { scripts } = JSON.parse(smallTextAt(join(cwd, "package.json"), 1_000_000) ?? "{}") as { scripts?: object };
    return scripts !== undefined && Object.hasOwn(scripts, name);
  } catch {
    // A broken file has no scripts.
    return false;
  }
}

function inEnvironment(tool: string, text: string, at: CommandPlace): Fallback | undefined {
  const venv = environmentFor(at);
  const { program, rest } = split(text);
  if (venv === undefined || program === "") return undefined;
  const bin = join(relative(at.cwd, venv) || ".", "bin");
  const why = `${tool} is not here; ran with ${relative(at.top, venv)}`;
  const is = (...words: string[]) => ({ command: [...words, rest].join(" ").trim(), why });
  if (/^python3?$/.test(program)) return is(`${bin}/python`);
  if (program === "-m" || MODULES.has(program)) return is(`${bin}/python`, "-m", ...(program === "-m" ? [] : [program]));
  return isExecutable(join(venv, "bin", program)) ? is(`${bin}/${program}`) : undefined;
}

function fromPackages(without: string, text: string, at: CommandPlace): Fallback | undefined {
  const { program, rest } = split(text);
  const found = /^[\w.-]+$/.test(program) ? nearest(join("node_modules", ".bin", program), at, isExecutable) : undefined;
  if (found === undefined) return undefined;
  return { command: `${relative(at.cwd, found)} ${rest}`.trim(), why: `${without}; ran with node_modules` };
}

/** The Python environment beside a folder, or above it in the tree. */
export function environmentFor(at: Pick<CommandPlace, "top" | "cwd">): string | undefined {
  const found = ENVIRONMENTS.map((name) => nearest(join(name, "bin", "python"), at, isExecutable)).find((each) => each);
  return found === undefined ? undefined : join(found, "..", "..");
}

/** The environment as if the project's Python environment had been activated, if there is one and none is active. */
export function activated(env: NodeJS.ProcessEnv, at: Pick<CommandPlace, "top" | "cwd">): NodeJS.ProcessEnv {
  const venv = env.VIRTUAL_ENV ? undefined : environmentFor(at);
  return venv === undefined ? env : { ...env, VIRTUAL_ENV: venv, PATH: `${join(venv, "bin")}:${env.PATH ?? ""}` };
}

function nearest(name: string, { top, cwd }: Pick<CommandPlace, "top" | "cwd">, is = isFolder): string | undefined {
  for (let folder = cwd; isWithin(top, folder); folder = join(folder, "..")) {
    if (is(join(folder, name))) return join(folder, name);
    if (folder === top) break;
  }
  return undefined;
}

/** A text without its first words. */
function after(text: string, words: number): string {
  return words === 0 ? text.trim() : after(text.trim().replace(/^\S+/, ""), words - 1);
}

/** The program that a tool is told to run, after the tool's own options, and the rest as written. */
function split(text: string): { program: string; rest: string } {
  let left = text;
  for (;;) {
    const [word = ""] = left.split(/\s/, 1);
    if (word === "--") left = after(left, 1);
    else if (!word.startsWith("-") || word === "-m") return { program: word, rest: after(left, 1) };
    else left = after(left, VALUED.test(word) ? 2 : 1);
  }
}
