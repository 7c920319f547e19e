import { countOf, createNames, type Format } from "./report.ts";

const PYTEST_TOTAL =
  /^=* ?((?:\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests passed)(?:, )?)+) in [\d.]+s/;

export function pytest(): Format {
  const failed = createNames();
  const totals = { failed: 0, passed: 0, errors: 0 };
  let isSummary = false;
  let hasEnded = false;
  let entries = 0;
  return {
    line(text) {
      if (/^=+ short test summary info =+$/.test(text)) isSummary = true;
      const entry = isSummary ? failingTest(text) : undefined;
      if (entry !== undefined) {
        entries += 1;
        failed.add(entry);
      }
      const total = PYTEST_TOTAL.exec(text);
      if (!total) return;
      hasEnded = true;
      isSummary = false;
      totals.failed += countOf(total[1]!, "failed");
      totals.passed += countOf(total[1]!, "passed");
      totals.errors += countOf(total[1]!, "error");
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = entries === totals.failed + totals.errors && failed.isWhole();
      return { runner: "pytest", failed: failed.list(), passed: totals.passed, complete };
    },
  };
}

/** A line of the summary: `FAILED path::test - message`, `ERROR …`, or a subtest with its parameters in front. */
function failingTest(text: string): string | undefined {
  if (text.startsWith("FAILED ")) return withoutMessage(text.slice("FAILED ".length));
  if (text.startsWith("ERROR ")) return `ERROR ${withoutMessage(text.slice("ERROR ".length))}`;
  if (!text.startsWith("SUBFAIL")) return undefined;
  const ends = [text.indexOf(") "), text.indexOf("] "), text.indexOf(" ")].filter((at) => at >= 0);
  const at =
    text.includes("(") || text.includes("[") ? Math.min(...ends.filter((end) => text[end] !== " "), text.length) + 1 : ends[0]!;
  return `${text.slice(0, at)} ${withoutMessage(text.slice(at + 1))}`;
}

/** `path::test[a - b] - AssertionError` without the message; a parameter may contain the same dash. */
function withoutMessage(entry: string): string {
  const parameter = /^[^[\s]*\[/.test(entry) ? entry.lastIndexOf("] - ") : -1;
  if (parameter >= 0) return entry.slice(0, parameter + 1);
  const dash = entry.indexOf(" - ");
  return dash < 0 ? entry : entry.slice(0, dash);
}

const RULER = /^={50,}$/;
const UNITTEST_TOTAL = /^(?:OK|FAILED)(?: \((.*)\))?$/;

/** Python's own unittest, and what builds on it, such as Django's tests. */
export function unittest(): Format {
  const failed = createNames();
  /** One test may fail in several of its subtests. */
  const tests = new Set<string>();
  const counts = { FAIL: 0, ERROR: 0 };
  const totals = { ran: 0, failures: 0, errors: 0, others: 0 };
  let afterRuler = false;
  let hasRun = false;
  let hasEnded = false;
  return {
    line(text) {
      const entry = afterRuler ? /^(FAIL|ERROR): (.*)$/.exec(text) : null;
      if (entry) {
        counts[entry[1] as "FAIL" | "ERROR"] += 1;
        failed.add(entry[2]!);
        tests.add(/^\S+ \([^)]*\)/.exec(entry[2]!)?.[0] ?? entry[2]!);
      }
      afterRuler = RULER.test(text);
      const ran = /^Ran (\d+) tests? in /.exec(text);
      if (ran) {
        hasRun = true;
        totals.ran += Number(ran[1]);
      }
      const total = hasRun ? UNITTEST_TOTAL.exec(text) : null;
      if (!total) return;
      hasEnded = true;
      hasRun = false;
      const told = total[1] ?? "";
      totals.failures += numberIn(told, /\bfailures=(\d+)/);
      totals.errors += numberIn(told, /\berrors=(\d+)/);
      totals.others += numberIn(told, /\bskipped=(\d+)/) + numberIn(told, /\bexpected failures=(\d+)/);
      // Older versions count these and do not name them.
      if (/unexpected successes=\d/.test(told)) totals.failures += numberIn(told, /unexpected successes=(\d+)/);
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = counts.FAIL === totals.failures && counts.ERROR === totals.errors && failed.isWhole();
      const passed = Math.max(0, totals.ran - tests.size - totals.others);
      return { runner: "unittest", failed: failed.list(), passed, complete };
    },
  };
}

function numberIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? 0);
}
