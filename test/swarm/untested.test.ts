import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { describeRun } from "../../src/swarm/tools.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, type HarnessOptions, type Script, startSwarm, write } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";

async function runWith(checks: string[], { script, files = {}, apply = false }: HarnessOptions & { apply?: boolean } = {}) {
  const harness = await startSwarm({
    checks: checks.map((command) => ({ name: command, command, cwd: "." })),
    files: { "swarm.config.yaml": ON_BRANCH, ...files },
    ...(script && { script }),
  });
  const { swarm, project, settings } = harness;
  const run = await (await swarm.start({ projectPath: project, issue: "Greet", settings, apply })).finished;
  const summary = readFileSync(join(project, "doc", "swarm-summary.md"), "utf8");
  return { ...harness, run, summary, shown: (path: string) => git(project, "show", `${run.branch}:${path}`) };
}

test("a result that nothing tested is called so, with exit code 3, and is not applied", async () => {
  const { run, project, summary } = await runWith([], { apply: true });
  expect(run).toMatchObject({ outcome: "untested", applied: false });
  expect(exitCodeOf(run)).toBe(3);
  expect(git(project, "log", "--format=%s")).toBe("start");
  expect(summary).toContain("No checks were found");
  expect(summary).not.toContain("Every check passed");
});

test("checks that a person chose for the project are run in place of those that are found, but not of the pipeline's own", async () => {
  const chosen = { checks: [], parts: { chosenChecks: () => ({ commands: ["test -f README.md"], from: "a person" }) } };
  const commandsOf = async (yaml: string) => {
    const { swarm, project, settings } = await startSwarm({ ...chosen, files: { "swarm.config.yaml": yaml } });
    const run = await (await swarm.start({ projectPath: project, issue: "Greet", settings })).finished;
    return [run.outcome, ...run.evidence.map(({ command }) => command)];
  };
  expect(await commandsOf(ON_BRANCH)).toEqual(["approved", "test -f README.md"]);
  expect(await commandsOf(`checks: ["true"]\n${ON_BRANCH}`)).toEqual(["approved", "true"]);
});

test("checks that could not run, each for its own reason, are no evidence", async () => {
  const frames = "org.apache.maven.cli.MavenCli.main java.lang.reflect.Method.invoke jdk.internal.Run ".repeat(40);
  const { run, summary } = await runWith([
    "no-such-program --test",
    "echo \"ModuleNotFoundError: No module named 'requests'\"; exit 1",
    'echo "fatal: Could not resolve host: example.com"; exit 128',
    'echo "** (Mix) Could not find an SCM for dependency :ex_doc from MIME.Mixfile"; exit 1',
    `echo "[ERROR] Unknown host repo.example.com"; for at in ${frames}; do echo "    at $at (A.java:1)"; done; echo "[Help 1] x"; exit 1`,
  ]);
  expect(run.outcome).toBe("untested");
  expect(run.evidence.map(({ verdict, why }) => [verdict, why?.split(" (")[0]])).toEqual([
    ["could not run", "missing program"],
    ["could not run", "missing dependency"],
    ["could not run", "no network"],
    ["could not run", "missing dependency"],
    ["could not run", "no network"],
  ]);
  expect(run.evidence.at(-1)?.why).toBe("no network ([ERROR] Unknown host repo.example.com)");
  expect(summary).toContain("Of 5 checks: 5 could not run.");
  const verdicts = run.steps
    .filter(({ kind }) => kind === "checks")
    .map(({ key, verdict }) => [key.split("/checks/")[0], verdict]);
  expect(verdicts).toEqual([
    ["run/baseline", "no check could run"],
    ["implement/stream-1", "no check could run"],
  ]);
});

test("a tool that is there in another version than the project asks for could not run the check", async () => {
  const said = [
    "ERR_PNPM_BAD_PM_VERSION  This project is configured to use v9.1.0 of pnpm. Your current pnpm is v10.34.9",
    'error This project\'s package.json defines "packageManager": "yarn@4.1.0". However the current global version is 1.22.22.',
    "ERROR  Refusing to run pnpm@10.33.0: its npm registry signature could not be verified",
    "Error: Cannot find matching keyid: {signatures}",
    "error: package `once_cell v1.20.0` cannot be built because it requires rustc 1.70 or newer",
    "go: go.mod requires go >= 1.23 (running go 1.21.1; GOTOOLCHAIN=local)",
    "You are trying to run :mime on Elixir v1.14.0 but it has declared in its mix.exs file it supports only Elixir ~> 1.15",
    "Fatal error compiling: error: release version 21 not supported",
    "Fatal error compiling: invalid target release: 21",
    "ERROR: Package x requires a different Python: 3.9.2 not in >=3.10",
    "A compatible .NET SDK was not found.",
    "Your Ruby version is 3.1.2, but your Gemfile specified 3.3.0",
  ];
  const { run } = await runWith(said.map((line) => `echo '${line.replaceAll("'", "")}'; exit 1`));
  expect(run.outcome).toBe("untested");
  expect(run.evidence.map(({ verdict, why }) => [verdict, why?.split(" (")[0]])).toEqual(
    said.map(() => ["could not run", "missing program"]),
  );
});

test("what stops several checks is said once, by the line that tells why and not by the last", async () => {
  const told = [
    "ERROR  Refusing to run pnpm@11.2.2: its npm registry signature could not be verified",
    "This can indicate a tampered download. Set manage-package-manager-versions to false.",
  ];
  const says = `echo '${told.join("'; echo '")}'; exit 1`;
  const { run } = await runWith([says, `: lint; ${says}`, "no-such-program --test"]);
  const why = `missing program (${told[0]})`;
  expect(run.evidence.map(({ why: each }) => each)).toEqual([why, why, expect.stringContaining("no-such-program")]);
  const names = `"${says}", ": lint; ${says}"`;
  expect(run.reason).toContain(
    `came to a verdict: each of ${names} could not run: ${why}; "no-such-program --test" could not run: `,
  );
  expect(run.notes.filter((note) => note.includes("cannot run here"))).toEqual([
    expect.stringContaining(`the checks ${names} cannot run here: ${why}. Install what it needs`),
    expect.stringContaining('the check "no-such-program --test" cannot run here: '),
  ]);
});

test("a run in a few lines names every check of the result, how it ended and what it proves", async () => {
  const { run } = await runWith([
    "no-such-program --one",
    "no-such-program --two",
    "no-such-program --three",
    "no-such-program --four",
    "test -f README.md",
  ]);
  const lines = describeRun(run).split("\n");
  const missing = (option: string) =>
    expect.stringMatching(new RegExp(`^  ! "no-such-program --${option}": exit 127, could not run \\(missing program`));
  expect(lines.slice(lines.indexOf("Checks of the result:") + 1).slice(0, 5)).toEqual([
    ...["one", "two", "three", "four"].map(missing),
    '  ✓ "test -f README.md": exit 0',
  ]);
});

test("one check that ran and passed is evidence beside others that could not", async () => {
  const { run, summary } = await runWith(["no-such-program", "test -f README.md"]);
  expect(run.outcome).toBe("approved");
  expect(summary).toContain("Of 2 checks: 1 passed, 1 could not run.");
});

test("a check that cannot run because of the change is a failure", async () => {
  const script: Script = ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? write("check.sh", "no-such-program\n") : undefined;
  const { run } = await runWith(["sh check.sh"], { script, files: { "check.sh": "true\n" } });
  expect(run.outcome).toBe("unapproved");
});

test("a check that fails once and passes when it is run again is flaky, is named, and needs no fix", async () => {
  const seen = join(temporaryFolder(), "seen");
  const command = `test ! -f T1.txt || test -d ${seen} || { mkdir ${seen}; exit 1; }`;
  const { run, roles, summary } = await runWith([command]);
  expect(run.evidence.at(-1)).toMatchObject({ verdict: "flaky" });
  expect(run.outcome).toBe("approved");
  expect(roles().filter((role) => role === "engineer")).toHaveLength(1);
  expect(summary).toContain("it failed once, and not when it was run again");
});

test("what a failing check does to files is no part of the result, before the run and after it", async () => {
  const long = Array.from({ length: 400 }, (_, at) => `line ${at}`).join("\n");
  const { run, shown } = await runWith(
    ["echo gone > README.md; echo gone > notes.txt; rm -f Makefile; echo 'error: x'; exit 1", "true"],
    {
      files: { "notes.txt": `${long}\n` },
    },
  );
  expect(git(run.projectPath, "diff", "--name-only", `main..${run.branch}`)).toBe("T1.txt");
  expect(shown("notes.txt")).toBe(long);
  expect(run.evidence.map(({ verdict }) => verdict)).toEqual(["could not run", "passed"]);
});

test("what a fixer mends is part of the result and named, what a failing check beside it breaks is not", async () => {
  const { run, shown } = await runWith(["echo mended > README.md", "echo broken > notes.txt; echo 'error: y'; exit 1"], {
    files: { "notes.txt": "mine\n" },
  });
  expect([shown("README.md"), shown("notes.txt")]).toEqual(["mended", "mine"]);
  expect(run.notes.join("\n")).toContain("the checks changed README.md");
});

test("a test that fails where another failed before is a new failure, and names it", async () => {
  const red = (name: string) => `echo "1..2"; echo "ok 1 - adds"; echo "not ok 2 - ${name}"; exit 1\n`;
  const script: Script = ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? write("t.sh", red("issue 102")) : undefined;
  const { run } = await runWith(["sh t.sh"], { script, files: { "t.sh": red("issue 101") } });
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain("new: issue 102");
});

/** Two tests that record that they ran. Before the run, the second does nothing else; the engineer makes it run `body`. */
function counting(body: string) {
  const log = join(temporaryFolder(), "ran");
  const file = (does: string) => `
import { appendFileSync, readFileSync } from "node:fs";
import { test } from "node:test";
const log = ${JSON.stringify(log)};
test("slow", () => appendFileSync(log, "slow\\n"));
test("subject (1)", () => { appendFileSync(log, "subject\\n"); ${does} });
`;
  const script: Script = ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? write("a.test.js", file(body)) : undefined;
  const files = { "package.json": '{"type": "module", "scripts": {"test": "node --test"}}', "a.test.js": file("") };
  const ran = (name: string) =>
    readFileSync(log, "utf8")
      .split("\n")
      .filter((each) => each === name).length;
  return { ran, options: { script, files } };
}

test("of a check that fails only the failing tests are run again, and that they fail again is the verdict", async () => {
  const { ran, options } = counting('throw new Error("boom")');
  const { run } = await runWith(["npm test"], options);
  expect(run.outcome).toBe("unapproved");
  expect(run.evidence[0]?.why).toContain("subject (1)), again when run alone");
  // Once before the run. Then, for each checked tree, the whole suite once and the failing test twice.
  expect(ran("slow")).toBeGreaterThan(1);
  expect(ran("subject") - 1).toBe(2 * (ran("slow") - 1));
});

test("a test that fails only together with the others is not flaky", async () => {
  const { options } = counting('if (readFileSync(log, "utf8").endsWith("slow\\nsubject\\n")) throw new Error("boom");');
  const { run } = await runWith(["npm test"], options);
  expect(run.evidence[0]).toMatchObject({ verdict: "failed" });
  expect(run.outcome).toBe("unapproved");
});

test("a failing test that is gone when the check is run again is not flaky", async () => {
  const seen = join(temporaryFolder(), "seen");
  const command = `echo 1..2; echo ok 1 - a; test ! -f T1.txt || test -d ${seen} || { mkdir ${seen}; echo not ok 2 - b; exit 1; }; echo ok 2 - b '# SKIP'`;
  const { run } = await runWith([command]);
  expect(run.evidence[0]).toMatchObject({ verdict: "failed" });
  expect(run.evidence[0]?.why).toContain("left out what had failed");
  expect(run.outcome).toBe("unapproved");
});

test("a check whose tests were mended and that fails in something else is not as before", async () => {
  const script: Script = ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? write("t.sh", "echo 1..1; echo ok 1 - a\n") : undefined;
  const { run } = await runWith(["sh t.sh && test ! -f t.sh"], {
    script,
    files: { "t.sh": "echo 1..1; echo not ok 1 - a; exit 1\n" },
  });
  expect(run.evidence[0]).toMatchObject({ verdict: "failed", why: "new: it fails, though no test does" });
});

test("a failure behind tests that fail as before is not excused: what was not reached is no evidence", async () => {
  const script: Script = ({ role, afterTool }) => (role === "engineer" && !afterTool ? write("lint.sh", "exit 1\n") : undefined);
  const tests =
    'const { test } = require("node:test"); test("fine", () => {}); test("red", () => { throw new Error("old"); });\n';
  const files = {
    "package.json": '{"scripts": {"test": "node --test a.test.js && sh lint.sh"}}',
    "a.test.js": tests,
    "lint.sh": "exit 0\n",
  };
  const { run } = await runWith(["npm test"], { script, files, apply: true });
  expect(run).toMatchObject({ outcome: "untested", applied: false });
  const why = 'it failed before the run as it does now, so nothing is known of "sh lint.sh"';
  expect(run.evidence[0]).toMatchObject({ verdict: "could not run", why });
});

test("a check whose every test fails before the run and after it gives no verdict, so that nothing was tested", async () => {
  const { run, summary } = await runWith(["echo 1..2; echo not ok 1 - a; echo not ok 2 - b; exit 1"], { apply: true });
  expect(run).toMatchObject({ outcome: "untested", applied: false });
  expect(exitCodeOf(run)).toBe(3);
  expect(run.evidence[0]).toMatchObject({ verdict: "could not run", why: "every test failed before the run, and does now" });
  expect(summary).toContain("every test failed before the run, and does now");
});

test("a check that a signal ends before the run and after it, with the same words, blames nobody and proves nothing", async () => {
  const { run } = await runWith(["echo begun; kill -9 $$"], { apply: true });
  expect(run).toMatchObject({ outcome: "untested", applied: false });
  expect(run.evidence[0]).toMatchObject({ verdict: "could not run" });
});

test("one that fails all of its tests only after the change is a failure", async () => {
  const all = (verdict: string) => `echo 1..2; echo ok 1 - a; echo ${verdict} 2 - b; exit 1\n`;
  const script: Script = ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? write("t.sh", "echo 1..2; echo not ok 1 - a; echo not ok 2 - b; exit 1\n") : undefined;
  const { run } = await runWith(["sh t.sh"], { script, files: { "t.sh": all("not ok") } });
  expect(run.evidence[0]).toMatchObject({ verdict: "failed", why: "new: a" });
});
