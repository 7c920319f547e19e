import { homedir } from "node:os";
import { basename, isAbsolute, resolve } from "node:path";
import { assignedIn, expand, type Surroundings } from "./expand.ts";
import { readShell } from "./read.ts";
import type { Budget } from "./reading.ts";
import { type Command, inputOf, isAssignment, type Line, type Redirect } from "./syntax.ts";
import { type KnownWord, scriptOf, unwrap } from "./wrappers.ts";

export interface DestructiveOptions {
  /** The command's working folder, if known. */
  cwd: string | undefined;
  /** Folders besides roots and homes that must not be deleted whole, such as IO's own. */
  keep?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Called when a command is too long to be read completely. */
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
/** How many characters of brace alternatives are examined for a whole command line. */
const MAX_BRACE_LETTERS = 200_000;
/** How many nested scripts are read, as in `bash -c "eval …"`. */
const MAX_SCRIPTS = 20;
/** How many words and commands are read: more than anybody writes by hand, and few enough to take only a moment. */
const MAX_WORDS = 3_000;
const MAX_WORDS_WITHIN = 1_500;
const FILTERS =
  /^-(i?name|i?path|i?wholename|i?regex|[amc]time|[amc]min|size|empty|newer.*|user|group|inum|perm|links|samefile)$/;

/** Builtins that evaluate a subscript wherever the name of a variable is allowed, as in `test -v 'a[$(x)]'`. */
const EVALUATE_SUBSCRIPTS = new Set(
  "declare typeset local export readonly let read test [ unset printf mapfile readarray getopts wait".split(" "),
);
const BLOCK_DEVICE = /^\/dev\/(?:[shv]d[a-z]|xvd|nvme|mmcblk|disk|rdisk|loop|dm-|md|mapper\/|zd|pmem)/;
const WRITES_DEVICE = /^(?:mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|shred|fdisk|sfdisk|sgdisk|parted)$/;

/**
 * Describes what a shell command would destroy that it must not: a root, a home or one of the named folders, if it is deleted
 * whole, moved away or made unusable; or a disk. The text continues "it would …". This is a seat belt against accidents, not a
 * sandbox: a program can be told to delete in ways that no analysis of the command finds.
 */
export function findDestructiveCommand(
  command: string,
  { cwd, keep = [], env = process.env, onCut }: DestructiveOptions,
): string | undefined {
  const home = env.HOME || homedir();
  const precious = [...new Set([...SYSTEM, ...MAC, home, ...keep].map((path) => resolve(path)))];
  const budget = { left: MAX_WORDS };
  const braces = { left: MAX_BRACE_LETTERS };
  const judging = { home, env, precious, depth: 0, budget, braces };
  const line = readShell(command, budget);
  // Text that is only passed on, such as a file's lines, is rarely a script. Nested scripts get a budget of their own.
  const ruin = ruinIn(line, cwd, { ...judging, budget: { left: MAX_WORDS_WITHIN } });
  if (budget.left < 0 || braces.left < 0) onCut?.();
  return ruin;
}

interface Judging {
  home: string;
  env: NodeJS.ProcessEnv;
  precious: readonly string[];
  /** How many scripts enclose this one. */
  depth: number;
  budget: Budget;
  /** How many characters of brace alternatives may still be examined. */
  braces: Budget;
}

function ruinInScript(script: string, here: string | undefined, judging: Judging, set: Iterable<string> = []) {
  if (judging.depth > MAX_SCRIPTS || judging.budget.left < 0) return undefined;
  return ruinIn(readShell(script, judging.budget), here, judging, set);
}

function ruinIn(line: Line, here: string | undefined, judging: Judging, set: Iterable<string> = []): string | undefined {
  const around = { home: judging.home, env: judging.env, assigned: new Set([...set, ...assignedIn(line)]) };
  return ruinInLine(line, { here }, around, { ...judging, depth: judging.depth + 1 });
}

/** The shell's current folder, if known. */
interface TargetPath {
  here: string | undefined;
}

function ruinInLine(line: Line, place: TargetPath, around: Surroundings, judging: Judging): string | undefined {
  for (const command of line.flatMap(({ pipe }) => pipe)) {
    const { within, redirects, group = [], defines = [], isSubshell } = command;
    const ruin =
      first([...within, defines], (inner) => ruinInLine(inner, { ...place }, around, judging)) ??
      ruinInLine(group, isSubshell ? { ...place } : place, around, judging) ??
      // The program that reads it may be a shell.
      first(redirects, ({ body }) => (body === "" ? undefined : ruinInScript(body, place.here, judging, around.assigned))) ??
      ruinBy(command, place, around, judging);
    if (ruin !== undefined) return ruin;
  }
  return undefined;
}

function ruinBy(command: Command, place: TargetPath, around: Surroundings, judging: Judging): string | undefined {
  const { here } = place;
  const known = command.words.map((word) => (isAssignment(word.text) ? word.text : expand(word, here, around)));
  // If the first words are empty, or may turn out to be, a later word is the program.
  const start = known.findIndex((word) => word !== undefined && word !== "");
  const words = unwrap(start < 0 ? [] : known.slice(start));
  const [name, ...args] = words;
  if (name === undefined) return undefined;
  const script = scriptOf(words, inputOf(command));
  if (script !== undefined) return ruinInScript(script, here, judging);
  const program = basename(name);
  if (program === "cd" || program === "pushd") place.here = folderAfter(args, here, around.home);
  // A program that is known only at run time may be one that evaluates subscripts.
  if ((start > 0 || EVALUATE_SUBSCRIPTS.has(program)) && words.some((word) => /[$`]/.test(word ?? ""))) {
    const ruin = ruinInScript(`: ${words.map((word) => word ?? "").join(" ")}`, here, judging);
    if (ruin !== undefined) return ruin;
  }
  const device = deviceWritten(program, args) ?? first(command.redirects, deviceRedirectedTo);
  if (device !== undefined) return `overwrite the disk ${device}`;
  const { does, targets } = destroyed(program, args);
  const path = first([...new Set(targets)], (target) =>
    first(alternatives(target, around.home, judging.braces), (each) => preciousIn(each, here, judging.precious)),
  );
  return path === undefined ? undefined : does(path);
}

interface Destroyed {
  does: (path: string) => string;
  targets: string[];
}

const deletes = (path: string) => `delete ${path} and everything in it`;

/** What a program does to the folders in its arguments, and which folders those are. */
function destroyed(program: string, args: readonly KnownWord[]): Destroyed {
  switch (program) {
    case "rm":
      return { does: deletes, targets: deletedByRm(args) };
    case "find":
      return { does: deletes, targets: deletedByFind(args) };
    case "rsync":
      return { does: deletes, targets: args.some((arg) => /^--del/.test(arg ?? "")) ? operandsOf(args).slice(-1) : [] };
    case "git":
      return { does: deletes, targets: deletedByGit(args) };
    case "mv":
      return { does: (path) => `move ${path} away`, targets: movedByMv(args) };
    case "chmod":
    case "chown":
    case "chgrp": {
      const isRecursive = flagsOf(args).some((flag) => /^-[a-zA-Z]*R|^--rec/.test(flag));
      const does = (path: string) => `change the permissions of ${path} and everything in it`;
      return { does, targets: isRecursive ? operandsOf(args) : [] };
    }
    default:
      return { does: deletes, targets: [] };
  }
}

/** The words before `--` that begin with a dash. */
function flagsOf(args: readonly KnownWord[]): string[] {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? args.length : end).filter((arg): arg is string => arg?.startsWith("-") ?? false);
}

function operandsOf(args: readonly KnownWord[]): string[] {
  const end = args.indexOf("--");
  return args.filter((arg, index): arg is string => arg !== undefined && (!arg.startsWith("-") || (end >= 0 && index > end)));
}

/** The sources of a move: all operands but the last, or all if an option names the target. */
function movedByMv(args: readonly KnownWord[]): string[] {
  const isTargetFirst = flagsOf(args).some((flag) => /^-t|^--target/.test(flag));
  return isTargetFirst ? operandsOf(args) : operandsOf(args).slice(0, -1);
}

/** `git clean` deletes untracked files, which in a home folder are nearly all files. */
function deletedByGit(args: readonly KnownWord[]): string[] {
  const at = args.indexOf("clean");
  const flags = flagsOf(args.slice(at + 1)).join(" ");
  if (at < 0 || !/-[a-zA-Z]*f|--force/.test(flags) || !/-[a-zA-Z]*d/.test(flags) || /-[a-zA-Z]*n|--dry/.test(flags)) return [];
  const folder = args[args.indexOf("-C") + 1];
  return [args.includes("-C", 0) && args.indexOf("-C") < at && folder !== undefined ? folder : "."];
}

function deviceWritten(program: string, args: readonly KnownWord[]): string | undefined {
  const target = program === "dd" ? args.find((arg) => arg?.startsWith("of="))?.slice(3) : undefined;
  if (target !== undefined) return BLOCK_DEVICE.test(target) ? target : undefined;
  return WRITES_DEVICE.test(program) || program === "tee" ? args.find((arg) => BLOCK_DEVICE.test(arg ?? "")) : undefined;
}

const deviceRedirectedTo = ({ operator, target: { text } }: Redirect) =>
  operator.startsWith(">") && BLOCK_DEVICE.test(text) ? text : undefined;

function folderAfter(args: readonly KnownWord[], here: string | undefined, home: string): string | undefined {
  if (args.length === 0) return home;
  const target = args.find((arg) => arg === undefined || !arg.startsWith("-"));
  if (target === undefined) return undefined;
  return here === undefined && !isAbsolute(target) ? undefined : resolve(here ?? "/", target);
}

/** The first answer that `ask` gives for any of them. */
function first<T>(among: readonly T[], ask: (one: T) => string | undefined): string | undefined {
  for (const one of among) {
    const answer = ask(one);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Expands the braces of a word, up to limits far above what anybody would write. */
function alternatives(word: string, home: string, budget: Budget): string[] {
  if (!word.includes("{")) return [word];
  const ready: string[] = [];
  const open = [word];
  while (open.length > 0 && ready.length + open.length < MAX_ALTERNATIVES && budget.left >= 0) {
    const next = open.pop()!;
    budget.left -= next.length;
    const braces = firstBraces(next);
    if (braces === undefined) ready.push(next === word ? next : next.replace(/^~(?=\/|$)/, () => home));
    else {
      const [whole, inner] = braces;
      const at = next.indexOf(whole);
      const rest = next.slice(at + whole.length);
      for (const part of inner!.split(",", MAX_ALTERNATIVES)) open.push(next.slice(0, at) + part + rest);
    }
  }
  return ready;
}

/** The first braces of a word that contain a comma. */
function firstBraces(word: string): RegExpMatchArray | undefined {
  for (const braces of word.matchAll(/\{([^{}]*)\}/g)) if (braces[1]!.includes(",")) return braces;
  return undefined;
}

/** Whether a part of a path matches everything in its folder, or adds nothing to the path. */
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
  const isRecursive = flagsOf(args).some((flag) => /^-[a-zA-Z]*[rR]|^--(?:r|no-pres)/.test(flag));
  return isRecursive ? operandsOf(args) : [];
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
