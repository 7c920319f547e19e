import { createNames, type Format } from "./report.ts";

const SECTION = /^There (?:was|were) \d+ ([\w ]+):$/;
const ENTRY = /^\d{1,5}\) (\S.*)$/;
const GREEN = /^OK \((\d+) tests?, \d+ assertions?\)$/;
const TOTAL = /^Tests: (\d+), Assertions: \d+(?:, .*)?\.$/;

/** PHPUnit's own printer: a numbered list for errors, one for failures, and totals. */
export function phpunit(): Format {
  const failed = createNames();
  const totals = { failed: 0, passed: 0 };
  let isFailures = false;
  let hasEnded = false;
  return {
    line(text) {
      const section = SECTION.exec(text);
      if (section) isFailures = /^(?:error|failure)s?$/.test(section[1]!);
      const entry = isFailures ? ENTRY.exec(text) : null;
      if (entry) failed.add(entry[1]!);
      const green = GREEN.exec(text);
      if (green) totals.passed += Number(green[1]);
      const total = TOTAL.exec(text);
      if (total) {
        const [errors, failures] = [countIn(text, "Errors"), countIn(text, "Failures")];
        totals.failed += errors + failures;
        const others = ["Skipped", "Incomplete", "Risky"].reduce((sum, what) => sum + countIn(text, what), 0);
        totals.passed += Math.max(0, Number(total[1]) - errors - failures - others);
      }
      if (green || total) {
        hasEnded = true;
        isFailures = false;
      }
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = failed.total() === totals.failed && failed.isWhole();
      return { runner: "PHPUnit", failed: failed.list(), passed: totals.passed, complete };
    },
  };
}

/** The number after a word: 3 for "Failures" in "Tests: 7, Failures: 3." */
function countIn(text: string, what: string): number {
  const part = text.split(", ").find((each) => each.startsWith(`${what}: `));
  return Number.parseInt(part?.slice(what.length + 2) ?? "0", 10);
}
