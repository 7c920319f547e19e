import { createHash } from "node:crypto";
import { cargoTest, ctest, goTest } from "./compiled.ts";
import { exunit } from "./exunit.ts";
import { jest, mocha, nodeSpec, vitest } from "./javascript.ts";
import { gradle, surefire } from "./jvm.ts";
import { phpunit } from "./phpunit.ts";
import { pytest, unittest } from "./python.ts";
import type { Format, TestReport } from "./report.ts";
import { tap } from "./tap.ts";
import { withoutVolatile } from "./volatile.ts";

const FORMATS: readonly (() => Format)[] = [
  ...[tap, nodeSpec, vitest, jest, mocha, pytest, unittest, goTest, cargoTest, ctest, exunit, phpunit, surefire, gradle],
];

/** What a check's output says about tests and other problems. */
export interface Reading {
  /** Its end, without the lines that Go prints for tests that pass. */
  tail: string;
  reports: TestReport[];
  /** A short hash of every complaining line, without positions and durations; undefined if there were too many. */
  complaints: string[] | undefined;
  /** The same for complaints of compilers, linters and coverage limits, which test runners do not count. */
  others: string[] | undefined;
  /** Whether it says that tests were left out because others failed. */
  stopped: boolean;
}

/** Longer lines are data, not a runner's words. */
const MAX_LINE = 2_000;
export const MAX_COMPLAINTS = 5_000;
export const MAX_TAIL = 4_000;
/** Go's progress, and frames of Java's own programs, which push what went wrong out of the end that is kept. */
const OF_NO_INTEREST =
  /^\s*(?:=== (?:RUN|PAUSE|CONT|NAME) |--- PASS: |at (?:java\.|jdk\.|sun\.reflect|org\.(?:apache\.maven|codehaus\.plexus|gradle|junit)\.))/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' own sequences begin with one
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

/** Text as it reads without a terminal's colours and movements. */
export const withoutEscapes = (text: string): string => text.replace(ESCAPES, "");

/**
 * Reads a check's output as it comes, so that a long one never blocks anything else. `clean` is applied to each line. Paths in
 * `folder`, which is another one for each worktree, are read as relative to it.
 */
export function createReader(clean = (line: string) => line, folder?: string) {
  const prefix = folder === undefined || folder === "/" ? undefined : `${folder.replace(/\/$/, "")}/`;
  const formats = FORMATS.map((create) => create());
  const complaints = createComplaints(COMPLAINT);
  const others = createComplaints(OTHER_COMPLAINT);
  let stopped = false;
  let rest = "";
  let tail = "";

  function line(raw: string): void {
    const seen = withoutEscapes(raw.slice(0, MAX_LINE)).trimEnd();
    const text = clean(prefix === undefined ? seen : seen.replaceAll(prefix, ""));
    if (text === "") {
      for (const format of formats) format.line("");
      return;
    }
    for (const format of formats) format.line(text);
    if (!OF_NO_INTEREST.test(text)) tail = `${tail}${text}\n`.slice(-MAX_TAIL);
    complaints.add(text);
    others.add(text);
    if (STOPPED.test(text)) stopped = true;
    // Cargo that goes on names every target at the end.
    else if (CARGO_WENT_ON.test(text)) stopped = false;
  }
  return {
    add(chunk: string): void {
      const lines = (rest + chunk).split(/\r?\n/);
      // An unfinished line is kept only as far as anybody reads it.
      rest = lines.pop()!.slice(0, 2 * MAX_LINE);
      for (const each of lines) line(each);
    },
    end(): Reading {
      if (rest !== "") line(rest);
      rest = "";
      const reports = formats.map((format) => format.report()).filter((report) => report !== undefined);
      return { tail, reports, complaints: complaints.list(), others: others.list(), stopped };
    },
  };
}

/** Reads a whole output. */
export function readOutput(output: string): Reading {
  const reader = createReader();
  reader.add(output);
  return reader.end();
}

/** Cargo, nextest, Maven's modules, pytest and Jest, where they leave out tests because others failed. */
const STOPPED =
  /^error: (?:doc)?test failed, to rerun pass |^(?:warning|error): \d+\/\d+ tests (?:were|was) not run due to |^\[INFO\] .{1,200} SKIPPED$|^!+ (?:Interrupted: )?stopping after \d+ failures? !+$|^Test Suites: (?:\d+ [a-z]+, )*\d+ of \d+ total$/;
const CARGO_WENT_ON = /^error: \d+ targets? failed:$/;

/** Also the entries of numbered and marked lists, which name what failed in words of their own. */
const COMPLAINT =
  /fail|error|exception|panic|not ok|[✗✘×✖✕❌●]|cannot|could not|unresolved|undefined|undeclared|assert|traceback|warning|expected|^\s*\d{1,5}\) \S|^rspec \S/i;
const OTHER_COMPLAINT =
  /\berror (?:TS|CS|FS|BC)\d+|^error(?:\[E\d+\])?: (?!test failed|doctest failed|\d+ targets? failed)|^\S+:\d+:(?:\d+:)? (?:fatal )?error:|^\S+\.\w+:\d+:\d+:? (?!warning|note)\S|✖ \d+ problems?\b|^\s+\d+:\d+\s+error\b|does not meet|\bnot met\b|not reached\. Total|below the expected minimum|expected minimum is|[Cc]overage failure|^npm (?:ERR!|error) Missing script/;

function createComplaints(pattern: RegExp) {
  const found: string[] = [];
  let isWhole = true;
  let isContinued = false;
  return {
    add(text: string): void {
      const isComplaint = pattern.test(text);
      // "1) Failure:" is told by its next line.
      const isNext = isContinued;
      isContinued = isComplaint && text.endsWith(":");
      if (!isComplaint && !isNext) return;
      if (found.length >= MAX_COMPLAINTS) isWhole = false;
      else found.push(createHash("sha256").update(withoutVolatileParts(text)).digest("hex").slice(0, 16));
    },
    list: () => (isWhole ? found : undefined),
  };
}

/** A line without what varies between runs: durations, addresses, positions, folders of a run. */
function withoutVolatileParts(text: string): string {
  return withoutVolatile(text)
    .replace(/\b\d{1,9}(?:\.\d{1,9})? ?(?:ms|s|sec|seconds|minutes|min)\b/g, "_")
    .replace(/\b(?:\d{1,4}[ ./-]){2}\d{2,4}[T ,]{1,2}(?=\d\d?:\d\d:)/g, "_ ")
    .replace(/\b\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M\b)?/g, "_")
    .replace(/\b(?:pid|process|PID)[ =:]{1,3}\d{1,9}\b|\[\d{2,9}\](?=[: ])/g, "_")
    .replace(/0x[0-9a-f]+/gi, "_")
    .replace(/:\d+(?::\d+)?\b|\(\d+,\d+\)|\bline \d+|^\s*\d+:\d+/g, "_")
    .replace(/\bworktrees\/[\w-]+/g, "_")
    .replace(/\s+/g, " ")
    .trim();
}
