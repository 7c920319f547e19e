import { countOf, createNames, type Format, MAX_NAMES } from "./report.ts";
import { createNameCounts } from "./same-name.ts";

const SPEC_POINT = /^( *)([✔✖﹣▶]) (.*)$/;
const SPEC_TOTAL = /^ℹ (pass|fail|cancelled) (\d+)$/;
/** The line above each entry of the final list. */
const SPEC_PLACE = /^test at (.+?)(?::\d+){1,2}$/;

/** node:test's output for people, which newer versions also print without a terminal. */
export function nodeSpec(): Format {
  const failed: string[] = [];
  const counts = createNameCounts();
  const places: string[] = [];
  let path: { indent: number; name: string }[] = [];
  const totals = new Map<string, number>();
  let listing = false;
  return {
    line(text) {
      if (text === "✖ failing tests:") listing = true;
      const place = listing ? SPEC_PLACE.exec(text) : null;
      if (place && places.length <= MAX_NAMES) places.push(place[1]!);
      const total = text.startsWith("ℹ") ? SPEC_TOTAL.exec(text) : null;
      if (total) totals.set(total[1]!, (totals.get(total[1]!) ?? 0) + Number(total[2]));
      const point = listing ? null : SPEC_POINT.exec(text);
      if (!point) return;
      const [, { length: indent } = "", mark, rest = ""] = point;
      const name = withoutDuration(rest.split(" # ", 1)[0]!);
      const open = path.find((each) => each.indent === indent);
      path = path.filter((each) => each.indent < indent);
      // A suite is named when it begins, and marked when it ends; only its tests count.
      if (mark === "▶") path.push({ indent, name });
      else if (open?.name !== name) {
        const full = [...path.map((each) => each.name), name].join(" > ");
        counts.add(full);
        if (mark === "✖" && failed.length <= MAX_NAMES) failed.push(full);
      }
    },
    report() {
      const fail = totals.get("fail");
      if (fail === undefined) return undefined;
      const expected = fail + (totals.get("cancelled") ?? 0);
      const names = createNames();
      // The final list has the same order.
      const isListed = places.length === failed.length;
      for (const [at, name] of failed.entries()) names.add(counts.nameOf({ name, file: isListed ? places[at] : undefined }));
      const complete = names.total() === expected && names.isWhole();
      return { runner: "node:test", failed: names.list(), passed: totals.get("pass"), complete };
    },
  };
}

/** "adds (0.98ms)" without the duration. */
function withoutDuration(text: string): string {
  const at = text.lastIndexOf(" (");
  return at > 0 && text.endsWith("ms)") ? text.slice(0, at) : text;
}

const VITEST_FAIL = /^ ?FAIL {1,2}(\S.*)$/;
const VITEST_TOTAL = /^ *(Test Files|Tests|Errors) {2}(.*)$/;
const VITEST_HEADING = /^⎯+ ([A-Z][\w ]+) ⎯+$/;
/** What unhandled errors are called in reports, with their first line. */
export const UNHANDLED = "unhandled error: ";

/** vitest, with any reporter that ends with its own summary. */
export function vitest(): Format {
  const tests = new Set<string>();
  const files = new Set<string>();
  const unhandled = createNames();
  const totals = { tests: 0, passed: 0, files: 0, errors: 0 };
  let isUnhandled = false;
  /** The next line says what was not handled. */
  let isNext = false;
  let hasEnded = false;
  return {
    line(text) {
      const heading = text.startsWith("⎯") ? VITEST_HEADING.exec(text)?.[1] : undefined;
      if (heading !== undefined) {
        isNext = isUnhandled;
        isUnhandled ||= heading === "Unhandled Errors";
      } else if (isNext && text !== "") {
        unhandled.add(`${UNHANDLED}${text}`);
        isNext = false;
      }
      const fail = VITEST_FAIL.exec(text);
      const name = fail?.[1]?.split(" [ ", 1)[0];
      if (name !== undefined) (name.includes(" > ") ? tests : files).add(name);
      const total = text.includes("  ") ? VITEST_TOTAL.exec(text) : null;
      if (!total) return;
      const [, what, counts = ""] = total;
      const failed = countOf(counts, "failed");
      if (what === "Errors") totals.errors += countOf(counts, "error");
      else if (what === "Test Files") totals.files += failed;
      else {
        hasEnded = true;
        totals.tests += failed;
        totals.passed += countOf(counts, "passed");
      }
    },
    report() {
      if (!hasEnded) return undefined;
      const names = createNames();
      for (const name of [...tests, ...files]) names.add(name);
      for (const name of unhandled.list()) names.add(name);
      const failedFiles = new Set([...files, ...[...tests].map((name) => name.split(" > ", 1)[0])]);
      const areNamed = tests.size === totals.tests && failedFiles.size >= totals.files && unhandled.total() === totals.errors;
      const complete = areNamed && names.isWhole();
      return { runner: "vitest", failed: names.list(), passed: totals.passed, complete };
    },
  };
}

const JEST_FILE = /^(?:FAIL|PASS) +(\S.*?)(?: \([\d.]+ m?s\))?$/;
const NOT_RUN = "Test suite failed to run";

export function jest(): Format {
  const failed = new Set<string>();
  let file = "";
  let notRun = 0;
  const totals = { failed: 0, passed: 0 };
  let hasEnded = false;
  return {
    line(text) {
      if (text.startsWith("FAIL ") || text.startsWith("PASS ")) file = JEST_FILE.exec(text)?.[1] ?? file;
      if (text.startsWith("  ● ") && file !== "") {
        const title = text.slice(4).trim();
        const name = `${file} › ${title}`;
        if (title === "Console" || failed.has(name)) return;
        failed.add(name);
        if (title === NOT_RUN) notRun += 1;
      }
      if (!(text.startsWith("Tests: ") && text.endsWith(" total"))) return;
      hasEnded = true;
      totals.failed += countOf(text, "failed");
      totals.passed += countOf(text, "passed");
    },
    report() {
      if (!hasEnded) return undefined;
      const names = createNames();
      for (const name of failed) names.add(name);
      const complete = failed.size - notRun === totals.failed && names.isWhole();
      return { runner: "jest", failed: names.list(), passed: totals.passed, complete };
    },
  };
}

const MOCHA_TOTAL = /^ {2}(\d+) (passing|failing)\b/;
const MOCHA_ENTRY = /^ {2}\d+\) (.*)$/;

/** Mocha's epilogue: every failure with its suites, one below the other. */
export function mocha(): Format {
  const failed = createNames();
  const totals = { passing: 0, failing: 0 };
  let isEpilogue = false;
  let hasEnded = false;
  let title: string[] | undefined;

  function close(): void {
    if (title) failed.add(title.join(" > ").replace(/:$/, ""));
    title = undefined;
  }
  return {
    line(text) {
      const total = MOCHA_TOTAL.exec(text);
      if (total) {
        totals[total[2] as "passing" | "failing"] += Number(total[1]);
        isEpilogue = total[2] === "failing";
        hasEnded = true;
      }
      if (title) {
        const indent = text.length - text.trimStart().length;
        if (text.trim() !== "" && indent === 5 + 2 * title.length) title.push(text.trim());
        else close();
      }
      const entry = isEpilogue ? MOCHA_ENTRY.exec(text) : null;
      if (!entry) return;
      close();
      title = [entry[1]!.trim()];
    },
    report() {
      close();
      if (!hasEnded) return undefined;
      const complete = failed.total() === totals.failing && failed.isWhole();
      return { runner: "mocha", failed: failed.list(), passed: totals.passing, complete };
    },
  };
}
