import { createNames, type Format } from "./report.ts";

/** `  1) test greets the world (GreetTest)` */
const FAILED = /^ {0,3}\d{1,5}\) (\S.*) \(([A-Z][\w.]*)\)$/;
/** One part of `1 doctest, 5 tests, 2 failures, 1 excluded` */
const COUNT = /^\d+ [a-z]+$/;
const NOT_RUN = ["excluded", "skipped", "invalid"];

/** Elixir's own test framework; an umbrella prints one total for each application. */
export function exunit(): Format {
  const failed = createNames();
  let named = 0;
  let totals = 0;
  let passed = 0;
  let complete = true;
  return {
    line(text) {
      const test = FAILED.exec(text);
      if (test) {
        named += 1;
        failed.add(`${test[2]} ${test[1]}`);
      }
      const parts = text.split(", ");
      if (!parts.every((part) => COUNT.test(part))) return;
      const counts = parts.map((part) => part.split(" ") as [string, string]);
      const end = counts.findIndex(([, what]) => /^failures?$/.test(what));
      if (end < 1) return;
      totals += 1;
      const all = counts.slice(0, end).reduce((sum, [count]) => sum + Number(count), 0);
      const notRun = counts.filter(([, what]) => NOT_RUN.includes(what)).reduce((sum, [count]) => sum + Number(count), 0);
      const failures = Number(counts[end]![0]);
      // What a module's setup brings down is counted, but not named.
      if (failures !== named) complete = false;
      passed += Math.max(0, all - failures - notRun);
      named = 0;
    },
    report() {
      if (totals === 0) return undefined;
      return { runner: "ExUnit", failed: failed.list(), passed, complete: complete && named === 0 && failed.isWhole() };
    },
  };
}
