import { createNames, type Format } from "./report.ts";

const SUREFIRE_TOTAL = /^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?:, Flakes: \d+)?$/;

/** Maven's Surefire and Failsafe: a line for each failing test, and totals for each module. */
export function surefire(): Format {
  const failed = createNames();
  const totals = { failed: 0, passed: 0 };
  let hasEnded = false;
  return {
    line(text) {
      const name = failingTest(text);
      if (name !== undefined) failed.add(name);
      const total = text.includes("Tests run:") ? SUREFIRE_TOTAL.exec(text) : null;
      if (!total) return;
      hasEnded = true;
      const [ran = 0, failures = 0, errors = 0, skipped = 0] = total.slice(1).map(Number);
      totals.failed += failures + errors;
      totals.passed += ran - failures - errors - skipped;
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = failed.total() === totals.failed && failed.isWhole();
      return { runner: "Surefire", failed: failed.list(), passed: totals.passed, complete };
    },
  };
}

/** `[ERROR] x.ATest.sub -- Time elapsed: 0.004 s <<< FAILURE!`, and the format of earlier versions. */
function failingTest(text: string): string | undefined {
  const at = text.indexOf("Time elapsed: ");
  if (at < 0 || !(text.includes("<<< FAILURE!") || text.includes("<<< ERROR!"))) return undefined;
  const name = text.slice(text.startsWith("[ERROR] ") ? "[ERROR] ".length : 0, at).trim();
  return name === "" || name.startsWith("Tests run:") ? undefined : name.endsWith("--") ? name.slice(0, -2).trim() : name;
}

const GRADLE_TOTAL = /^(\d+) tests? completed, (\d+) failed(?:, (\d+) skipped)?$/;

/** Gradle says nothing about passing tests, so a build without failures has no report of its own. */
export function gradle(): Format {
  const failed = createNames();
  const totals = { failed: 0, passed: 0 };
  let hasEnded = false;
  return {
    line(text) {
      if (text.endsWith(" FAILED") && text.includes(" > ") && !text.startsWith("> "))
        failed.add(text.slice(0, -" FAILED".length));
      const total = GRADLE_TOTAL.exec(text);
      if (!total) return;
      hasEnded = true;
      totals.failed += Number(total[2]);
      totals.passed += Number(total[1]) - Number(total[2]) - Number(total[3] ?? 0);
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = failed.total() === totals.failed && failed.isWhole();
      return { runner: "Gradle", failed: failed.list(), passed: totals.passed, complete };
    },
  };
}
