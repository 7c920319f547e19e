import { readShell } from "../shell/read.ts";
import { type Command, inputOf, isAssignment, type Line, type Part } from "../shell/syntax.ts";
import { isShell, scriptOf, unwrap } from "../shell/wrappers.ts";

const words = (text: string) => new Set(text.split(" "));

/** Programs that only run tests. */
const RUNNERS = words(
  "vitest jest mocha ava tap tape uvu jasmine karma wtr wdio testcafe nightwatch cucumber cucumber-js elm-test pytest py.test unittest nose nose2 nosetests tox nox behave trial robot rspec phpunit pest paratest ctest bats prove busted gotestsum ginkgo",
);
/** Programs whose first word says what they do. */
const BY_FIRST = words(
  "go cargo dotnet pdm rye swift mix flutter dart deno stack cabal bazel bazelisk zig forge hardhat anchor truffle ng react-scripts craco vue-cli-service ember nx turbo lerna moon playwright hatch rails artisan manage.py setup.py meson molecule terraform tofu dbt pants buck2 crystal nimble dune raco rebar3 xcodebuild poe sail",
);
/** Programs that are given targets, any of which may be the tests. */
const BY_TARGET = words("make gmake just task ninja rake gulp grunt inv invoke doit mage scons lein sbt");
const MANAGERS = words("npm pnpm yarn bun composer");
const CONTAINERS = words("docker docker-compose podman nerdctl kubectl");
const INTERPRETER = /^(?:python[\d.]*|pypy3?|node|tsx|ts-node|ruby|php|perl)$/;
/** Programs that run the one named after them, besides those of every shell. */
const WRAPPERS = words("xvfb-run cross-env dotenv c8 nyc npx bunx pnpx uvx");
const WRAPPING: Readonly<Record<string, ReadonlySet<string>>> = {
  ...Object.fromEntries(
    "uv poetry pipenv pdm hatch rye conda mamba pipx volta coverage devbox".split(" ").map((each) => [each, words("run")]),
  ),
  ...Object.fromEntries("bundle mise asdf nvm fnm rbenv pyenv opam composer".split(" ").map((each) => [each, words("exec")])),
  ...Object.fromEntries("npm pnpm yarn bun".split(" ").map((each) => [each, words("exec x dlx")])),
};
/** Those of them whose projects may define scripts of their own. */
const SCRIPTED = words("hatch pdm rye");

/** Options that take the next word as a value. */
const VALUED =
  /^(?:-[CFpnugdefx]|-pl|--(?:prefix|dir|directory|cwd|chdir|filter|workspace|package|with|group|extra|python|project|projects|env-file|name|from|file|manifest-path|working-dir|user|unset|exclude-task))$/;
const VALUED_BY_NPM = new RegExp(`^-w$|${VALUED.source}`);
const VALUED_BY_INTERPRETER = /^(?:-[WXrCId]|--(?:require|import|loader|experimental-loader|conditions|env-file))$/;
/** Only prints something, or only prepares. */
const RUNS_NONE = /^(?:--version|--help|-h|--dry-run|--no-run|--collect-only|--co|--listTests|--list-tests|--list|--init)$/;
const CODE = /^(?:-[celnp]+|--eval|--print|--check)$/;
const NO_TESTS = words(
  "lint build format fmt typecheck tsc clean install setup prepare docs serve server start deploy publish generate compile seed prettier eslint list image db data report",
);

/** Programs that only read, and git, whose changes can be seen otherwise. */
const READ_ONLY = words(
  "git ls cat grep rg head tail pwd echo printf wc find diff sort uniq cut stat which cd true false test [ [[ : exit sleep date for done fi set export }",
);
const MAX_SHELLS = 5;
/** How many words of a command are looked at. */
const MAX_WORDS = 2_000;
const NO_FILE = /^(?:\d+|-|\/dev\/(?:null|stdout|stderr|tty))$/;
const FIND_ACTS = /^-(?:delete|exec|execdir|ok|okdir|fls|fprint.*)$/;

export interface TestReading {
  isTest: boolean;
  /** Whether the command's exit code is that of the tests. */
  exitCodeIsTests: boolean;
  /** Whether the same command goes on to do something that may change files. */
  isFollowed: boolean;
}
const NONE: TestReading = { isTest: false, exitCodeIsTests: false, isFollowed: false };
const OWN: TestReading = { isTest: true, exitCodeIsTests: true, isFollowed: false };

/** Whether a command runs tests, and whether its exit code is theirs. */
export const detectTests = (command: string): TestReading => inLine(readShell(command), { pipefail: false, depth: 0 });

/** Whether a command changes no file, except through git. */
export const isReadOnlyCommand = (command: string): boolean => isReadOnlyLine(readShell(command), 0);

interface Around {
  /** Whether a pipe's exit code is that of whichever command failed. */
  pipefail: boolean;
  /** How many shells and containers surround this one. */
  depth: number;
}

function inLine(line: Line, around: Around): TestReading {
  const inside = { ...around, pipefail: around.pipefail || line.some(setsPipefail) };
  const readings = line.map((part) => inPart(part, inside));
  const at = readings.findLastIndex(({ isTest }) => isTest);
  if (at < 0) return NONE;
  const { exitCodeIsTests, isFollowed } = readings[at]!;
  const { before, isTurned, inBackground } = line[at]!;
  const after = line.slice(at + 1);
  const isHidden = before === "||" || isTurned || inBackground || after.some((part) => part.before !== "&&");
  return {
    isTest: true,
    exitCodeIsTests: exitCodeIsTests && !isHidden,
    isFollowed: isFollowed || !isReadOnlyLine(after, around.depth),
  };
}

function setsPipefail({ pipe: [first] }: Part): boolean {
  const given = first ? textsOf(first) : [];
  return given[0] === "set" && /^-\w*o$/.test(given[given.indexOf("pipefail") - 1] ?? "");
}

function inPart({ pipe }: Part, around: Around): TestReading {
  const readings = pipe.map((command) => inCommand(command, around));
  const at = readings.findLastIndex(({ isTest }) => isTest);
  if (at < 0) return NONE;
  return { ...readings[at]!, exitCodeIsTests: readings[at]!.exitCodeIsTests && (at === pipe.length - 1 || around.pipefail) };
}

function inCommand(command: Command, around: Around): TestReading {
  if (command.group) return inLine(command.group, around);
  const given = textsOf(command);
  const own = inWords(given, inputOf(command), around);
  if (own.isTest) return own;
  const within = command.within.map((line) => inLine(line, around)).findLast(({ isTest }) => isTest);
  return within ? { ...within, exitCodeIsTests: within.exitCodeIsTests && given.every(isAssignment) } : NONE;
}

function inWords(given: readonly string[], input: string, around: Around): TestReading {
  const plain = unwrapped(given);
  const name = nameOf(plain[0]);
  const script = scriptOf(plain, input);
  const depth = around.depth + 1;
  if (script !== undefined)
    return depth > MAX_SHELLS ? NONE : inLine(readShell(script), { pipefail: plain.includes("pipefail"), depth });
  if (CONTAINERS.has(name)) {
    const at = plain.findIndex((word) => word === "run" || word === "exec");
    // Containers in containers are ignored: each possible start would multiply the attempts.
    if (at < 0 || depth >= MAX_SHELLS) return NONE;
    const starts = plain.slice(at + 1, at + 30).map((_, index) => plain.slice(at + 1 + index));
    return starts.map((some) => inWords(some, "", { ...around, depth: MAX_SHELLS - 1 })).find(({ isTest }) => isTest) ?? NONE;
  }
  return runsTests(plain) ? OWN : NONE;
}

const textsOf = (command: Command) => command.words.slice(0, MAX_WORDS).map(({ text }) => text);

function runsTests(given: readonly string[]): boolean {
  const [first = "", ...args] = given;
  const name = nameOf(first);
  if (args.some((word) => RUNS_NONE.test(word))) return false;
  if (RUNNERS.has(name)) return name !== "vitest" || !["list", "init", "bench"].includes(args[0] ?? "");
  if (MANAGERS.has(name)) return byManager(name, args);
  if (BY_FIRST.has(name)) return byFirst(name, args);
  if (BY_TARGET.has(name)) return !args.includes("-n") && targetsOf(args).some((one) => one === "check" || namesTests(one));
  if (/^mvnw?$/.test(name)) return byMaven(args);
  if (/^gradlew?$/.test(name)) return targetsOf(args).some(isGradleTest);
  if (name === "cypress") return args[0] === "run";
  if (name === "cmake") return namedTargets(args).some((one) => one === "check" || namesTests(one));
  if (INTERPRETER.test(name) || name === "-m") return byInterpreter(name === "-m" ? given : args);
  if (isShell(name)) return !args.includes("-n") && isTestFile(args.find((word) => !word.startsWith("-")) ?? "");
  return first.includes("/") && isTestFile(first);
}

function byManager(name: string, args: readonly string[]): boolean {
  const valued = name === "npm" ? VALUED_BY_NPM : VALUED;
  const rest = pastOptions(args, valued);
  const [first = "", ...more] = rest;
  if (first === "workspace") return byManager(name, more.slice(1));
  if (first === "workspaces") return byManager(name, pastOptions(more[0] === "foreach" ? more.slice(1) : more));
  if (/^run(?:-script)?$/.test(first)) {
    const [script = ""] = pastOptions(more, valued);
    return namesTests(script) || (name === "bun" && isTestFile(script));
  }
  if (/^(?:t|tst|it|cit|install-test|install-ci-test)$/.test(first) || namesTests(first)) return true;
  return name !== "npm" && (runsTests(rest) || (name === "bun" && isTestFile(first)));
}

function byFirst(name: string, args: readonly string[]): boolean {
  const [first = "", ...more] = pastOptions(args.filter((word) => !word.startsWith("+")));
  if (/^(?:turbo|lerna|moon|nx|dart|deno|zig|hatch|pdm|rye)$/.test(name) && /^(?:run|task|build)$/.test(first))
    return [...targetsOf(more), ...namedTargets(more)].some(namesTests);
  if (name === "nx" && /^(?:run-many|affected)$/.test(first)) return namedTargets(more).some(namesTests);
  return namesTests(first) || /^(?:t|nextest|runtest|eunit|ct|vstest)$/.test(first);
}

function byMaven(args: readonly string[]): boolean {
  if (args.some((word) => /^-D(?:skipTests|maven\.test\.skip)(?!=false)/.test(word))) return false;
  return targetsOf(args).some((one) => /^(?:test|verify|integration-test)$|^(?:surefire|failsafe):/.test(one));
}

/** A task of any project of the build; tasks of tools that judge code are named after what they judge. */
function isGradleTest(task: string): boolean {
  const name = task.slice(task.lastIndexOf(":") + 1);
  return /^(?:test|check|verify|integration-test|\w+Tests?)$/.test(name) && !/^(?:checkstyle|pmd|spotbugs|compile)/.test(name);
}

function byInterpreter(args: readonly string[]): boolean {
  const rest = pastOptions(args, VALUED_BY_INTERPRETER);
  const options = args.slice(0, args.length - rest.length);
  if (options.includes("--test")) return true;
  if (options.some((word) => CODE.test(word))) return false;
  const started = rest[0] === "-m" ? rest.slice(1) : rest;
  return isTestFile(started[0] ?? "") || runsTests(unwrapped(started));
}

/** The words from the program that does the work onwards. */
function unwrapped(given: readonly string[]): readonly string[] {
  let left = given;
  for (;;) {
    left = unwrap(left, { keepingCode: true });
    const name = nameOf(left[0]);
    if (WRAPPERS.has(name)) left = pastOptions(left.slice(1));
    else {
      const [by, ...rest] = Object.hasOwn(WRAPPING, name) ? pastOptions(left.slice(1)) : [];
      if (by === undefined || !WRAPPING[name]!.has(by)) return left;
      // A script's name, because nobody runs the shell's own `test` this way.
      if (SCRIPTED.has(name) && namesTests(pastOptions(rest)[0] ?? "")) return left;
      left = name === "coverage" ? ["python", ...rest] : pastOptions(rest);
    }
  }
}

/** The words after the options; `-m`, which names a program, is not one. */
function pastOptions(given: readonly string[], valued = VALUED): readonly string[] {
  let at = 0;
  while (given[at]?.startsWith("-") && given[at] !== "-m") {
    if (given[at] === "--") return given.slice(at + 1);
    at += valued.test(given[at]!) ? 2 : 1;
  }
  return given.slice(at);
}

const targetsOf = (args: readonly string[]) =>
  args
    .filter((word, index) => !word.startsWith("-") && !isAssignment(word) && !VALUED.test(args[index - 1] ?? ""))
    .map((word) => word.split(" ")[0]!);
const namedTargets = (args: readonly string[]) =>
  args.flatMap((word, index) => {
    if (/^(?:-t|--targets?)$/.test(args[index - 1] ?? "")) return word.split(",");
    return /^--targets?=(.*)$/.exec(word)?.[1]?.split(",") ?? [];
  });

const nameOf = (program = "") => program.slice(program.lastIndexOf("/") + 1).replace(/\.(?:exe|cmd|bat|phar|[mc]?js)$/, "");

/** Whether a script or target tests, by the parts of its name. */
function namesTests(name: string): boolean {
  const parts = name.split(/[:._/-]+/);
  return (
    parts.some((part) => /^(?:tests?|testOnly|specs?|e2e|unit|integration)$/.test(part)) &&
    !parts.some((part) => NO_TESTS.has(part))
  );
}

/** Only the file and its folder count: an absolute path's upper folders are not the project's own. */
function isTestFile(path: string): boolean {
  if (/\s|(?:^|\/)node_modules\//.test(path)) return false;
  const own = path.startsWith("/") ? path.split("/").slice(-2).join("/") : path;
  return own.split(/[/._-]+/).some((part) => /^(?:tests?|specs?|runtests)$/i.test(part));
}

function isReadOnlyLine(line: Line, depth: number): boolean {
  return line.every(({ pipe }) =>
    pipe.every((command) => {
      const { group, within } = command;
      if (writes(command) || !within.every((inner) => isReadOnlyLine(inner, depth))) return false;
      if (group) return isReadOnlyLine(group, depth);
      const given = textsOf(command);
      const plain = given.slice(given.findIndex((word) => !isAssignment(word)));
      if (given.every(isAssignment)) return true;
      const script = scriptOf(plain, inputOf(command));
      if (script !== undefined) return depth < MAX_SHELLS && isReadOnlyLine(readShell(script), depth + 1);
      if (plain[0] === "find") return !plain.some((word) => FIND_ACTS.test(word));
      if (plain[0] === "sort") return !plain.some((word) => /^(?:-\w*o|--output)/.test(word));
      return READ_ONLY.has(plain[0]!);
    }),
  );
}

/** Whether it writes to a file. */
function writes({ redirects }: Command): boolean {
  return redirects.some(({ operator, target }) => operator.startsWith(">") && !NO_FILE.test(target.text));
}
