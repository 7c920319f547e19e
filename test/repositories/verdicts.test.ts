import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { unwrapped } from "../../src/process/sandbox.ts";
import { commandForTests } from "../../src/project/reports/select.ts";
import { readEnd, recordOf, runCheck } from "../../src/swarm/checks/run-check.ts";
import { type CheckRecord, judgeCheck } from "../../src/swarm/checks/verdicts.ts";
import { CheckEnd } from "../../src/workers/remote/job-messages.ts";
import { type Case, RUNNERS } from "../support/runners.ts";
import { writeFiles } from "../support/swarm/real-project.ts";

const NAMES = ["adds", "issue 101", "issue 102", "last"];
/** A name with all characters that are special to shells and patterns. */
const ODD = `issue (1+1) $(touch pwned) 'a' "b" \\d [c]* ; ^ {2} > x`;
/** What each test does: P passes, F fails, C kills the process, L prints ten thousand lines and passes. */
const cases = (letters: string, names = NAMES): Case[] =>
  names.map((name, at) => ({ name, does: ({ P: "pass", F: "fail", C: "crash", L: "chatter" } as const)[letters[at]! as "P"] }));

const STATES = {
  green: cases("PPPP"),
  red: cases("PFPP"),
  twoRed: cases("PFFP"),
  allRed: cases("FFFF"),
  other: cases("PPFP"),
  renamed: cases("PFPP", ["adds", "issue 101", "issue 102", "renamed"]),
  renamedRed: cases("PFPP", ["adds", "issue 103", "issue 102", "last"]),
  longRed: cases("LFPP"),
  longTwoRed: cases("LFFP"),
  crash: cases("PFCP"),
  oddlyNamed: cases("PFFP", ["adds", ODD, `${ODD} | (2)`, "last"]),
};
type State = keyof typeof STATES;

const TABLE: [before: State, now: State, verdict: string, named?: string][] = [
  ["green", "green", "passed"],
  ["green", "red", "failed", "101"],
  ["green", "crash", "failed"],
  ["green", "longRed", "failed", "101"],
  ["red", "red", "as before"],
  ["red", "green", "passed"],
  ["twoRed", "red", "as before"],
  ["red", "twoRed", "failed", "102"],
  ["red", "other", "failed", "102"],
  ["red", "renamed", "as before"],
  ["red", "renamedRed", "failed", "103"],
  ["red", "longRed", "as before"],
  ["red", "longTwoRed", "failed", "102"],
  ["red", "crash", "failed"],
  ["longTwoRed", "longRed", "as before"],
  ["allRed", "allRed", "could not run"],
  ["allRed", "red", "as before"],
  ["green", "twoRed", "failed", "102"],
  ["green", "renamed", "failed", "101"],
  ["green", "longTwoRed", "failed", "102"],
  ["twoRed", "green", "passed"],
  ["twoRed", "other", "as before"],
  ["twoRed", "renamedRed", "failed", "103"],
  ["red", "allRed", "failed"],
  ["allRed", "green", "passed"],
  ["longRed", "red", "as before"],
  ["longRed", "twoRed", "failed", "102"],
  ["crash", "green", "passed"],
];

describe.each(RUNNERS)("$name", ({ name, command, files, prepare, direct }) => {
  const ran = new Map<State, CheckRecord>();
  const stop = new AbortController();
  const top = mkdtempSync(join(tmpdir(), "io-test-"));
  const redactor = createRedactor([]);

  async function run(state: State, instead?: readonly [string, ...string[]]): Promise<CheckRecord> {
    const check = { name: "test", command, cwd: "." };
    const deps = {
      wrap: unwrapped,
      sandboxProfile: () => ({}),
      env: () => process.env,
      deadlineMs: 120_000,
      signal: stop.signal,
      redactor,
    };
    const here = await runCheck(check, join(top, state), deps, instead);
    const record = recordOf(check, here, redactor);
    // A worker sends the two ends of the output, and what it has read in the whole.
    const { output } = here.end;
    const sent = { ...here.end, output: output.slice(0, 100) + output.slice(-100), reading: here.reading };
    expect(recordOf(check, readEnd(CheckEnd.parse(JSON.parse(JSON.stringify(sent)))), redactor)).toEqual(record);
    return { ...record, tree: "", at: "" };
  }
  afterAll(() => {
    stop.abort();
    rmSync(top, { recursive: true, force: true });
  });

  beforeAll(async () => {
    for (const [state, suite] of Object.entries(STATES)) {
      const folder = join(top, state);
      writeFiles(folder, files(suite));
      await prepare?.(folder);
      ran.set(state as State, await run(state as State));
    }
  }, 600_000);

  test.each(TABLE)("%s, then %s: %s", (before, now, verdict, named) => {
    const judged = judgeCheck(ran.get(now)!, ran.get(before)!);
    expect(judged.verdict, JSON.stringify([judged, ran.get(now), ran.get(before)], null, 1)).toBe(verdict);
    if (named) expect(judged.why).toContain(named);
  });

  test("only the tests that failed are run again, whatever they are called", async () => {
    const [before] = ran.get("oddlyNamed")!.tests!;
    const select = (names: string[]) =>
      commandForTests(direct ?? command, join(top, "oddlyNamed"), { runner: before!.runner, names });
    // Commands that only print or write results cannot be told which tests to run, and ExUnit's selection by name applies to
    // every module.
    if (["TAP", "JUnit XML", "ExUnit"].includes(name)) return expect(select(["any test"])).toBeUndefined();
    const names = before!.failed.slice(0, 1);
    const instead = select(names);
    expect(before).toMatchObject({ complete: true });
    expect(instead, `${direct ?? command}: ${names}`).toBeDefined();
    const again = await run("oddlyNamed", instead);
    expect(again.tests?.[0], again.tail).toMatchObject({ runner: before!.runner, failed: names, complete: true });
    expect(again.tests?.[0]?.passed ?? 0).toBe(0);
    expect(existsSync(join(top, "oddlyNamed", "pwned"))).toBe(false);
  });
});
