import { UserError } from "../lib/errors.ts";
import { type Block, changedFiles, type FileChange } from "./changed-lines.ts";
import type { Git } from "./command.ts";
import * as known from "./test-patterns.ts";
import { isInNewCode, wrapsLines } from "./wrapped-lines.ts";

/** One way in which a change makes tests or CI catch less. */
export interface Weakening {
  path: string;
  /** A description for people. */
  what: string;
}

/**
 * Finds weakened tests in a unified diff (git's format, with renames). It matches lines and does not parse programs, so it
 * misses some cases; its findings are for a person to judge. It reports any change to existing test lines. Of added lines it
 * reports only those known to end, skip, wrap or replace existing tests.
 */
export function findWeakenedTests(diff: string): Weakening[] {
  const files = changedFiles(diff);
  const tests = files.filter(isTest);
  const addedElsewhere: AddedElsewhere = {
    byName: namesAddedIn(files.filter(({ path }) => known.NAMED_AS_TEST.test(path))),
    all: namesAddedIn(tests),
    lines: countEach(tests.flatMap(({ added }) => added)),
  };
  return files.flatMap((file) => weakeningsOf(file, addedElsewhere).map((what) => ({ path: file.path, what })));
}

/** Lines and test names that the change adds to any test file, so that moved tests do not count as removed. */
interface AddedElsewhere {
  byName: ReadonlySet<string>;
  all: ReadonlySet<string>;
  lines: ReadonlyMap<string, number>;
}

const MAX_DIFF = 4_000_000;
/** Has git show the module of changed lines, which tells inline tests, also in projects that ask for the function. */
const HEADINGS = "diff.rust.xfuncname=^[A-Za-z_#].*";

/** The same for the diff between two trees or commits. Reports a diff that is too large to read. */
export async function weakenedBetween(git: Pick<Git, "run">, cwd: string, from: string, to: string): Promise<Weakening[]> {
  const args = ["diff", "-M", "--no-color", "--no-ext-diff", "--no-textconv", from, to];
  const { code, stdout } = await git.run(cwd, args, { maxOutput: MAX_DIFF, settings: [HEADINGS] });
  if (code !== 0) throw new UserError(`git could not compare ${from.slice(0, 12)} with ${to.slice(0, 12)} in ${cwd}.`);
  const found = findWeakenedTests(stdout);
  const isWhole = stdout.length < MAX_DIFF;
  return isWhole ? found : [...found, { path: ".", what: "the change is too large for its tests to be looked at" }];
}

const isTestPath = (path: string): boolean => {
  if (known.PROSE.test(path)) return false;
  if (known.NAMED_AS_TEST.test(path) || known.DATA_FOLDER.test(path)) return true;
  return known.CODE.test(path) && (known.TEST_FOLDER.test(path) || known.TEST_FOLDER_IN_WORDS.test(path));
};
const isTest = ({ path, from }: FileChange) => isTestPath(path) || (from !== undefined && isTestPath(from));
const namesAddedIn = (files: readonly FileChange[]) => new Set(files.flatMap(({ added }) => added.flatMap(namesIn)));

function weakeningsOf(file: FileChange, addedElsewhere: AddedElsewhere): string[] {
  const { path, from = path, isNew, isDeleted, isUnreadable, removed } = file;
  if (known.CI.test(path) || known.CI.test(from)) return [`a file of the CI was ${isDeleted ? "deleted" : "changed"}`];
  if (known.RUNNER.test(path) || known.RUNNER.test(from))
    return [`the settings of a test runner were ${isDeleted ? "deleted" : "changed"}`];
  if (known.SNAPSHOT.test(from))
    return removed.length > 0 || (isUnreadable && !isNew) ? ["recorded answers of tests were changed"] : [];
  if (known.SCRIPT_FILES.test(from) && (isUnreadable || changesRuns(file))) return ["what runs the tests was changed"];
  if (!isTest(file))
    return known.INLINE_TESTS.test(from) && !isUnreadable ? weakeningsOfInlineTests(file, addedElsewhere.all) : [];
  if (isUnreadable)
    return !isNew && known.CODE.test(from) ? [`a file with tests was ${isDeleted ? "deleted" : "made unreadable"}`] : [];
  return weakeningsOfTests(file, addedElsewhere);
}

function weakeningsOfTests(file: FileChange, addedElsewhere: AddedElsewhere): string[] {
  const { path, from = path, isNew, isDeleted, added, removed, blocks } = file;
  const { found, gone } = lostTests(file, known.NAMED_AS_TEST.test(from) ? addedElsewhere.byName : addedElsewhere.all);
  const changed = changedLines(file, addedElsewhere.lines);
  if (isDeleted)
    return gone.length > 0 || count(removed, known.ASSERTED) > 0 || changed > 0 ? ["a file with tests was deleted"] : [];
  if (known.NAMED_AS_TEST.test(from) && !known.NAMED_AS_TEST.test(path))
    found.push(`it was ${from}, which a test runner knows by its name`);
  else if (isTestPath(from) && !isTestPath(path)) found.push(`it was ${from}, in a folder for tests`);
  else if (known.PASSED_OVER.test(path) && !known.PASSED_OVER.test(from))
    found.push(`it was ${from}, and test runners pass over where it is now`);
  if (adds(file, known.REPLACED)) found.push("what tests are written with was replaced");
  if (known.NAMED_AS_TEST.test(path) && adds(file, known.ENDS_PROGRAM)) found.push("the program that runs the tests is ended");
  if (isNew || gone.length > 0) return found;
  if (adds(file, known.MOCKED)) found.push("code of the project was replaced in its tests");
  const fewer = count(removed, known.ASSERTED) - count(added, known.ASSERTED);
  const loosened = count(removed, known.ASSERTED);
  if (fewer > 0) found.push(`${fewer} fewer assertion${fewer === 1 ? "" : "s"}`);
  else if (loosened > 0) found.push(`${loosened} assertion${loosened === 1 ? " was" : "s were"} changed`);
  else if (count(removed, known.VALUE) > 0) found.push("an expected value was changed");
  if (endsEarly(blocks, known.NAMED_AS_TEST.test(path))) found.push("a test ends early");
  if (blocks.some(rescues)) found.push("what a test throws is caught");
  if (blocks.some((block) => wrapsLines(block, path))) found.push("tests were put into something that may not run them");
  if (found.length === 0 && changed > 0) found.push(`${changed} line${changed === 1 ? "" : "s"} of existing tests changed`);
  return found;
}

/** Checks inline tests; the rest of the source file does not count. */
function weakeningsOfInlineTests(file: FileChange, elsewhere: ReadonlySet<string>): string[] {
  const among = file.blocks.filter(({ isAmongTests }) => isAmongTests);
  const [added, removed] = [among.flatMap((block) => block.added), among.flatMap((block) => block.removed)];
  if (file.path.endsWith(".rs") || file.path.endsWith(".zig")) {
    const { found } = lostTests(file, elsewhere);
    if (found.length > 0) return found;
  }
  const answers = file.blocks.filter(({ isAnswer }) => isAnswer).flatMap((block) => block.removed);
  const asserted =
    count(removed, known.ASSERTED) +
    answers.filter((line) => line.trim() !== "" && !known.INLINE_ASSERTION.test(line)).length +
    count(
      file.blocks.filter(({ isAmongTests }) => !isAmongTests).flatMap((block) => block.removed),
      known.INLINE_ASSERTION,
    );
  if (asserted > 0) return [`${asserted} assertion${asserted === 1 ? " was" : "s were"} changed`];
  if (file.blocks.some((block) => count(block.removed, known.EXAMPLE) > 0 && adds(block, known.IDLE_EXAMPLE)))
    return ["an example of the documentation is no longer tested"];
  const conditions = (lines: readonly string[]) => lines.filter((line) => /#!?\[cfg\(/.test(line)).join("\n");
  if (conditions(removed) !== "" && conditions(added) !== conditions(removed)) return ["when the tests are built was changed"];
  if (among.some((block) => block.removed.length === 0 && wrapsLines(block, file.path)))
    return ["tests were put into something that may not run them"];
  if (adds({ added, removed }, known.REPLACED)) return ["what tests are written with was replaced"];
  if (endsEarly(among, true)) return ["a test ends early"];
  const changed = changedLines({ added, removed }, countEach(file.added));
  return changed > 0 ? [`${changed} line${changed === 1 ? "" : "s"} of existing tests changed`] : [];
}

/** Counts removed or changed lines of existing tests. Lines moved to another test do not count. */
function changedLines({ added, removed }: Pick<FileChange, "added" | "removed">, elsewhere: ReadonlyMap<string, number>): number {
  const unmatched = new Map(elsewhere);
  const imports = count(removed, known.IMPORTS) - count(added, known.IMPORTS);
  const gone = removed.filter((line) => {
    if (known.INSIGNIFICANT.test(line) || known.IMPORTS.test(line)) return false;
    const left = unmatched.get(line) ?? 0;
    unmatched.set(line, left - 1);
    return left <= 0;
  });
  return gone.length + Math.max(0, imports);
}

/** Whether an added line ends an existing test early. Only in a file of tests may any returned value do so. */
function endsEarly(blocks: readonly Block[], hasOnlyTests: boolean): boolean {
  const isEnd = (line: string, { removed }: Block) =>
    known.ENDS_EARLY.test(line) || (hasOnlyTests && removed.length === 0 && known.RETURNS.test(line));
  const all = (side: "added" | "removed") => blocks.flatMap((block) => block[side].filter((line) => isEnd(line, block))).length;
  if (all("added") <= all("removed")) return false;
  return blocks.some((block) => block.added.some((line, index) => isEnd(line, block) && !isInNewCode(block, index)));
}

/** Whether existing lines got a `rescue` without a block of its own, as in Ruby and Elixir. */
const rescues = ({ added, removed }: Block): boolean =>
  removed.length === 0 && known.RESCUES.test(added.find((line) => !known.INSIGNIFICANT.test(line)) ?? "");

/** Tests that were removed, skipped, or excluded because only others run. */
function lostTests({ added, removed, blocks }: FileChange, elsewhere: ReadonlySet<string>): { found: string[]; gone: string[] } {
  const found: string[] = [];
  const here = new Set(added.flatMap(namesIn));
  const gone = [...new Set(removed.flatMap(namesIn))].filter((name) => !here.has(name) && !elsewhere.has(name));
  const unnamed = count(removed, known.DECLARED.at(-1)!) - count(added, known.DECLARED.at(-1)!);
  if (gone.length > 0) found.push(`removed: ${gone.slice(0, 5).map(quote).join(", ")}${gone.length > 5 ? " and more" : ""}`);
  else if (unnamed > 0) found.push(`${unnamed} fewer test${unnamed === 1 ? "" : "s"}`);
  const isSkipped = (line: string) =>
    [known.SKIPPED, known.SKIPPED_ELSEWHERE, known.SKIPPED_BY_CALL].some((pattern) => pattern.test(line));
  const skipped = added.filter(isSkipped).length - removed.filter(isSkipped).length;
  if (skipped > 0) found.push(`${skipped} test${skipped === 1 ? " is" : "s are"} skipped`);
  else if (blocks.some(addsCondition)) found.push("tests got a new condition");
  if (count(added, known.REPEATED) > count(removed, known.REPEATED)) found.push("tests are repeated until they pass");
  if (count(added, known.ONLY) > count(removed, known.ONLY)) found.push("only some of its tests are run");
  return { found, gone };
}

/** Whether an added condition is not followed by a new test, and so applies to an existing one. */
function addsCondition({ added }: { added: readonly string[] }): boolean {
  const at = added.findLastIndex((line) => known.CONDITION.test(line));
  return (
    at !== -1 && !added.slice(at + 1).some((line) => /[({]\s{0,5}(?:\)?.{0,200}\{)?\s{0,5}$|\bdo\s{0,5}$|:\s{0,5}$/.test(line))
  );
}

/** A new test command weakens nothing, but a new setting may, and so does one that stands in front of another. */
function changesRuns({ path, from = path, isNew, added, removed }: FileChange): boolean {
  const doesNothing = (line: string, index: number) =>
    known.TEST_COMMAND.test(line) && (known.NO_OP_VALUE.test(line) || known.NO_OP.test(added[index + 1] ?? ""));
  return (
    removed.some((line) => known.RUNS_TESTS.test(line)) ||
    adds({ added, removed }, known.SWALLOWED) ||
    (removed.length > 0 && adds({ added, removed }, known.NO_OP)) ||
    added.some(doesNothing) ||
    (isNew && known.READ_FIRST.test(path) && added.some((line) => known.TEST_COMMAND.test(line))) ||
    [...added, ...removed].some(
      (line) => known.SELECTS_TESTS.test(line) || (known.SHARED_SETTINGS.test(from) && known.EXCLUDES.test(line)),
    )
  );
}

const quote = (name: string) => `"${name.slice(0, 80)}"`;
const adds = ({ added, removed }: Pick<FileChange, "added" | "removed">, pattern: RegExp) =>
  count(added, pattern) > count(removed, pattern);
const count = (lines: readonly string[], pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;

function countEach(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

function namesIn(line: string): string[] {
  for (const pattern of known.DECLARED.slice(0, -1)) {
    const match = pattern.exec(line);
    const name = match?.[1];
    if (name !== undefined) return [name];
  }
  return [];
}
