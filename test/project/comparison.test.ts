import { expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { createReader } from "../../src/project/reports/read.ts";
import { runReported } from "../../src/project/reports/run.ts";
import { baselineJudge, judgeAgainst } from "../../src/swarm/checks/judges.ts";
import { recordOf } from "../../src/swarm/checks/run-check.ts";
import type { CheckRecord } from "../../src/swarm/checks/verdicts.ts";
import { temporaryFolder } from "../support/home.ts";

const redactor = createRedactor([]);

/** The record of a check that printed these lines in a worktree. */
function ran(lines: readonly string[], exitCode = 1, folder = "/worktree"): CheckRecord {
  const reader = createReader(undefined, folder);
  const output = `${lines.join("\n")}\n`;
  reader.add(output);
  const end = { exitCode, ending: "exited" as const, output, sha256: output, bytes: output.length, durationMs: 1 };
  const record = recordOf({ name: "test", command: "run the tests", cwd: "." }, { end, reading: reader.end() }, redactor);
  return { ...record, tree: "", at: "" };
}

/** The verdict on a check by its two results before the run and its two results after it. */
function verdictOf(before: readonly CheckRecord[], now: readonly CheckRecord[]) {
  const [first, again = first] = before;
  const baseline = first!.exitCode === 0 ? baselineJudge.once(first!) : baselineJudge.twice(first!, again!);
  const judge = judgeAgainst([baseline], []);
  const once = judge.once(now[0]!);
  return once.verdict === "failed" && now[1] ? judge.twice(now[0]!, now[1]) : once;
}

const pytest = (failed: readonly string[], passed: number) =>
  ran(
    [
      "=========================== short test summary info ============================",
      ...failed.map((name) => `FAILED ${name} - assert 1 == 2`),
      `========================= ${failed.length > 0 ? `${failed.length} failed, ` : ""}${passed} passed in 0.05s =========================`,
    ],
    failed.length > 0 ? 1 : 0,
  );

const DATA = [
  "2026-11-19T14:00:0@.123Z",
  "/tmp/pytest-of-me/pytest-@/words.txt",
  "http://127.0.0.1:4300@/",
  "0c8f5a1e-1111-4222-8333-00000000000@",
  "0x7f3a1b2c40@",
  "9f86d08188@c7d65",
  "179520000@.25",
];

test.each(DATA)("a new failure of a test that is named after its data is not flaky: %s", (data) => {
  const failing = (nth: number) => pytest([`test_a.py::test_greets[${data.replace("@", `${nth}`)}]`], 3);
  const judged = verdictOf([pytest([], 4)], [failing(1), failing(2)]);
  expect(judged).toMatchObject({ verdict: "failed" });
});

test.each(DATA)("a test that is named after its data and failed before is not blamed: %s", (data) => {
  const failing = (nth: number, more: string[] = []) =>
    pytest([`test_a.py::test_greets[${data.replace("@", `${nth}`)}]`, ...more], 3 - more.length);
  expect(verdictOf([failing(1), failing(2)], [failing(3), failing(4)])).toMatchObject({ verdict: "as before" });
  const worse = verdictOf(
    [failing(1), failing(2)],
    [failing(3, ["test_a.py::test_other"]), failing(4, ["test_a.py::test_other"])],
  );
  expect(worse).toMatchObject({ verdict: "failed", why: "new: test_a.py::test_other" });
});

test("a number in a name that did not change between two runs tells tests apart", () => {
  const failing = (...names: string[]) => pytest(names, 3);
  const before = [failing("test_a.py::test_issue[10101]"), failing("test_a.py::test_issue[10101]")];
  const now = failing("test_a.py::test_issue[10102]");
  expect(verdictOf(before, [now, now])).toMatchObject({ verdict: "failed", why: "new: test_a.py::test_issue[10102]" });
});

test.each<[string, CheckRecord]>([
  ["prints nothing", ran([], 0)],
  ["ends in the middle of its tests", ran(["TAP version 13", "ok 1 - adds"], 0)],
  ["finds no tests", ran(["", "Ran 0 tests in 0.000s", "", "OK"], 0)],
])("a check that passed tests before the run, and now %s with exit code 0, has not passed", (_, now) => {
  const unittest = ran(["Ran 4 tests in 0.001s", "", "OK"], 0);
  const tap = ran(["TAP version 13", "ok 1 - adds", "ok 2 - takes", "1..2"], 0);
  for (const before of [unittest, tap])
    expect(verdictOf([before], [now, now])).toMatchObject({
      verdict: "failed",
      why: "it ran tests before the run, and now ends without a result of any",
    });
});

test("a check that tells nothing because nothing changed, or that never told anything, has passed", () => {
  const unittest = ran(["Ran 4 tests in 0.001s", "", "OK"], 0);
  expect(verdictOf([unittest], [ran(["make: Nothing to be done for 'test'."], 0)])).toMatchObject({ verdict: "passed" });
  expect(verdictOf([ran(["fine"], 0)], [ran([], 0)])).toMatchObject({ verdict: "passed" });
  const junit = ran(["5 tests completed, 1 failed", "ATest > adds FAILED"]);
  expect(verdictOf([junit], [ran(["BUILD SUCCESSFUL in 1s"], 0)])).toMatchObject({ verdict: "passed" });
});

test("a check that passes with fewer tests than before the run says so", () => {
  expect(verdictOf([pytest([], 4)], [pytest([], 1)])).toMatchObject({
    verdict: "passed",
    why: "3 fewer tests passed than before the run",
  });
  expect(verdictOf([pytest([], 4)], [pytest([], 5)]).why).toBeUndefined();
});

test("tests that one runner gains make up for none that another runner lost", () => {
  const both = (pass: number, pytests: number) =>
    ran([
      ...["TAP version 13", ...Array.from({ length: pass }, (_, at) => `ok ${at + 1} - t${at}`), `1..${pass}`],
      `=========== short test summary info ============`,
      "FAILED test_a.py::test_x - assert 0",
      `===== 1 failed, ${pytests} passed in 0.05s =====`,
    ]);
  const now = both(5, 5);
  expect(verdictOf([both(9, 1)], [now, now])).toMatchObject({
    verdict: "failed",
    why: "new: 4 tests that passed before did not pass now",
  });
});

const crate = (name: string, verdict: string) => [
  `     Running unittests src/lib.rs (target/debug/deps/${name}-${verdict === "ok" ? "5827de9e5829cfc4" : "2a68f81c71aa77ee"})`,
  ...["", "running 2 tests", `test works ... ${verdict}`, "test other ... ok", ""],
  ...(verdict === "ok" ? [] : ["failures:", "", "---- works stdout ----", "boom", "", "failures:", "    works", ""]),
  `test result: ${verdict}. ${verdict === "ok" ? 2 : 1} passed; ${verdict === "ok" ? 0 : 1} failed; 0 ignored`,
];
test("tests of two crates with one name are two tests", () => {
  const before = ran([...crate("a_c", "FAILED"), ...crate("b_c", "ok")]);
  expect(verdictOf([before], [before])).toMatchObject({ verdict: "as before" });
  const now = ran([...crate("a_c", "ok"), ...crate("b_c", "FAILED")]);
  expect(verdictOf([before], [now, now])).toMatchObject({ verdict: "failed", why: "new: b_c:src/lib.rs works" });
});

test.each<[string, string[]]>([
  ["Cargo behind a script", [...crate("a_c", "FAILED"), "error: test failed, to rerun pass `--lib`"]],
  [
    "modules of Maven",
    [
      "[ERROR] x.ATest.a -- Time elapsed: 0.004 s <<< FAILURE!",
      "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0",
      "[INFO] core ............................................... FAILURE [  1.2 s]",
      "[INFO] app ................................................ SKIPPED",
    ],
  ],
  [
    "pytest set up to stop",
    [
      "===== short test summary info =====",
      "FAILED test_a.py::test_x - assert 0",
      "!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!",
      "===== 1 failed, 3 passed in 0.05s =====",
    ],
  ],
])("tests that were left out because others fail as before give no verdict: %s", (_, lines) => {
  expect(verdictOf([ran(lines)], [ran(lines)])).toMatchObject({
    verdict: "could not run",
    why: "it failed before the run as it does now, so nothing is known of the tests after the first failure",
  });
});

test("Cargo that goes on after the first failing target has left out none", () => {
  const lines = [
    ...[...crate("a_c", "FAILED"), "error: test failed, to rerun pass `-p a_c --lib`", ...crate("b_c", "ok")],
    ...["error: 1 target failed:", "    `-p a_c --lib`"],
  ];
  expect(verdictOf([ran(lines)], [ran(lines)])).toMatchObject({ verdict: "as before" });
});

test.each<[string, (nth: number) => string]>([
  ["a time of day", (nth) => `19 11 2026 18:47:2${nth}.70${nth}:ERROR [launcher]: No binary for ChromeHeadless browser.`],
  ["a local date", (nth) => `11/19/2026, 6:47:2${nth} PM - error: no browser`],
  ["a temporary folder", (nth) => `ERROR: cannot start in /tmp/karma-3894675${nth}`],
  ["a process", (nth) => `browser[1234${nth}]: error: no display`],
  ["a port", (nth) => `error: no answer at 127.0.0.1:4300${nth}`],
])("a check that fails as before besides its tests is not blamed for %s", (_, line) => {
  const tap = ["TAP version 13", "ok 1 - adds", "1..1"];
  const failing = (nth: number, more: string[] = []) => ran([...tap, line(nth), ...more]);
  expect(verdictOf([failing(1), failing(2)], [failing(3), failing(4)])).toMatchObject({ verdict: "as before" });
  const worse = (nth: number) => failing(nth, ["error: something else"]);
  expect(verdictOf([failing(1), failing(2)], [worse(3), worse(4)])).toMatchObject({ verdict: "failed" });
});

/** node:test over two files that each have a test "works", in a worktree. */
const nodeTap = (bad: string, folder: string) => [
  "TAP version 13",
  ...["a", "b"].flatMap((file, at) => [
    ...["# Subtest: works", `${file === bad ? "not ok" : "ok"} ${2 * at + 1} - works`, "  ---", "  duration_ms: 1.5"],
    ...(file === bad ? [`  location: '${folder}/${file}.test.js:2:1'`] : []),
    ...["  ...", `# Subtest: ${file}`, `ok ${2 * at + 2} - ${file}`, "  ---", "  duration_ms: 0.5", "  ..."],
  ]),
  ...["1..4", "# tests 4", "# pass 3", "# fail 1"],
];
const nodeSpec = (bad: string) => [
  ...["a", "b"].flatMap((file) => [`${file === bad ? "✖" : "✔"} works (2.8ms)`, `✔ ${file} (0.2ms)`]),
  ...["ℹ tests 4", "ℹ suites 0", "ℹ pass 3", "ℹ fail 1", "ℹ cancelled 0", "", "✖ failing tests:", ""],
  ...[`test at ${bad}.test.js:2:1`, "✖ works (2.8ms)", "  Error: boom"],
];
test.each<[string, (bad: string, folder: string) => string[]]>([
  ["node:test", nodeTap],
  ["node:test for people", nodeSpec],
])("tests of two files with one name are two tests: %s", (_, lines) => {
  const inWorktree = (bad: string, folder: string) => ran(lines(bad, folder), 1, folder);
  const before = inWorktree("a", "/one");
  expect(verdictOf([before], [inWorktree("a", "/two")])).toMatchObject({ verdict: "as before" });
  const now = inWorktree("b", "/two");
  expect(verdictOf([before], [now, now])).toMatchObject({ verdict: "failed", why: "new: works (b.test.js)" });
});

const vitest = (message: string) =>
  ran([
    "⎯⎯⎯⎯⎯⎯ Unhandled Errors ⎯⎯⎯⎯⎯⎯",
    ...["", "Vitest caught 1 unhandled error during the test run.", "", "⎯⎯⎯⎯ Unhandled Rejection ⎯⎯⎯⎯⎯"],
    ...[message, " ❯ a.test.js:2:37", "⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯", "", " Test Files  1 passed (1)"],
    ...["      Tests  3 passed (3)", "     Errors  1 error"],
  ]);
test("an unhandled error in place of another is a new failure", () => {
  const before = vitest("Error: one");
  expect(verdictOf([before], [before])).toMatchObject({ verdict: "as before" });
  const now = vitest("TypeError: two");
  expect(verdictOf([before], [now, now])).toMatchObject({ verdict: "failed", why: "new: unhandled error: TypeError: two" });
});

const go = (...lines: string[]) => ran([...lines, "FAIL", "FAIL\texample.com/a\t0.01s", "FAIL"]);
test("a failing Go test is found behind what it printed, and a package that fails without one is not as before", () => {
  const before = go("--- PASS: TestB (0.00s)", "--- FAIL: TestA (0.00s)");
  const behind = go("--- FAIL: TestA (0.00s)", "half a line--- FAIL: TestB (0.00s)", "--- PASS: TestNew (0.00s)");
  expect(verdictOf([before], [behind, behind])).toMatchObject({ verdict: "failed", why: "new: example.com/a TestB" });
  const unnamed = go("--- PASS: TestA (0.00s)", "--- PASS: TestB (0.00s)");
  expect(verdictOf([before], [unnamed, unnamed])).toMatchObject({ verdict: "failed" });
});

test("a check that breaks off behind a test that failed before is not as before", () => {
  const tap = ["TAP version 13", "ok 1 - adds", "not ok 2 - takes"];
  const before = ran([...tap, "ok 3 - ends", "1..3"]);
  expect(verdictOf([before], [ran(tap), ran(tap)])).toMatchObject({ verdict: "failed" });
  expect(verdictOf([ran(tap)], [ran(tap)])).toMatchObject({ verdict: "could not run" });
});

const phpunit = (...names: string[]) =>
  ran([
    ...["PHPUnit 9.6.7 by Sebastian Bergmann and contributors.", "", `There were ${names.length} failures:`, ""],
    ...names.flatMap((name, at) => [
      `${at + 1}) ${name}`,
      "Failed asserting that 2 is identical to 1.",
      "",
      "GreetTest.php:4",
      "",
    ]),
    ...["There was 1 risky test:", "", "1) GreetTest::testRisky", "", "FAILURES!"],
    `Tests: 5, Assertions: 4, Failures: ${names.length}, Risky: 1.`,
  ]);
test("PHPUnit's failures are compared by name", () => {
  const before = phpunit("GreetTest::testA", "GreetTest::testB with data set #0 ('x')");
  expect(before.tests).toEqual([
    {
      runner: "PHPUnit",
      failed: ["GreetTest::testA", "GreetTest::testB with data set #0 ('x')"],
      passed: 2,
      complete: true,
    },
  ]);
  expect(verdictOf([before], [phpunit("GreetTest::testA")])).toMatchObject({ verdict: "as before" });
  const now = phpunit("GreetTest::testA", "GreetTest::testC");
  expect(verdictOf([before], [now, now])).toMatchObject({ verdict: "failed", why: "new: GreetTest::testC" });
});

test("Surefire's totals are read where it ran failing tests again", () => {
  const maven = (failing: string) => [
    `[ERROR] x.ATest.${failing} -- Time elapsed: 0.004 s <<< FAILURE!`,
    "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Flakes: 1",
  ];
  expect(ran(maven("a")).tests).toEqual([{ runner: "Surefire", failed: ["x.ATest.a"], passed: 3, complete: true }]);
});

test.each<[string, string[], string[]]>([
  [
    "minitest",
    ["  1) Failure:", "GreetTest#test_a [greet_test.rb:4]:", "Expected: 1"],
    ["  1) Failure:", "GreetTest#test_b [greet_test.rb:4]:", "Expected: 1"],
  ],
  ["RSpec", ["expected 1", "rspec ./a_spec.rb:4 # adds"], ["expected 1", "rspec ./a_spec.rb:4 # takes"]],
  ["a numbered list", ["  1) adds", "     expected 1"], ["  1) takes", "     expected 1"]],
])("where no names are known, a failure with the same message under another name is new: %s", (_, before, now) => {
  expect(verdictOf([ran(before)], [ran(before)])).toMatchObject({ verdict: "could not run" });
  expect(verdictOf([ran(before)], [ran(now), ran(now)])).toMatchObject({ verdict: "failed" });
});

test.each([
  'Jest: "global" coverage threshold for lines (90%) not met: 80%',
  "FAIL Required test coverage of 90% not reached. Total coverage: 80.00%",
  "Line coverage (50.00%) is below the expected minimum coverage (90.00%).",
  "src/a.py:1:8: F401 `os` imported but unused",
  "src/a.go:3:2: undefined: x (typecheck)",
])("a complaint that is no test is new beside tests that fail as before: %s", (line) => {
  const failing = (...more: string[]) =>
    ran([
      "===== short test summary info =====",
      "FAILED test_a.py::test_x - assert 0",
      "===== 1 failed, 3 passed in 0.05s =====",
      ...more,
    ]);
  expect(verdictOf([failing(line)], [failing(line)])).toMatchObject({ verdict: "as before" });
  expect(verdictOf([failing()], [failing(line), failing(line)])).toMatchObject({ verdict: "failed" });
});

test("what a check prints to its two outputs is read in the order in which it was printed", async () => {
  const crates = ["one", "two", "three", "four", "five"].map(
    (name) => `printf '%s\\n' '${crate(name, "FAILED")[0]}' >&2; printf '%s\\n' '${crate(name, "FAILED").slice(1).join("' '")}'`,
  );
  const { reading } = await runReported(["/bin/sh", "-c", `${crates.join("; ")}; exit 1`], {
    ...{ cwd: temporaryFolder(), env: process.env, deadlineMs: 60_000, maxOutput: 10_000 },
    signal: new AbortController().signal,
  });
  expect(reading.reports[0]?.failed).toEqual(["one", "two", "three", "four", "five"].map((name) => `${name}:src/lib.rs works`));
});
