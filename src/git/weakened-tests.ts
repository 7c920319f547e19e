import { UserError } from "../lib/errors.ts";
import { changedFiles, type FileChange } from "./changed-lines.ts";
import type { Git } from "./command.ts";
import * as known from "./test-patterns.ts";
import { isInNewCode, wrapsLines } from "./wrapped-lines.ts";

/** What a change takes away from what tests and CI would notice. */
export interface Weakening {
  path: string;
  /** In words, for a person. */
  what: string;
}

/**
 * Finds what a change weakens, by looking at a unified difference (git's, with renames). It is a reading of lines, not of
 * programs: a person is told of what it finds, and it does not find everything. What is changed in a test that was there is
 * found whatever it is; of what is added, only what is known to end, skip, surround or replace what was there.
 */
export function findWeakenedTests(diff: string): Weakening[] {
  const files = changedFiles(diff);
  const tests = files.filter(isTest);
  const there: Elsewhere = {
    byName: namesAddedIn(files.filter(({ path }) => known.NAMED_AS_TEST.test(path))),
    all: namesAddedIn(tests),
    lines: countEach(tests.flatMap(({ added }) => added)),
  };
  return files.flatMap((file) => weakeningsOf(file, there).map((what) => ({ path: file.path, what })));
}

/** What other files of tests were given. */
interface Elsewhere {
  byName: ReadonlySet<string>;
  all: ReadonlySet<string>;
  lines: ReadonlyMap<string, number>;
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

const isTestPath = (path: string): boolean => {
  if (known.PROSE.test(path)) return false;
  if (known.NAMED_AS_TEST.test(path) || known.DATA_FOLDER.test(path)) return true;
  return known.CODE.test(path) && (known.TEST_FOLDER.test(path) || known.TEST_FOLDER_IN_WORDS.test(path));
};
const isTest = ({ path, from }: FileChange) => isTestPath(path) || (from !== undefined && isTestPath(from));
const namesAddedIn = (files: readonly FileChange[]) => new Set(files.flatMap(({ added }) => added.flatMap(namesIn)));

function weakeningsOf(file: FileChange, there: Elsewhere): string[] {
  const { path, from = path, isNew, isDeleted, isUnreadable, added, removed } = file;
  if (known.CI.test(path) || known.CI.test(from)) return [`a file of the CI was ${isDeleted ? "deleted" : "changed"}`];
  if (known.RUNNER.test(path) || known.RUNNER.test(from))
    return [`the settings of a test runner were ${isDeleted ? "deleted" : "changed"}`];
  if (known.RECORDED.test(from))
    return removed.length > 0 || (isUnreadable && !isNew) ? ["recorded answers of tests were changed"] : [];
  if (known.RECIPES.test(from) && (isUnreadable || changesRuns(from, added, removed))) return ["what runs the tests was changed"];
  if (!isTest(file)) return known.BESIDE.test(from) && !isUnreadable ? weakeningsBeside(file, there.all) : [];
  if (isUnreadable)
    return !isNew && known.CODE.test(from) ? [`a file with tests was ${isDeleted ? "deleted" : "made unreadable"}`] : [];
  return weakeningsOfTests(file, there);
}

function weakeningsOfTests(file: FileChange, there: Elsewhere): string[] {
  const { path, from = path, isNew, isDeleted, added, removed, blocks } = file;
  const { found, gone } = lossesOf(file, known.NAMED_AS_TEST.test(from) ? there.byName : there.all);
  const changed = changedLines(file, there.lines);
  if (isDeleted)
    return gone.length > 0 || count(removed, known.ASSERTED) > 0 || changed > 0 ? ["a file with tests was deleted"] : [];
  if (known.NAMED_AS_TEST.test(from) && !known.NAMED_AS_TEST.test(path))
    found.push(`it was ${from}, which a test runner knows by its name`);
  else if (isTestPath(from) && !isTestPath(path)) found.push(`it was ${from}, in a folder for tests`);
  if (count(added, known.REPLACED) > count(removed, known.REPLACED)) found.push("what tests are written with was replaced");
  if (isNew || gone.length > 0) return found;
  const fewer = count(removed, known.ASSERTED) - count(added, known.ASSERTED);
  const loosened = count(removed, known.ASSERTED);
  if (fewer > 0) found.push(`${fewer} fewer assertion${fewer === 1 ? "" : "s"}`);
  else if (loosened > 0) found.push(`${loosened} assertion${loosened === 1 ? " was" : "s were"} changed`);
  else if (count(removed, known.VALUE) > 0) found.push("an expected value was changed");
  if (endsEarly(file)) found.push("a test ends early");
  if (blocks.some((block) => wrapsLines(block, path))) found.push("tests were put into something that may not run them");
  if (found.length === 0 && changed > 0) found.push(`${changed} line${changed === 1 ? "" : "s"} of existing tests changed`);
  return found;
}

/** Tests that stand in a file of code: only there they count. */
function weakeningsBeside(file: FileChange, elsewhere: ReadonlySet<string>): string[] {
  const among = file.blocks.filter(({ isAmongTests }) => isAmongTests);
  const [added, removed] = [among.flatMap((block) => block.added), among.flatMap((block) => block.removed)];
  if (file.path.endsWith(".rs") || file.path.endsWith(".zig")) {
    const { found } = lossesOf(file, elsewhere);
    if (found.length > 0) return found;
  }
  const asserted =
    count(removed, known.ASSERTED) +
    count(
      file.blocks.filter(({ isAmongTests }) => !isAmongTests).flatMap((block) => block.removed),
      known.ASSERTED_BESIDE,
    );
  if (asserted > 0) return [`${asserted} assertion${asserted === 1 ? " was" : "s were"} changed`];
  const conditions = (lines: readonly string[]) => lines.filter((line) => /#!?\[cfg\(/.test(line)).join("\n");
  if (conditions(removed) !== "" && conditions(added) !== conditions(removed)) return ["when the tests are built was changed"];
  if (among.some((block) => block.removed.length === 0 && wrapsLines(block, file.path)))
    return ["tests were put into something that may not run them"];
  return [];
}

/** How many lines of a test that was there are no more, or are not as they were. What was moved to another test counts as there. */
function changedLines({ added, removed }: FileChange, elsewhere: ReadonlyMap<string, number>): number {
  const there = new Map(elsewhere);
  const imports = count(removed, known.IMPORTS) - count(added, known.IMPORTS);
  const gone = removed.filter((line) => {
    if (known.INSIGNIFICANT.test(line) || known.IMPORTS.test(line)) return false;
    const left = there.get(line) ?? 0;
    there.set(line, left - 1);
    return left <= 0;
  });
  return gone.length + Math.max(0, imports);
}

/** Something that was added among the lines of a test ends it. */
function endsEarly({ added, removed, blocks }: FileChange): boolean {
  if (count(added, known.ENDS_EARLY) <= count(removed, known.ENDS_EARLY)) return false;
  return blocks.some((block) => block.added.some((line, index) => known.ENDS_EARLY.test(line) && !isInNewCode(block, index)));
}

/** Tests that are gone, skipped, or left out because only others are run. */
function lossesOf({ added, removed, blocks }: FileChange, elsewhere: ReadonlySet<string>): { found: string[]; gone: string[] } {
  const found: string[] = [];
  const here = new Set(added.flatMap(namesIn));
  const gone = [...new Set(removed.flatMap(namesIn))].filter((name) => !here.has(name) && !elsewhere.has(name));
  const unnamed = count(removed, known.DECLARED.at(-1)!) - count(added, known.DECLARED.at(-1)!);
  if (gone.length > 0) found.push(`removed: ${gone.slice(0, 5).map(quote).join(", ")}${gone.length > 5 ? " and more" : ""}`);
  else if (unnamed > 0) found.push(`${unnamed} fewer test${unnamed === 1 ? "" : "s"}`);
  const isSkipped = (line: string) => known.SKIPPED.test(line) || known.SKIPPED_ELSEWHERE.test(line);
  const skipped = added.filter(isSkipped).length - removed.filter(isSkipped).length;
  if (skipped > 0) found.push(`${skipped} test${skipped === 1 ? " is" : "s are"} skipped`);
  else if (blocks.some(putsCondition)) found.push("tests got a new condition");
  if (count(added, known.REPEATED) > count(removed, known.REPEATED)) found.push("tests are repeated until they pass");
  if (count(added, known.ONLY) > count(removed, known.ONLY)) found.push("only some of its tests are run");
  return { found, gone };
}

/** A condition that no new test follows stands before one that was there. */
function putsCondition({ added }: { added: readonly string[] }): boolean {
  const at = added.findLastIndex((line) => known.CONDITION.test(line));
  return (
    at !== -1 && !added.slice(at + 1).some((line) => /[({]\s{0,5}(?:\)?.{0,200}\{)?\s{0,5}$|\bdo\s{0,5}$|:\s{0,5}$/.test(line))
  );
}

/** A new command for tests takes nothing away; a new setting may. */
const changesRuns = (path: string, added: readonly string[], removed: readonly string[]) =>
  removed.some((line) => known.RUNS_TESTS.test(line)) ||
  count(added, known.SWALLOWED) > count(removed, known.SWALLOWED) ||
  (removed.length > 0 && count(added, known.DOES_NOTHING) > count(removed, known.DOES_NOTHING)) ||
  [...added, ...removed].some(
    (line) => known.CHOOSES_TESTS.test(line) || (known.TELLS_RUNNER.test(path) && known.LEAVES_OUT.test(line)),
  );

const quote = (name: string) => `"${name.slice(0, 80)}"`;
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
