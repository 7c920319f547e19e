import { homedir } from "node:os";
import { basename, resolve } from "node:path";

export interface BeltDeps {
  /** The folder the command stands in, if it is known. */
  cwd: string | undefined;
  /** Folders besides roots and homes that are not to be deleted whole, such as IO's own. */
  keep?: readonly string[];
  env?: NodeJS.ProcessEnv;
}

/** One word of a command; `undefined` stands for a part that is only known when it runs. */
type Word = string | undefined;

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
/** What stands in front of a program: which of its short options take the next word, and how many words it takes itself. */
const WRAPPERS = new Map<string, { valued: string; operands?: number }>([
  ["sudo", { valued: "CDghpRrTtUu" }],
  ["doas", { valued: "Cu" }],
  ["env", { valued: "Cu" }],
  ["nice", { valued: "n" }],
  ["ionice", { valued: "cn" }],
  ["stdbuf", { valued: "eio" }],
  ["timeout", { valued: "ks", operands: 1 }],
  ["xargs", { valued: "adEILnPs" }],
  ["time", { valued: "fo" }],
  ["exec", { valued: "a" }],
  ...["command", "nohup", "setsid", "builtin", "busybox", "if", "then", "elif", "else", "while", "until", "do", "!", "{"].map(
    (name) => [name, { valued: "" }] as const,
  ),
]);
const LONG_VALUED =
  /^--(user|group|host|prompt|chdir|chroot|role|type|close-from|command-timeout|other-user|unset|adjustment|class|classdata|input|output|error|kill-after|signal|arg-file|delimiter|max-args|max-lines|max-procs|max-chars|format)$/;
const MAX_ALTERNATIVES = 1_000;
const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh"]);
const FILTERS =
  /^-(i?name|i?path|i?wholename|i?regex|[amc]time|[amc]min|size|empty|newer.*|user|group|inum|perm|links|samefile)$/;

/**
 * Says what a shell command would delete whole that must not be: a root, a home, or one of the named folders.
 * A seat belt against accidents, not a wall: a program can be told to delete in ways that no reading of a command finds.
 */
export function findRuin(command: string, { cwd, keep = [], env = process.env }: BeltDeps): string | undefined {
  const home = env.HOME || homedir();
  const precious = new Set([...SYSTEM, ...MAC, home, ...keep].map((path) => resolve(path)));
  const assigned = new Set(
    [
      ...command.matchAll(
        /(?:^|[\s;&|(])(?:export\s+|local\s+|read\s+(?:-\w+\s+)*|for\s+)?([A-Za-z_]\w*)(?==|\s+in\s|\s*$|\s*[;&|])/g,
      ),
    ].map((m) => m[1]!),
  );
  const expand = { home, env, assigned };

  let here: string | undefined = cwd;
  for (const words of split(command, expand)) {
    const [name, ...args] = unwrap(words.map((word) => standing(word, here)));
    if (name === undefined) continue;
    const program = basename(name);
    if (program === "cd" || program === "pushd") {
      const target = args.find((arg) => arg === undefined || !arg.startsWith("-"));
      here = args.length === 0 ? expand.home : target === undefined || here === undefined ? undefined : resolve(here, target);
    } else if (program === "eval" || SHELLS.has(program)) {
      const script = program === "eval" ? args.map((arg) => arg ?? "").join(" ") : scriptOf(args);
      const ruin = script ? findRuin(script, { cwd: here, keep, env }) : undefined;
      if (ruin) return ruin;
    } else {
      const targets = program === "rm" ? deletedByRm(args) : program === "find" ? deletedByFind(args) : [];
      for (const target of targets.flatMap((word) => alternatives(word, home))) {
        const ruined = preciousIn(target, here, precious);
        if (ruined) return ruined;
      }
    }
  }
  return undefined;
}

/** The place of `$PWD` in a word, until it is known where the command stands. */
const STANDING = "\0";

function standing(word: Word, here: string | undefined): Word {
  if (!word?.includes(STANDING)) return word;
  return here === undefined ? undefined : word.replaceAll(STANDING, () => here);
}

/** The words that the braces of a word stand for, as many as anybody would write. */
function alternatives(word: string, home: string): string[] {
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

function preciousIn(target: string, here: string | undefined, precious: Set<string>): string | undefined {
  const parts = target.split("/");
  while (parts.length > 0 && isWhole(parts.at(-1)!)) parts.pop();
  const whole = parts.join("/") || (target.startsWith("/") ? "/" : ".");
  if (/^~[A-Za-z_][\w-]*$/.test(whole)) return target;
  if (!target.startsWith("/") && here === undefined) return undefined;
  const path = resolve(here ?? "/", whole);
  const inside = path === "/" ? "/" : `${path}/`;
  const ruined = [...precious].some((kept) => kept === path || kept.startsWith(inside));
  return ruined || /^\/(home|Users)\/[^/]+$/.test(path) ? path : undefined;
}

function deletedByRm(args: Word[]): string[] {
  const end = args.indexOf("--");
  const flags = args.filter((arg, index) => arg?.startsWith("-") && (end < 0 || index < end));
  const recursive = flags.some((flag) => /^-[a-zA-Z]*[rR]/.test(flag ?? "") || /^--(r|no-pres)/.test(flag ?? ""));
  return recursive
    ? args.filter((arg, index): arg is string => arg !== undefined && (!arg.startsWith("-") || (end >= 0 && index > end)))
    : [];
}

function deletedByFind(args: Word[]): string[] {
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

/** Takes away what only stands in front of the program that is meant. */
function unwrap(words: Word[]): Word[] {
  let rest = words;
  for (;;) {
    const first = rest[0];
    if (first === undefined) return rest;
    const wrapper = WRAPPERS.get(basename(first));
    if (/^[A-Za-z_]\w*=/.test(first)) rest = rest.slice(1);
    else if (wrapper) {
      rest = rest.slice(1);
      while (rest[0]?.startsWith("-")) rest = rest.slice(takesNext(rest[0], wrapper.valued) ? 2 : 1);
      rest = rest.slice(wrapper.operands ?? 0);
    } else return rest;
  }
}

/** Whether an option's value is the next word: `-u root`, but not `-uroot` or `--user=root`. */
function takesNext(option: string, valued: string): boolean {
  if (option.startsWith("--")) return LONG_VALUED.test(option);
  const first = [...option.slice(1)].findIndex((letter) => valued.includes(letter));
  return first >= 0 && first === option.length - 2;
}

function scriptOf(args: Word[]): string | undefined {
  const flag = args.findIndex((arg) => /^-[a-z]*c$/.test(arg ?? ""));
  return flag < 0 ? undefined : args[flag + 1];
}

interface Expand {
  home: string;
  env: NodeJS.ProcessEnv;
  assigned: Set<string>;
}

const PWD_COMMAND = "$(pwd)";

/** What a variable holds, also with a default or a demand behind its name; `undefined` when only the run itself will tell. */
function heldBy(spelled: string, expand: Expand): string | undefined {
  const [, name, operator, rest = ""] = /^([A-Za-z_]\w*)(?:(:?[-=?]|%\/$)(.*))?$/s.exec(spelled) ?? [];
  if (name === undefined || expand.assigned.has(name)) return undefined;
  const value = name === "HOME" ? expand.home : name === "PWD" ? STANDING : expand.env[name];
  if (operator === undefined) return value ?? "";
  if (operator === "%/") return value?.replace(/\/$/, "") ?? "";
  if (value) return value;
  if (operator.endsWith("?")) return undefined;
  return rest === "" ? "" : split(rest, expand)[0]?.[0];
}

/**
 * Reads a command into its simple commands, each a list of words; knows quotes, `~`, variables, the marks between commands
 * and the arrows to and from files, whose names are no words of the command.
 */
function split(command: string, expand: Expand): Word[][] {
  const commands: Word[][] = [];
  let words: Word[] = [];
  let word: string | undefined;
  let unknown = false;
  let redirected = false;
  const endWord = () => {
    if (word !== undefined || unknown) {
      if (!redirected) words.push(unknown ? undefined : word);
      redirected = false;
    }
    word = undefined;
    unknown = false;
  };
  const endCommand = () => {
    endWord();
    redirected = false;
    if (words.length > 0) commands.push(words);
    words = [];
  };
  const variable = (at: number): number => {
    const [whole, braced, plain] = /^\$(?:\{((?:[^{}]|\$\{[^{}]*\})*)\}|(\w+))/.exec(command.slice(at)) ?? [];
    if (whole === undefined) {
      word = `${word ?? ""}$`;
      return at + 1;
    }
    const value = heldBy(plain ?? braced ?? "", expand);
    if (value === undefined) unknown = true;
    else word = (word ?? "") + value;
    return at + whole.length;
  };

  for (let at = 0; at < command.length; ) {
    const char = command[at]!;
    if (char === "\\") {
      if (command[at + 1] !== "\n") word = (word ?? "") + (command[at + 1] ?? "");
      at += 2;
    } else if (char === "'") {
      const close = command.indexOf("'", at + 1);
      const end = close < 0 ? command.length : close;
      word = (word ?? "") + command.slice(at + 1, end);
      at = end + 1;
    } else if (char === '"') {
      word ??= "";
      at += 1;
      while (at < command.length && command[at] !== '"') {
        if (command[at] === "$" && command[at + 1] !== "(") at = variable(at);
        else if (command.startsWith(PWD_COMMAND, at)) {
          word += STANDING;
          at += PWD_COMMAND.length;
        } else {
          if (command[at] === "\\") at += 1;
          if (command[at] === "`" || command.startsWith("$(", at)) unknown = true;
          word += command[at] ?? "";
          at += 1;
        }
      }
      at += 1;
    } else if (command.startsWith(PWD_COMMAND, at)) {
      word = (word ?? "") + STANDING;
      at += PWD_COMMAND.length;
    } else if (char === "$" && command[at + 1] === "(") {
      unknown = true;
      endCommand();
      at += 2;
    } else if (char === "$") at = variable(at);
    else if (char === "~" && word === undefined && /^~($|[/\s;&|)<>])/.test(command.slice(at, at + 2))) {
      word = expand.home;
      at += 1;
    } else if (char === "#" && word === undefined) {
      const line = command.indexOf("\n", at);
      at = line < 0 ? command.length : line;
    } else if (char === ">" || char === "<" || command.startsWith("&>", at)) {
      if (/^\d+$/.test(word ?? "")) word = undefined;
      endWord();
      redirected = true;
      at += /^&?[<>]+[&|]?/.exec(command.slice(at, at + 5))![0].length;
    } else if (
      /[;&|\n()`]/.test(char) ||
      ((char === "{" || char === "}") && word === undefined && /^[{}](\s|;|$)/.test(command.slice(at)))
    ) {
      endCommand();
      at += 1;
    } else if (/\s/.test(char)) {
      endWord();
      at += 1;
    } else {
      word = (word ?? "") + char;
      at += 1;
    }
  }
  endCommand();
  return commands;
}
