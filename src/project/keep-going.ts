import { join } from "node:path";
import { z } from "zod";
import { readPlainAt } from "../lib/pinned/read.ts";
import { oneLine } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import { readShell } from "../shell/read.ts";
import type { Line } from "../shell/syntax.ts";
import { isShell, unwrap } from "../shell/wrappers.ts";
import { detectTests, isReadOnlyCommand } from "./test-commands.ts";

const VARIABLES = /^(?:\w+=(?:'[^']*'|"[^"$`]*"|[\w@%+=:,./-]*) )*/;
const LAUNCHER = "(?:(?:npx|bunx|pnpm exec|pnpm|yarn|uv run|mise exec --) )?";

/** Tools that stop at the first package or target that fails, and the option that makes them go on to the others. */
const STOPPING: readonly { call: RegExp; option: string; unless: RegExp }[] = [
  { call: /^cargo(?: \+\S+)? (?:test|t|nextest run)(?= |$)/, option: "--no-fail-fast", unless: / --(?:no-fail-fast|no-run)\b/ },
  { call: /^(?:\S*\/)?mvnw?(?= )/, option: "-fae", unless: / (?:-fae|-ff|-fn|--fail-\S+)\b/ },
  { call: /^(?:\S*\/)?gradlew?(?= )/, option: "--continue", unless: / --(?:no-)?continue\b/ },
  { call: /^g?make(?= )/, option: "-k", unless: / (?:-[a-jlmo-zA-RT-Z]*[knS]\w*|--keep-going|--no-keep-going|--stop)(?= |$)/ },
  { call: /^pnpm(?= (?:.* )?(?:-r|--recursive|--filter\S*)(?: |$))/, option: "--no-bail", unless: / --(?:no-)?bail\b/ },
  { call: new RegExp(`^${LAUNCHER}turbo run(?= )`), option: "--continue", unless: / --continue\b/ },
  { call: new RegExp(`^${LAUNCHER}lerna run(?= )`), option: "--no-bail", unless: / --(?:no-)?bail\b/ },
];

/** A test command that goes on after a package or target failed, so that no failure hides another. */
export function keepingGoing(command: string): string {
  return command
    .split(" && ")
    .map((part) => {
      const variables = VARIABLES.exec(part)?.[0] ?? "";
      const bare = part.slice(variables.length);
      const found = STOPPING.find(({ call }) => call.test(bare));
      if (!found || found.unless.test(bare) || !detectTests(bare).isTest) return part;
      return `${variables}${bare.replace(found.call, (call) => `${call} ${found.option}`)}`;
    })
    .join(" && ");
}

/** Options that end a runner at its first failure. */
const STOPS =
  / (?:--bail(?! 0| false|=0|=false)|--exitfirst|--maxfail|--fail-fast|--failfast|-failfast|--stop-on-(?:failure|error|defect)|--fail-at-first)(?=[ =]|$)/;
const STOPS_SHORT: readonly [runner: RegExp, option: RegExp][] = [
  [/\bpytest\b/, / -x(?= |$)/],
  [/\bmocha\b/, / -b(?= |$)/],
  [/\bunittest\b/, / -f(?= |$)/],
  [/\bmvnw?\b/, / -ff(?= |$)/],
];
/** Tools that run a script in each package, up to the first that fails. */
const STOPS_AT_PACKAGE = new RegExp(
  `^(?:yarn workspaces run|(?:\\S*/)?gradlew?|pnpm (?:.* )?(?:-r|--recursive)|${LAUNCHER}turbo run|${LAUNCHER}lerna run) `,
);
const GOES_ON = / --(?:no-bail|continue)\b/;

const MAX_DEPTH = 5;
const MAX_FILE = 200_000;
const MAX_WORDS = 120;

/** Whether a command runs tests, and what it does not reach once they fail. */
interface Reach {
  tests: boolean;
  unreached: string[];
}
const NOTHING: Reach = { tests: false, unreached: [] };

/** Where a command of a check runs. */
interface Place {
  /** The real path of the tree that the check belongs to. No file outside of it is read. */
  top: string;
  cwd: string;
  /** How many scripts and targets led here. */
  depth: number;
}

/** What a script, target or file runs: first commands that all run whatever the others do, then commands one after the other. */
interface Chain {
  beside?: readonly string[];
  inTurn: readonly string[];
}

/**
 * What a check does not reach once a test has failed: commands that follow in the same line, script or recipe, or the tests after
 * the first failing one. Undefined if it reaches everything, as far as the project's files say.
 */
export function notReachedAfterFailure(command: string, { top, cwd }: Pick<Place, "top" | "cwd">): string | undefined {
  const { unreached } = inLine(readShell(keepingGoing(command)), { top: realOf(top), cwd: realOf(cwd), depth: 0 });
  return unreached.length === 0 ? undefined : oneLine([...new Set(unreached)].map((each) => `"${each}"`).join(", "), MAX_WORDS);
}

function inLine(line: Line, place: Place): Reach {
  let { cwd } = place;
  let hasFailed = false;
  const all: Reach = { tests: false, unreached: [] };
  for (const { before, pipe } of line) {
    // An alternative only runs after a failure, and what follows a semicolon runs in any case.
    if (before === "||") continue;
    if (before === ";") hasFailed = false;
    const [first] = pipe;
    const words = pipe.flatMap((command) => command.words.map(({ text }) => text));
    const text = words.join(" ");
    if (hasFailed) all.unreached.push(...(isReadOnlyCommand(text) ? [] : [text]));
    else if (words[0] === "cd" && words[1] !== undefined) cwd = join(cwd, words[1]);
    else {
      const own = first?.group ? inLine(first.group, { ...place, cwd }) : inWords(unwrap(words), { ...place, cwd });
      all.unreached.push(...own.unreached);
      all.tests ||= own.tests;
      hasFailed = own.tests;
    }
  }
  return all;
}

function inWords(words: readonly string[], place: Place): Reach {
  const text = words.join(" ");
  const chain = place.depth < MAX_DEPTH ? chainOf(words, place) : undefined;
  const own = chain && inChain(chain, { ...place, depth: place.depth + 1 });
  if (own?.tests || !detectTests(text).isTest) return own ?? NOTHING;
  const stops = STOPS_SHORT.some(([runner, option]) => runner.test(text) && option.test(text));
  if (stops || STOPS.test(` ${text}`) || isSetToStop(text, place))
    return { tests: true, unreached: [`the tests after the first failing one of ${text}`] };
  const isPerPackage = STOPS_AT_PACKAGE.test(text) && !GOES_ON.test(text);
  return { tests: true, unreached: isPerPackage ? [`the packages after the first failing one of ${text}`] : [] };
}

const BAIL = /\bbail["']?\s*:\s*(?:true|[1-9])/;
/** Settings that end a runner at its first failure, by the runner, and the files that may hold them. */
const SETTINGS: readonly { runner: RegExp; files: readonly string[]; stops: RegExp }[] = [
  { runner: /\bmocha\b/, files: [...variants(".mocharc", "json yml yaml js cjs mjs jsonc"), "package.json"], stops: BAIL },
  { runner: /\bjest\b/, files: [...variants("jest.config", "js ts mjs cjs json"), "package.json"], stops: BAIL },
  {
    runner: /\bvitest\b/,
    files: ["vitest", "vite"].flatMap((name) => variants(`${name}.config`, "ts js mts mjs cts cjs")),
    stops: BAIL,
  },
  {
    runner: /\bphpunit\b/,
    files: ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"],
    stops: /\bstopOn(?:Failure|Error|Defect)="true"/,
  },
  { runner: /\brspec\b/, files: [".rspec", ".rspec-local"], stops: /--fail-fast\b/ },
];

function variants(name: string, extensions: string): string[] {
  return extensions.split(" ").map((extension) => `${name}.${extension}`);
}

const isSetToStop = (text: string, place: Place): boolean =>
  SETTINGS.some(({ runner, files, stops }) => runner.test(text) && files.some((file) => stops.test(textOf(file, place) ?? "")));

function inChain({ beside = [], inTurn }: Chain, place: Place): Reach {
  const reachOf = (text: string) => inLine(readShell(text), place);
  const besides = beside.map(reachOf);
  const reaches = inTurn.map(reachOf);
  const first = besides.some(({ tests }) => tests) ? -1 : reaches.findIndex(({ tests }) => tests);
  const after = first < 0 && !besides.some(({ tests }) => tests) ? [] : inTurn.slice(first + 1);
  const unreached = [...besides, ...reaches].flatMap((each) => each.unreached);
  return {
    tests: [...besides, ...reaches].some(({ tests }) => tests),
    unreached: [...unreached, ...after.filter((text) => !isReadOnlyCommand(text))],
  };
}

const OF_ANOTHER_PACKAGE = /^(?:-r|--recursive|-w|-ws|--workspaces?(?:=.*)?|--filter(?:=.*)?|--prefix(?:=.*)?|-C)$/;
const GOES_ON_SCRIPTS = /^(?:-c|-p|--parallel|--continue-on-error)$/;

function chainOf([program = "", ...args]: readonly string[], place: Place): Chain | undefined {
  const [first = "", second = ""] = args.filter((word) => !word.startsWith("-"));
  if (/^(?:npm|pnpm|yarn|bun)$/.test(program)) {
    if (args.some((word) => OF_ANOTHER_PACKAGE.test(word))) return undefined;
    return scriptChain(/^run(?:-script)?$/.test(first) ? second : first.replace(/^t$/, "test"), place);
  }
  if (/^(?:run-s|npm-run-all)$/.test(program) && !args.some((word) => GOES_ON_SCRIPTS.test(word)))
    return { inTurn: args.filter((word) => !word.startsWith("-")).flatMap((name) => scriptsLike(name, place)) };
  if (program === "composer") return composerChain(/^run(?:-script)?$/.test(first) ? second : first, place);
  if (/^g?make$/.test(program))
    return targetChain(MAKEFILES, first, { ...place, tool: `make${args.includes("-k") ? " -k" : ""}` });
  if (program === "just") return targetChain(JUSTFILES, first, { ...place, tool: "just" });
  const script = isShell(program) ? first : /^[\w./-]+\.(?:sh|bash)$/.test(program) ? program : "";
  return script === ""
    ? undefined
    : shellChain(
        script,
        args.some((word) => /^-\w*e/.test(word)),
        place,
      );
}

function textOf(name: string, { top, cwd }: Place): string | undefined {
  const path = join(cwd, name);
  const read = isWithin(top, path) ? readPlainAt(path, MAX_FILE) : undefined;
  return read && "bytes" in read ? read.bytes.toString("utf8") : undefined;
}

const Scripts = z.object({ scripts: z.record(z.string(), z.union([z.string(), z.array(z.string())])) });

function scriptsIn(file: string, place: Place): Map<string, string[]> {
  try {
    const { scripts } = Scripts.parse(JSON.parse(textOf(file, place) ?? ""));
    return new Map(Object.entries(scripts).map(([name, script]) => [name, [script].flat()]));
  } catch {
    // There is none, or it has no scripts.
    return new Map();
  }
}

function scriptChain(name: string, place: Place): Chain | undefined {
  const scripts = scriptsIn("package.json", place);
  const inTurn = [`pre${name}`, name, `post${name}`].flatMap((one) => scripts.get(one) ?? []);
  return scripts.has(name) ? { inTurn } : undefined;
}

function scriptsLike(pattern: string, place: Place): string[] {
  const names = [...scriptsIn("package.json", place).keys()];
  const at = pattern.indexOf("*");
  const some = at < 0 ? [pattern] : names.filter((name) => name.startsWith(pattern.slice(0, at)));
  return some.map((name) => `npm run ${name}`);
}

function composerChain(name: string, place: Place): Chain | undefined {
  const inTurn = scriptsIn("composer.json", place).get(name);
  return inTurn && { inTurn: inTurn.map((each) => (each.startsWith("@") ? `composer ${each.slice(1)}` : each)) };
}

const MAKEFILES = ["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES = ["justfile", "Justfile", ".justfile"];

/** The prerequisites of a target and the lines of its recipe. */
function targetChain(names: readonly string[], target: string, { tool, ...place }: Place & { tool: string }): Chain | undefined {
  const text = names.map((name) => textOf(name, place)).find((each) => each !== undefined);
  const lines = text?.replaceAll(/\\\r?\n/g, " ").split(/\r?\n/) ?? [];
  const at = lines.findIndex((line) => line.split(/[ :]/, 1)[0] === target && /^[\w.-]+(?: [^:=]*)?:(?!=)/.test(line));
  if (at < 0 || target === "") return undefined;
  const rule = lines[at]!.slice(lines[at]!.indexOf(":") + 1);
  const needs = rule
    .split(/[#;|]/, 1)[0]!
    .split(/\s+/)
    .filter((word) => /^[\w.-]+$/.test(word));
  const end = lines.findIndex((line, index) => index > at && /^[^\s#]/.test(line));
  const recipe = lines.slice(at + 1, end < 0 ? undefined : end).map((line) => line.trim().replace(/^[@+]+/, ""));
  // A line that begins with a dash may fail.
  const own = recipe.filter((line) => line !== "" && !/^[-#]/.test(line)).map(withoutVariables);
  const before = needs.map((need) => `${tool} ${need}`);
  return tool === "make -k" ? { beside: before, inTurn: own } : { inTurn: [...before, ...own] };
}

/** Variables of Make are usually named after the program that they hold. */
const withoutVariables = (line: string) => line.replace(/\$[({](\w+)[)}]/g, (_, name: string) => name.toLowerCase());

/** The lines of a shell script, if it ends at its first failure. */
function shellChain(file: string, isStrict: boolean, place: Place): Chain | undefined {
  const lines = textOf(file, place)?.split(/\r?\n/) ?? [];
  if (!isStrict && !lines.some((line) => /^(?:#!.* -\w*e|set -\w*e|set -o errexit)/.test(line))) return undefined;
  return { inTurn: lines.filter((line) => line.trim() !== "" && !/^\s*(?:#|set )/.test(line)) };
}
