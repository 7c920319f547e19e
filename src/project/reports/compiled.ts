import { createNames, type Format } from "./report.ts";

/** What a test printed without an end of line precedes its verdict. */
const GO_TEST = /--- (FAIL|PASS): (\S+) \([\d.]+s\)$/;
const GO_PACKAGE = /^(FAIL|ok {2})\t(\S+)(?:[\t ](.*))?$/;

/**
 * `go test`, with or without `-v`. Tests are named before their package, with a line `FAIL` in between if the package's tests ran
 * to their end.
 */
export function goTest(): Format {
  const failed = createNames();
  let pending: string[] = [];
  let crashed = false;
  let hasEnded = false;
  let packages = 0;
  /** A package failed with no test that was seen to fail. */
  let isUnnamed = false;
  /** Passing tests are named only with `-v`. */
  let passed: number | undefined;
  return {
    line(text) {
      const test = text.includes("--- ") ? GO_TEST.exec(text) : null;
      if (test?.[1] === "FAIL") pending.push(test[2]!);
      else if (test) passed = (passed ?? 0) + 1;
      else if (text.startsWith("=== RUN ")) passed ??= 0;
      else if (text === "FAIL") hasEnded = true;
      else if (text.startsWith("panic: ") || text.startsWith("fatal error: ") || text.startsWith("signal: ")) crashed = true;
      const end = GO_PACKAGE.exec(text);
      if (!end) return;
      const [, verdict, name, more = ""] = end;
      packages += 1;
      if (verdict === "FAIL") {
        for (const one of pending) failed.add(`${name} ${one}`);
        const built = /^\[[^\]]*\]/.exec(more)?.[0];
        if (built) failed.add(`${name} ${built}`);
        else if (crashed || !hasEnded) failed.add(`${name} (crashed)`);
        else if (pending.length === 0) isUnnamed = true;
      }
      pending = [];
      crashed = false;
      hasEnded = false;
    },
    report() {
      if (packages === 0) return undefined;
      return {
        runner: "go test",
        failed: failed.list(),
        passed,
        complete: pending.length === 0 && !isUnnamed && failed.isWhole(),
      };
    },
  };
}

/** `Running unittests src/lib.rs (target/debug/deps/words-5827de9e5829cfc4)`: each crate of a workspace has a file of that name. */
const CARGO_TARGET = /^ +(?:Running (?:unittests )?(\S+)(?: \((?:.*[/\\])?([\w-]+)-[\da-f]{16}(?:\.exe)?\))?|Doc-tests (\S+))/;
const CARGO_TOTAL = /^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed;/;
const CARGO_LISTED = /^ {4}(\S.*)$/;

/** Rust's own test harness; every target ends with a list of its failures. */
export function cargoTest(): Format {
  const failed = createNames();
  let target = "";
  let isList = false;
  let listed: string[] = [];
  let running = 0;
  let passed = 0;
  let complete = true;
  let targets = 0;
  let hasNoTarget = false;
  return {
    line(text) {
      const begun = CARGO_TARGET.exec(text);
      if (begun) target = begun[3] === undefined ? [begun[2], begun[1]].filter(Boolean).join(":") : `doc-tests ${begun[3]}`;
      if (/^running \d+ tests?$/.test(text)) running += 1;
      if (text === "failures:") {
        isList = true;
        listed = [];
        return;
      }
      const entry = isList ? CARGO_LISTED.exec(text) : null;
      // Line numbers change with the code, and a documented example is named by its line.
      if (entry) listed.push(entry[1]!.replace(/ \(line \d+\)$/, ""));
      else isList = false;
      const total = CARGO_TOTAL.exec(text);
      if (!total) return;
      targets += 1;
      passed += Number(total[1]);
      if (Number(total[2]) !== (Number(total[2]) === 0 ? 0 : listed.length)) complete = false;
      else if (Number(total[2]) > 0) for (const name of listed) failed.add(`${target} ${name}`);
      // Without it, tests of two crates may have one name.
      if (target === "" && listed.length > 0) hasNoTarget = true;
      listed = [];
      target = "";
    },
    report() {
      if (running === 0) return undefined;
      return {
        runner: "cargo test",
        failed: failed.list(),
        passed,
        complete: complete && running === targets && !(hasNoTarget && targets > 1) && failed.isWhole(),
      };
    },
  };
}

const CTEST_TOTAL = /^\d+% tests passed, (\d+) tests? failed out of (\d+)$/;
const CTEST_LISTED = /^\s+\d+ - (.+)$/;

export function ctest(): Format {
  const failed = createNames();
  let isList = false;
  let hasEnded = false;
  const totals = { failed: 0, passed: 0 };
  return {
    line(text) {
      const total = CTEST_TOTAL.exec(text);
      if (total) {
        hasEnded = true;
        totals.failed += Number(total[1]);
        totals.passed += Number(total[2]) - Number(total[1]);
      }
      if (text === "The following tests FAILED:") isList = true;
      else {
        const entry = isList ? CTEST_LISTED.exec(text) : null;
        if (entry) failed.add(entry[1]!.slice(0, Math.max(0, entry[1]!.lastIndexOf(" ("))) || entry[1]!);
        else isList = false;
      }
    },
    report() {
      if (!hasEnded) return undefined;
      const complete = failed.total() === totals.failed && failed.isWhole();
      return { runner: "CTest", failed: failed.list(), passed: totals.passed, complete };
    },
  };
}
