import { homedir } from "node:os";
import { basename, resolve } from "node:path";

export interface BeltParts {
  cwd: string;
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
const WRAPPERS = new Set([
  "sudo",
  "doas",
  "env",
  "command",
  "nohup",
  "time",
  "exec",
  "nice",
  "ionice",
  "stdbuf",
  "setsid",
  "xargs",
  "builtin",
  "then",
  "do",
  "else",
  "if",
  "while",
  "!",
]);
const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh"]);
const FILTERS =
  /^-(i?name|i?path|i?wholename|i?regex|[amc]time|[amc]min|size|empty|newer.*|user|group|inum|perm|links|samefile)$/;

/**
 * Says what a shell command would delete whole that must not be: a root, a home, or one of the named folders.
 * A seat belt against accidents, not a wall: a program can be told to delete in ways that no reading of a command finds.
 */
export function findRuin(command: string, { cwd, keep = [], env = process.env }: BeltParts): string | undefined {
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
    const [name, ...args] = unwrap(words);
    if (name === undefined) continue;
    const program = basename(name);
    if (program === "cd" || program === "pushd") {
      const target = args.find((arg) => arg === undefined || !arg.startsWith("-"));
      here = args.length === 0 ? expand.home : target === undefined || here === undefined ? undefined : resolve(here, target);
    } else if (program === "eval" || SHELLS.has(program)) {
      const script = program === "eval" ? args.map((arg) => arg ?? "").join(" ") : scriptOf(args);
      const ruin = script && here ? findRuin(script, { cwd: here, keep, env }) : undefined;
      if (ruin) return ruin;
    } else {
      const targets = program === "rm" ? deletedByRm(args) : program === "find" ? deletedByFind(args) : [];
      for (const target of targets) {
        const ruined = preciousIn(target, here, precious);
        if (ruined) return ruined;
      }
    }
  }
  return undefined;
}

function preciousIn(target: string, here: string | undefined, precious: Set<string>): string | undefined {
  if (/^~[A-Za-z_][\w-]*(\/+[*.]*)*$/.test(target)) return target;
  if (!target.startsWith("/") && here === undefined) return undefined;
  const whole = target.replace(/(^|\/+)(\{?[.]?\*+[.]?\*?|\.\[[^\]]*\]\*|\.\?+\*?|\{[^/]*\*[^/]*\})$/, "$1.");
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
    if (/^[A-Za-z_]\w*=/.test(first)) rest = rest.slice(1);
    else if (WRAPPERS.has(basename(first))) {
      rest = rest.slice(1);
      while (rest[0]?.startsWith("-") || /^\d+$/.test(rest[0] ?? "")) rest = rest.slice(1);
    } else return rest;
  }
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

/** Reads a command into its simple commands, each a list of words; knows quotes, `~`, variables and the marks between commands. */
function split(command: string, expand: Expand): Word[][] {
  const commands: Word[][] = [];
  let words: Word[] = [];
  let word: string | undefined;
  let unknown = false;
  const endWord = () => {
    if (word !== undefined || unknown) words.push(unknown ? undefined : word);
    word = undefined;
    unknown = false;
  };
  const endCommand = () => {
    endWord();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  const variable = (at: number): number => {
    const [whole, braced, plain] = /^\$(?:\{([^}]*)\}|(\w+))/.exec(command.slice(at)) ?? [];
    if (whole === undefined) {
      word = `${word ?? ""}$`;
      return at + 1;
    }
    const name = plain ?? braced ?? "";
    const value = name === "HOME" ? expand.home : expand.env[name];
    if (!/^[A-Za-z_]\w*$/.test(name) || expand.assigned.has(name)) unknown = true;
    else word = (word ?? "") + (value ?? "");
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
        else {
          if (command[at] === "\\") at += 1;
          if (command[at] === "`" || command.startsWith("$(", at)) unknown = true;
          word += command[at] ?? "";
          at += 1;
        }
      }
      at += 1;
    } else if (char === "$" && command[at + 1] === "(") {
      unknown = true;
      endCommand();
      at += 2;
    } else if (char === "$") at = variable(at);
    else if (char === "~" && word === undefined && /^~($|[/\s;&|)])/.test(command.slice(at))) {
      word = expand.home;
      at += 1;
    } else if (char === "#" && word === undefined) {
      const line = command.indexOf("\n", at);
      at = line < 0 ? command.length : line;
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
