import { homedir } from "node:os";
import { basename, isAbsolute, resolve } from "node:path";
import { assignedIn, expand, type Surroundings } from "./expand.ts";
import { readShell } from "./read.ts";
import type { Budget } from "./reading.ts";
import { type Command, inputOf, isAssignment, type Line } from "./syntax.ts";
import { type KnownWord, scriptOf, unwrap } from "./wrappers.ts";

export interface RuinOptions {
  /** The folder the command stands in, if it is known. */
  cwd: string | undefined;
  /** Folders besides roots and homes that are not to be deleted whole, such as IO's own. */
  keep?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Told when a command is too long to be looked through. */
  onCut?: () => void;
}

const SYSTEM = [
  "/",
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/home",
  "/lib",
  "/lib64",
  "/opt",
  "/proc",
  "/root",
  "/sbin",
  "/srv",
  "/sys",
  "/usr",
  "/var",
];
const MAC = ["/Applications", "/Library", "/System", "/Users", "/private", "/Volumes"];
const MAX_ALTERNATIVES = 1_000;
/** How many scripts within scripts are read, as in `bash -c "eval …"`. */
const MAX_SCRIPTS = 20;
/** How many words and commands are looked through: more than anybody writes by hand, and no more than take a moment. */
const MAX_WORDS = 3_000;
const MAX_WORDS_WITHIN = 1_500;
const FILTERS =
  /^-(i?name|i?path|i?wholename|i?regex|[amc]time|[amc]min|size|empty|newer.*|user|group|inum|perm|links|samefile)$/;

/**
 * Says what a shell command would delete whole that must not be: a root, a home, or one of the named folders.
 * A seat belt against accidents, not a wall: a program can be told to delete in ways that no reading of a command finds.
 */
export function findRuin(command: string, { cwd, keep = [], env = process.env, onCut }: RuinOptions): string | undefined {
  const home = env.HOME || homedir();
  const precious = [...new Set([...SYSTEM, ...MAC, home, ...keep].map((path) => resolve(path)))];
  const budget = { left: MAX_WORDS };
  const judging = { home, env, precious, depth: 0, budget };
  const line = readShell(command, budget);
  if (budget.left < 0) onCut?.();
  // What is only handed on as text, such as a file's lines, is mostly no script.
  return ruinIn(line, cwd, { ...judging, budget: { left: MAX_WORDS_WITHIN } });
}

interface Judging {
  home: string;
  env: NodeJS.ProcessEnv;
  precious: readonly string[];
  /** How many scripts stand around this one. */
  depth: number;
  budget: Budget;
}

function ruinInScript(script: string, here: string | undefined, judging: Judging, set: Iterable<string> = []) {
  if (judging.depth > MAX_SCRIPTS || judging.budget.left < 0) return undefined;
  return ruinIn(readShell(script, judging.budget), here, judging, set);
}

function ruinIn(line: Line, here: string | undefined, judging: Judging, set: Iterable<string> = []): string | undefined {
  const around = { home: judging.home, env: judging.env, assigned: new Set([...set, ...assignedIn(line)]) };
  return ruinInLine(line, { here }, around, { ...judging, depth: judging.depth + 1 });
}

/** The folder that a shell is in, if it is known. */
interface Place {
  here: string | undefined;
}

function ruinInLine(line: Line, place: Place, around: Surroundings, judging: Judging): string | undefined {
  for (const command of line.flatMap(({ pipe }) => pipe)) {
    const { within, redirects, group = [], defines = [], isSubshell } = command;
    const ruin =
      first([...within, defines], (inner) => ruinInLine(inner, { ...place }, around, judging)) ??
      ruinInLine(group, isSubshell ? { ...place } : place, around, judging) ??
      // Whoever reads it may be a shell.
      first(redirects, ({ body }) => (body === "" ? undefined : ruinInScript(body, place.here, judging, around.assigned))) ??
      ruinBy(command, place, around, judging);
    if (ruin !== undefined) return ruin;
  }
  return undefined;
}

function ruinBy(command: Command, place: Place, around: Surroundings, judging: Judging): string | undefined {
  const { here } = place;
  const known = command.words.map((word) => (isAssignment(word.text) ? word.text : expand(word, here, around)));
  // What is empty, or may turn out to be, leaves the next word to be the program.
  const start = known.findIndex((word) => word !== undefined && word !== "");
  const words = unwrap(start < 0 ? [] : known.slice(start));
  const [name, ...args] = words;
  if (name === undefined) return undefined;
  const script = scriptOf(words, inputOf(command));
  if (script !== undefined) return ruinInScript(script, here, judging);
  const program = basename(name);
  if (program === "cd" || program === "pushd") place.here = folderAfter(args, here, around.home);
  const targets = program === "rm" ? deletedByRm(args) : program === "find" ? deletedByFind(args) : [];
  return first([...new Set(targets)], (target) =>
    first(alternatives(target, around.home), (each) => preciousIn(each, here, judging.precious)),
  );
}

function folderAfter(args: readonly KnownWord[], here: string | undefined, home: string): string | undefined {
  if (args.length === 0) return home;
  const target = args.find((arg) => arg === undefined || !arg.startsWith("-"));
  if (target === undefined) return undefined;
  return here === undefined && !isAbsolute(target) ? undefined : resolve(here ?? "/", target);
}

/** The first answer that anything among them gives. */
function first<T>(among: readonly T[], ask: (one: T) => string | undefined): string | undefined {
  for (const one of among) {
    const answer = ask(one);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** The words that the braces of a word stand for, as many as anybody would write. */
function alternatives(word: string, home: string): string[] {
  if (!word.includes("{")) return [word];
  const ready: string[] = [];
  const open = [word];
  while (open.length > 0 && ready.length + open.length < MAX_ALTERNATIVES) {
    const next = open.pop()!;
    const braces = [...next.matchAll(/\{([^{}]*)\}/g)].find(([, inner]) => inner!.includes(","));
    if (braces === undefined) ready.push(next === word ? next : next.replace(/^~(?=\/|$)/, () => home));
    else {
      const [whole, inner] = braces;
      const rest = next.slice(braces.index + whole.length);
      for (const part of inner!.split(",", MAX_ALTERNATIVES)) open.push(next.slice(0, braces.index) + part + rest);
    }
  }
  return ready;
}

/** Whether a part of a path stands for all that is in its folder, or for nothing of its own. */
function isWhole(part: string): boolean {
  return part === "" || part === "." || (/[*?[]/.test(part) && /^(?:[.*?]|\[[^\]]*\])*$/.test(part));
}

function preciousIn(target: string, here: string | undefined, precious: readonly string[]): string | undefined {
  const parts = target.split("/");
  while (parts.length > 0 && isWhole(parts.at(-1)!)) parts.pop();
  const whole = parts.join("/") || (target.startsWith("/") ? "/" : ".");
  if (/^~[A-Za-z_][\w-]*$/.test(whole)) return target;
  if (!target.startsWith("/") && here === undefined) return undefined;
  const path = resolve(here ?? "/", whole);
  const inside = path === "/" ? "/" : `${path}/`;
  const ruined = precious.some((kept) => kept === path || kept.startsWith(inside));
  return ruined || /^\/(home|Users)\/[^/]+$/.test(path) ? path : undefined;
}

function deletedByRm(args: readonly KnownWord[]): string[] {
  const end = args.indexOf("--");
  const flags = args.filter((arg, index) => arg?.startsWith("-") && (end < 0 || index < end));
  const recursive = flags.some((flag) => /^-[a-zA-Z]*[rR]/.test(flag ?? "") || /^--(r|no-pres)/.test(flag ?? ""));
  return recursive
    ? args.filter((arg, index): arg is string => arg !== undefined && (!arg.startsWith("-") || (end >= 0 && index > end)))
    : [];
}

function deletedByFind(args: readonly KnownWord[]): string[] {
  const deletes =
    args.includes("-delete") ||
    args.some((arg, index) => /^-(exec|ok)(dir)?$/.test(arg ?? "") && /(^|\/)(rm|unlink|shred)$/.test(args[index + 1] ?? ""));
  if (!deletes || args.some((arg) => FILTERS.test(arg ?? ""))) return [];
  const options = args.findIndex((arg) => arg !== undefined && /^[-(!]/.test(arg) && !/^-[HLPDO]/.test(arg));
  const starts = args
    .slice(0, options < 0 ? args.length : options)
    .filter((arg): arg is string => arg !== undefined && !arg.startsWith("-"));
  return starts.length > 0 ? starts : ["."];
}
