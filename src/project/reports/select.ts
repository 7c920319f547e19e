import { basename, join } from "node:path";
import { z } from "zod";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { readPlainLine } from "../../shell/plain-line.ts";
import { MAX_NAME } from "./report.ts";
import { withoutFile } from "./same-name.ts";

/** Tests by the names that their runner printed. */
export interface NamedTests {
  runner: string;
  names: readonly string[];
}

const MOST_NAMES = 50;
const LONGEST = 20_000;

/**
 * The program and arguments that run only these tests; undefined unless the command is a plain call of their runner, or of an npm
 * script that is one. A pattern may match more tests than were asked for, so read the result by name.
 */
export function commandForTests(
  command: string,
  folder: string,
  { runner, names }: NamedTests,
): [string, ...string[]] | undefined {
  if (names.length === 0 || names.length > MOST_NAMES || names.some((name) => name.length >= MAX_NAME)) return undefined;
  const words = plainWords(command);
  const selected = words && (throughNpm(words, folder, { runner, names }) ?? select(words, { runner, names }));
  const [program, ...args] = selected ?? [];
  return program !== undefined && args.join(" ").length <= LONGEST ? [program, ...args] : undefined;
}

/** The words of a line that starts one program. A glob would need a shell to expand it, so it is not plain enough here. */
function plainWords(line: string): string[] | undefined {
  const [command, ...more] = readPlainLine(line) ?? [];
  return command && more.length === 0 && !command.words.some((word) => /[*?[\]~]/.test(word)) ? command.words : undefined;
}

/** `npm test -- …`: npm appends what follows the dashes to the script. */
function throughNpm(words: readonly string[], folder: string, tests: NamedTests): string[] | undefined {
  if (words[0] !== "npm") return undefined;
  const script = words[1] === "test" || words[1] === "t" ? "test" : words[1] === "run" ? words[2] : undefined;
  const end = script === undefined ? 0 : words[1] === "run" ? 3 : 2;
  if (script === undefined || (words.length > end && words[end] !== "--")) return undefined;
  const inner = plainWords(scriptsIn(folder)[script] ?? "");
  if (!inner) return undefined;
  const whole = [...inner, ...words.slice(end + 1)];
  const selected = select(whole, tests, { onlyAtEnd: true });
  if (!selected || whole.some((word, at) => selected[at] !== word)) return undefined;
  return [...words.slice(0, end), "--", ...words.slice(end + 1), ...selected.slice(whole.length)];
}

const Scripts = z.object({ scripts: z.record(z.string(), z.string()) });

function scriptsIn(folder: string): Record<string, string> {
  try {
    return Scripts.parse(JSON.parse(smallTextAt(join(folder, "package.json"), 1_000_000) ?? "")).scripts;
  } catch {
    // There is none, or it has no scripts.
    return {};
  }
}

interface Placement {
  /** Whether arguments can only be added after all others. */
  onlyAtEnd?: boolean;
}
/** A call of a runner: its own words, and its arguments. */
interface Call {
  runner: readonly string[];
  args: readonly string[];
}
type Select = (call: Call, names: readonly string[], at: Placement) => string[] | undefined;

function select(words: readonly string[], { runner, names }: NamedTests, at: Placement = {}): string[] | undefined {
  const launcher = launcherIn(words);
  const [program = "", ...rest] = words.slice(launcher);
  const name = basename(program);
  const isPython = /^python[\d.]*$/.test(name);
  const moduleAt = isPython ? rest.indexOf("-m") : -1;
  const called = isPython ? (moduleAt < 0 ? "" : (rest[moduleAt + 1] ?? "")) : name;
  const own = RUNNERS.find((each) => each.called.test(called) && each.reports.includes(runner));
  if (!own) return undefined;
  const subcommand = isPython ? moduleAt + 2 : (own.subcommand?.(rest) ?? 0);
  if (subcommand < 0) return undefined;
  const length = launcher + 1 + subcommand;
  return own.select({ runner: words.slice(0, length), args: words.slice(length) }, names, at);
}

/** How many words precede the runner's name. */
function launcherIn([first = "", second = "", third = ""]: readonly string[]): number {
  if (first === "npx") return second === "--no-install" || second === "--no" ? 2 : 1;
  if (first === "uv" || first === "poetry" || first === "pipenv" || first === "pdm")
    return second === "run" && third !== "" ? 2 : 0;
  return first === "pnpm" && second === "exec" ? 2 : 0;
}

interface RunnerCall {
  called: RegExp;
  /** Its names in reports. */
  reports: readonly string[];
  /** How many words after the program belong to the runner's name; negative if this runs no tests. */
  subcommand?: (rest: readonly string[]) => number;
  select: Select;
}

const firstIs = (word: string) => (rest: readonly string[]) => (rest[0] === word ? 1 : -1);

const RUNNERS: readonly RunnerCall[] = [
  { called: /^(?:pytest|py\.test)$/, reports: ["pytest"], select: ofPytest },
  { called: /^unittest$/, reports: ["unittest"], select: ofUnittest },
  { called: /^vitest$/, reports: ["vitest"], subcommand: (rest) => (rest[0] === "run" ? 1 : 0), select: byFile(" > ") },
  { called: /^jest$/, reports: ["jest"], select: byFile(" › ") },
  { called: /^_?mocha$/, reports: ["mocha"], select: ofMocha },
  { called: /^node$/, reports: ["TAP", "node:test"], subcommand: (rest) => rest.indexOf("--test") + 1 || -1, select: ofNode },
  { called: /^go$/, reports: ["go test"], subcommand: firstIs("test"), select: ofGo },
  { called: /^cargo$/, reports: ["cargo test"], subcommand: firstIs("test"), select: ofCargo },
  { called: /^ctest$/, reports: ["CTest"], select: ofCtest },
  { called: /^mvnw?$/, reports: ["Surefire", "JUnit XML"], select: ofMaven },
];

/** Options that are known to take no value from the next word. */
const PYTEST_FLAG = /^(?:-[qvxsl]+|-r\w+|--[\w-]+=.*)$/;

function ofPytest({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  const ids = names.map((name) => name.replace(/^ERROR /, ""));
  if (ids.some((id) => /^[-@]|^SUBFAIL/.test(id))) return undefined;
  if (args.every((word, at) => PYTEST_FLAG.test(word) || word === "-p" || args[at - 1] === "-p"))
    return [...runner, ...ids, ...args];
  // It is unknown which words are paths and which are option values: they stay, and names are matched as keywords.
  if (ids.some((id) => !id.includes("::"))) return undefined;
  const keywords = ids.map((id) => /^\w+/.exec(id.split("::").at(-1)!)?.[0]);
  return keywords.includes(undefined) ? undefined : [...runner, ...args, "-k", [...new Set(keywords)].join(" or ")];
}

/** `test_x (a.All.test_x)`, and before Python 3.11 `test_x (a.All)`. */
function ofUnittest({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  const ids = names.map((name) => {
    const [, test, place] = /^(\w+) \(([\w.]+)\)/.exec(name) ?? [];
    return test && place && (place.endsWith(`.${test}`) ? place : `${place}.${test}`);
  });
  return ids.includes(undefined) ? undefined : [...runner, ...args, ...ids.flatMap((id) => ["-k", `*${id}`])];
}

/** vitest and jest: the file precedes the suites, and one pattern matches all names. */
function byFile(separator: string): Select {
  return ({ runner, args }, names, { onlyAtEnd }) => {
    const parts = names.map((name) => name.replace(/^\.\//, "").split(separator));
    const files = [...new Set(parts.map(([file = ""]) => file))];
    const titles = parts.filter(([, title]) => title !== undefined && title !== "Test suite failed to run");
    if (files.some((file) => !/^[\w.@/-]+$/.test(file) || file.startsWith("-")) || args.includes("--")) return undefined;
    const patterns = titles.map(([, ...rest]) => rest.map(escaped).join(`(?:${separator}| )`));
    const filters = separator === " › " ? files.map((file) => `${escaped(file)}$`) : files;
    const byName = patterns.length < names.length ? [] : ["-t", exactly(patterns)];
    if (onlyAtEnd) return byName.length > 0 ? [...runner, ...args, ...byName] : undefined;
    return [...runner, ...filters, ...args, ...byName];
  };
}

function ofMocha({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  if (args.some((word) => /^(?:--|-[gfi]|--(?:f?grep|invert)(?:=.*)?)$/.test(word))) return undefined;
  return [...runner, ...args, "--grep", exactly(names.map((name) => spaced(name, " > ")))];
}

/** Node 22 matches the names of all suites and the test together, earlier versions each on its own. */
function ofNode({ runner, args }: Call, names: readonly string[], { onlyAtEnd }: Placement): string[] | undefined {
  if (onlyAtEnd && args.some((word) => !word.startsWith("-"))) return undefined;
  if (args.some((word) => word.startsWith("--test-name-pattern"))) return undefined;
  // A suite fails with its tests; only those run again.
  const all = names.map(withoutFile);
  const tests = all.filter((name) => !all.some((other) => other.startsWith(`${name} > `)));
  // TAP escapes its own signs with a backslash. A title may contain the separator between suites.
  const parts = tests.map((name) => name.replace(/\\([\\#])/g, "$1").split(" > "));
  const patterns = parts.flatMap((words) => words.map((_, at) => spaced(words.slice(at).join(" > "), " > ")));
  return [...runner, ...[...new Set(patterns)].map((pattern) => `--test-name-pattern=${exactly([pattern])}`), ...args];
}

function ofGo({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  if (args.some((word) => /^--?(?:test\.)?(?:run|skip|args|exec)\b/.test(word))) return undefined;
  const tests = names.map((name) => /^\S+ ((?:Test|Example|Fuzz)[\p{L}\p{N}_]*)(?:\/|$)/u.exec(name)?.[1]);
  return tests.includes(undefined) ? undefined : [...runner, `-run=^(${[...new Set(tests)].join("|")})$`, ...args];
}

function ofCargo({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  const tests = names.map((name) => /^(?:[\w./:-]+ )?(\w+(?:::\w+)*)$/.exec(name)?.[1]);
  if (tests.includes(undefined) || names.some((name) => name.startsWith("doc-tests "))) return undefined;
  return [...runner, ...args, ...(args.includes("--") ? [] : ["--"]), "--exact", ...tests.map((test) => test!)];
}

function ofCtest({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  if (args.some((word) => /^(?:-[RELIUNSDMTA]|--(?:tests-|rerun|exclude|label|show-only|build-and-test))/.test(word)))
    return undefined;
  return [...runner, ...args, "-R", `^(${names.map((name) => name.replace(/[\\^$.|?*+()[\]]/g, "\\$&")).join("|")})$`];
}

function ofMaven({ runner, args }: Call, names: readonly string[]): string[] | undefined {
  const tests = names.map((name) => /^((?:\w+\.)*\w+)[.#](\w+)$/.exec(name));
  if (tests.includes(null) || args.some((word) => /^-D(?:it\.)?test\b/.test(word))) return undefined;
  const chosen = tests.map((test) => `${test![1]}#${test![2]}`).join(",");
  return [...runner, ...args, `-Dtest=${chosen}`, "-Dsurefire.failIfNoSpecifiedTests=false", "-DfailIfNoTests=false"];
}

/** Escapes a name as a JavaScript pattern. Reading it collapsed its spaces. */
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll(" ", "\\s+");
const spaced = (name: string, separator: string) => name.split(separator).map(escaped).join(`(?:${separator}| )`);
const exactly = (patterns: readonly string[]) => `^\\s*(?:${patterns.join("|")})\\s*$`;
