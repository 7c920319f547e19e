import { UserError } from "../lib/errors.ts";
import type { Git } from "./command.ts";

/** What a change takes away from what tests and CI would notice. */
export interface Weakening {
  path: string;
  /** In words, for a person. */
  what: string;
}

interface FileChange {
  path: string;
  /** Where it was before, if that is another path. */
  from: string | undefined;
  isNew: boolean;
  isDeleted: boolean;
  /** Git shows no lines of it: it holds a zero byte, or .gitattributes says so. */
  isUnreadable: boolean;
  added: string[];
  removed: string[];
}

const CI =
  /(?:^|\/)(?:\.github\/(?:workflows|actions)\/|\.gitea\/workflows\/|\.forgejo\/workflows\/|\.circleci\/|\.gitlab-ci\.ya?ml$|\.ci\/|\.buildkite\/|\.drone\.ya?ml$|\.?appveyor\.ya?ml$|cloudbuild\.ya?ml$|\.travis\.ya?ml$|azure-pipelines\.ya?ml$|bitbucket-pipelines\.ya?ml$|Jenkinsfile$|\.woodpecker(?:\/|\.ya?ml$))/i;
/** By its name, and not only by its folder, a runner finds a file. */
const NAMED_AS_TEST =
  /(?:^|\/)(?:test_[^/]{1,200}|conftest)\.py$|[._-](?:test|spec|tests|e2e|cy)\.[a-z]{1,5}$|_test\.(?:go|py|rb|exs|dart|cc|cpp|c)$|_spec\.rb$|(?:Test|Tests|Spec|IT)\.(?:java|kt|kts|cs|scala|groovy|swift|php)$/;
const TEST_FOLDER = /(?:^|\/)(?:tests?|specs?|__tests__|testing)\//;
const CODE = /\.(?:[cm]?[jt]sx?|vue|svelte|py|go|rs|java|kts?|rb|php|cs|swift|dart|exs?|scala|groovy|c|cc|cpp|sh|bash|bats)$/;

/** Files that say which tests run, and how. */
const RUNNER =
  /(?:^|\/)(?:(?:vitest|jest|karma|playwright|cypress|ava|wdio|web-test-runner)\.(?:config|conf|workspace)\.[cm]?[jt]sx?|\.mocharc(?:\.\w{1,5})?|jest\.config\.json|pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|phpunit(?:\.dist)?\.xml(?:\.dist)?|\.rspec|\.nextest\.toml|nextest\.toml|CTestTestfile\.cmake|\.nycrc(?:\.\w{1,5})?|nyc\.config\.[cm]?js|\.c8rc(?:\.\w{1,5})?|\.coveragerc|\.?codecov\.ya?ml|\.simplecov)$/i;
/** Files in which commands have names, so that "test" may come to mean something else. */
const RECIPES =
  /(?:^|\/)(?:package\.json|deno\.jsonc?|composer\.json|GNUmakefile|[Mm]akefile|[Jj]ustfile|\.justfile|[Tt]askfile\.ya?ml|mise\.toml|Rakefile|pyproject\.toml|setup\.cfg|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|CMakeLists\.txt|vite\.config\.[cm]?[jt]s)$|\.(?:sh|bash)$/;
/** A line there that names or runs tests. */
const RUNS_TESTS =
  /^\s{0,200}["']?(?:pre|post)?(?:tests?|check|verify|lint|ci)(?:[:_.-][\w:.-]{1,40})?["']?\s{0,5}[:=]|\b(?:pytest|unittest|vitest|jest|mocha|jasmine|ava|rspec|phpunit|ctest|add_test|nextest|surefire|failsafe)\b|\b(?:npm|pnpm|yarn|bun|go|cargo|deno|mix|dotnet|swift|node)\s{1,5}(?:run\s{1,5})?(?:--)?test\b/;
/** A setting there that can leave tests out. */
const CHOOSES_TESTS =
  /\b(?:addopts|testpaths|python_files|norecursedirs|collect_ignore|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|passWithNoTests|testPathIgnorePatterns|testMatch|testRegex|testNamePattern|coverageThreshold|fail_under|check-coverage|thresholds?)\b|^\s{0,200}(?:harness|test)\s{0,5}=\s{0,5}false|^\s{0,200}["']?(?:branches|functions|lines|statements|perFile)["']?\s{0,5}:\s{0,5}\d/;
/** Where the settings of other tools stand beside those of the tests', only these leave tests out. */
const LEAVES_OUT = /\b(?:excludes?|include)\b/;
const TELLS_RUNNER = /(?:^|\/)(?:vite\.config\.[cm]?[jt]s|pom\.xml|build\.gradle(?:\.kts)?)$/;
/** Answers that tests are compared with. */
const RECORDED =
  /(?:^|\/)(?:__snapshots__|__image_snapshots__|[\w.-]{1,200}-snapshots|cassettes)\/|\.(?:snap|golden|ambr)$|\.approved\.\w{1,10}$/;
/** Tests that stand beside the code they test. */
const BESIDE = /\.rs$/;

/** A test that is begun, with its name where the language gives it one. */
const DECLARED = [
  /^\s{0,200}(?:it|test|specify|Deno\.test)(?:\.\w{1,20}){0,3}\s{0,5}\(\s{0,5}["'`]([^"'`]{1,300})["'`]/,
  /^\s{0,200}(?:async\s{1,5})?def\s{1,5}(test\w{0,200})\s{0,5}\(/,
  /^class\s{1,5}(Test\w{1,200})\s{0,5}[(:]/,
  /^\s{0,200}func\s{1,5}(Test\w{1,200}|Benchmark\w{1,200}|Fuzz\w{1,200})\s{0,5}\(/,
  /^\s{0,200}(?:public\s{1,5})?function\s{1,5}(test\w{1,200})\s{0,5}\(/,
  /^\s{0,200}(?:@(?:Test|ParameterizedTest)\b|#\[(?:tokio::)?test\]|\[(?:Fact|Theory|Test|TestMethod)\])/,
];
/** A test that is there and not run. */
const SKIPPED =
  /\b(?:it|test|describe|context|suite|specify)(?:\.\w{1,20}){0,2}\.(?:skip|todo|fails|failing|skipIf|runIf)\b|\bx(?:it|describe|test|context)\s{0,5}\(|\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|\bpytest_(?:collection_modifyitems|ignore_collect|runtest_\w{1,20}|pycollect_\w{1,20})\b|@(?:unittest\.(?:skip|skipIf|skipUnless|expectedFailure)|Disabled|Ignore)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bcollect_ignore|^\s{0,5}\/\/go:build\s{1,5}ignore\b|\bt\.Skip(?:f|Now)?\(|#\[ignore|#\[cfg_attr\([^)]{1,200}\bignore\b|#!?\[cfg\(any\(\)\)\]|\[(?:Ignore|Skip)\b|\bSkip\s{0,5}=\s{0,5}"|\bmarkTest(?:Skipped|Incomplete)\(|^\s{0,200}(?:skip|pending)\b|,\s{0,5}\{\s{0,5}(?:skip|todo)\s{0,5}:/;
/** A test that ends before it has asked anything. */
const ENDS_EARLY = /^\s{0,200}return;?\s{0,5}$/;
/** A failure that is swallowed. */
const SWALLOWED =
  /\|\|\s{0,5}(?:true|:|exit\s{1,5}0)\b|\|\|\s{0,5}:\s{0,5}(?:["';]|$)|^\s{0,200}set\s{1,5}\+e\b|^\s{0,200}exit\s{1,5}0\s{0,5}$/;
/** A value alone on its line: what an assertion that began above expects. */
const VALUE =
  /^\s{0,200}(?:".{0,1000}"|'.{0,1000}'|`.{0,1000}`|-?\d[\d._]{0,30}|true|false|null|None|True|False|undefined|nil)\s{0,5}[,)\]};]{0,6}\s{0,5}$/;
/** Only some of the tests of a file are run. */
const ONLY = /\b(?:it|test|describe|context|suite)\.only\b|\bf(?:it|describe)\s{0,5}\(/;
const ASSERTED =
  /\bexpect\s{0,5}\(|\bassert\w{0,40}!?\s{0,5}[.(]|\bassert\s|\bshould\b|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail)\(|\brequire\.\w{1,40}\(|\bself\.assert\w{1,40}\(|\bverify\s{0,5}\(/;

/**
 * Finds what a change weakens, by looking at a unified difference (git's, with renames). It is a reading of lines, not of
 * programs: a person is told of what it finds, and it does not find everything.
 */
export function findWeakenedTests(diff: string): Weakening[] {
  const files = filesIn(diff);
  const added = {
    byName: namesAddedIn(files.filter(({ path }) => NAMED_AS_TEST.test(path))),
    all: namesAddedIn(files.filter(isTest)),
  };
  return files.flatMap((file) =>
    weakeningsOf(file, NAMED_AS_TEST.test(file.from ?? file.path) ? added.byName : added.all).map((what) => ({
      path: file.path,
      what,
    })),
  );
}

const LONGEST_DIFF = 4_000_000;

/** The same of what lies between two trees or commits. What is too large to be read is told as such. */
export async function weakenedBetween(git: Pick<Git, "run">, cwd: string, from: string, to: string): Promise<Weakening[]> {
  const args = ["diff", "-M", "--no-color", "--no-ext-diff", "--no-textconv", from, to];
  const { code, stdout } = await git.run(cwd, args, { maxOutput: LONGEST_DIFF });
  if (code !== 0) throw new UserError(`git could not compare ${from.slice(0, 12)} with ${to.slice(0, 12)} in ${cwd}.`);
  const found = findWeakenedTests(stdout);
  const isWhole = stdout.length < LONGEST_DIFF;
  return isWhole ? found : [...found, { path: ".", what: "the change is too large for its tests to be looked at" }];
}

const isTestPath = (path: string) => TEST_FOLDER.test(path) || NAMED_AS_TEST.test(path);
const isTest = ({ path, from }: FileChange) => isTestPath(path) || (from !== undefined && isTestPath(from));
const namesAddedIn = (files: readonly FileChange[]) => new Set(files.flatMap(({ added }) => added.flatMap(namesIn)));

function weakeningsOf(file: FileChange, elsewhere: ReadonlySet<string>): string[] {
  const { path, from = path, isNew, isDeleted, isUnreadable, added, removed } = file;
  if (CI.test(path) || CI.test(from)) return [isDeleted ? "a file of the CI was deleted" : "a file of the CI was changed"];
  if (RUNNER.test(path) || RUNNER.test(from)) return [`the settings of a test runner were ${isDeleted ? "deleted" : "changed"}`];
  if (RECORDED.test(from))
    return removed.length > 0 || (isUnreadable && !isNew) ? ["recorded answers of tests were changed"] : [];
  if (RECIPES.test(from) && (isUnreadable || changesRuns(from, added, removed))) return ["what runs the tests was changed"];
  const isBeside = BESIDE.test(from) && !isTest(file);
  if (!isBeside && !isTest(file)) return [];
  if (isUnreadable)
    return !isNew && CODE.test(from) ? [`a file with tests was ${isDeleted ? "deleted" : "made unreadable"}`] : [];
  if (isBeside) return lossesOf(file, elsewhere).found;
  return weakeningsOfTests(file, elsewhere);
}

function weakeningsOfTests(file: FileChange, elsewhere: ReadonlySet<string>): string[] {
  const { path, from = path, isNew, isDeleted, added, removed } = file;
  const { found, gone } = lossesOf(file, elsewhere);
  if (isDeleted) return gone.length > 0 || removed.some((line) => ASSERTED.test(line)) ? ["a file with tests was deleted"] : [];
  if (NAMED_AS_TEST.test(from) && !NAMED_AS_TEST.test(path)) found.push(`it was ${from}, which a test runner knows by its name`);
  else if (TEST_FOLDER.test(from) && !TEST_FOLDER.test(path)) found.push(`it was ${from}, in a folder for tests`);
  if (isNew || gone.length > 0) return found;
  const fewer = countOf(removed, ASSERTED) - countOf(added, ASSERTED);
  const changed = removed.filter((line) => ASSERTED.test(line)).length;
  if (fewer > 0) found.push(`${fewer} fewer assertion${fewer === 1 ? "" : "s"}`);
  else if (changed > 0) found.push(`${changed} assertion${changed === 1 ? " was" : "s were"} changed`);
  else if (removed.some((line) => VALUE.test(line))) found.push("an expected value was changed");
  if (countOf(added, ENDS_EARLY) > countOf(removed, ENDS_EARLY)) found.push("a test ends early");
  return found;
}

/** Tests that are gone, skipped, or left out because only others are run. */
function lossesOf({ added, removed }: FileChange, elsewhere: ReadonlySet<string>): { found: string[]; gone: string[] } {
  const found: string[] = [];
  const here = new Set(added.flatMap(namesIn));
  const gone = [...new Set(removed.flatMap(namesIn))].filter((name) => !here.has(name) && !elsewhere.has(name));
  const unnamed = countOf(removed, DECLARED.at(-1)!) - countOf(added, DECLARED.at(-1)!);
  if (gone.length > 0) found.push(`removed: ${gone.slice(0, 5).map(quote).join(", ")}${gone.length > 5 ? " and more" : ""}`);
  else if (unnamed > 0) found.push(`${unnamed} fewer test${unnamed === 1 ? "" : "s"}`);
  const skipped = countOf(added, SKIPPED) - countOf(removed, SKIPPED);
  if (skipped > 0) found.push(`${skipped} test${skipped === 1 ? " is" : "s are"} skipped`);
  if (countOf(added, ONLY) > countOf(removed, ONLY)) found.push("only some of its tests are run");
  return { found, gone };
}

/** A new command for tests takes nothing away; a new setting may. */
const changesRuns = (path: string, added: readonly string[], removed: readonly string[]) =>
  removed.some((line) => RUNS_TESTS.test(line)) ||
  countOf(added, SWALLOWED) > countOf(removed, SWALLOWED) ||
  [...added, ...removed].some((line) => CHOOSES_TESTS.test(line) || (TELLS_RUNNER.test(path) && LEAVES_OUT.test(line)));

const quote = (name: string) => `"${name.slice(0, 80)}"`;
const countOf = (lines: readonly string[], pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;

function namesIn(line: string): string[] {
  for (const pattern of DECLARED.slice(0, -1)) {
    const match = pattern.exec(line);
    const name = match?.[1];
    if (name !== undefined) return [name];
  }
  return [];
}

/** Long lines are data or compiled code, and cost time. */
const LONGEST_LINE = 2_000;

function filesIn(diff: string): FileChange[] {
  const files: FileChange[] = [];
  let file: FileChange | undefined;
  let inHunk = false;
  for (const line of diff.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { path: pathIn(line), from: undefined, isNew: false, isDeleted: false, isUnreadable: false, added: [], removed: [] };
      files.push(file);
      inHunk = false;
    } else if (!file) continue;
    else if (line.startsWith("@@")) inHunk = true;
    else if (!inHunk && line.startsWith("deleted file mode")) file.isDeleted = true;
    else if (!inHunk && line.startsWith("new file mode")) file.isNew = true;
    else if (!inHunk && line.startsWith("Binary files ")) file.isUnreadable = true;
    else if (!inHunk && line.startsWith("rename from ")) file.from = line.slice("rename from ".length).replace(/^"|"$/g, "");
    else if (!inHunk && /^rename to |^\+\+\+ "?b\//.test(line))
      file.path = line.replace(/^rename to |^\+\+\+ "?b\//, "").replace(/"$/, "");
    else if (inHunk && line.startsWith("+")) file.added.push(line.slice(1, LONGEST_LINE));
    else if (inHunk && line.startsWith("-")) file.removed.push(line.slice(1, LONGEST_LINE));
  }
  return files;
}

/** Of `diff --git a/x b/x`. A name with a space is told again below, unless the file is empty or gone. */
function pathIn(line: string): string {
  const rest = line.slice("diff --git ".length);
  const half = rest.slice(rest.length / 2 + 1);
  return half.replace(/^"?b\//, "").replace(/"$/, "");
}
