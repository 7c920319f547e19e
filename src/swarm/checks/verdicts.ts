import { z } from "zod";
import {
  hasVerdict,
  inBoth,
  lostOf,
  type NewFailures,
  newFailures,
  type Ran,
  reachedTests,
} from "../../project/reports/compare.ts";
import { type CouldNotRun, lineThatTells, whyCouldNotRun } from "../../project/reports/could-not-run.ts";
import { UNHANDLED } from "../../project/reports/javascript.ts";
import type { NamedTests } from "../../project/reports/select.ts";
import { CheckEvidence, type CheckVerdict } from "../../protocol/runs.ts";

/** Evidence as the journal keeps it, with what later results are compared with. */
export const CheckRecord = CheckEvidence.extend({
  /** Hashes of the lines that complain; missing if there are none or too many. */
  complaints: z.array(z.string()).optional(),
  others: z.array(z.string()).optional(),
  /** What it did not reach because something before it failed. */
  unreached: z.string().optional(),
});
export type CheckRecord = z.infer<typeof CheckRecord>;

type Identity = Pick<CheckRecord, "name" | "command">;

/**
 * The same check among others. Several may share a name ("lint"), and one command may run in several folders; whatever is not
 * certain is another check.
 */
export function sameCheck<T extends Identity>(among: readonly T[], { name, command }: Identity): T | undefined {
  const both = among.find((each) => each.name === name && each.command === command);
  const onlyOf = (some: readonly T[]) => (some.length === 1 ? some[0] : undefined);
  return both ?? onlyOf(among.filter((each) => each.command === command)) ?? onlyOf(among.filter((each) => each.name === name));
}

/** A check, and whether it failed on code that was broken for a trial. Records of earlier versions have no command. */
export const Noticed = z.object({ name: z.string(), command: z.string().default(""), noticed: z.boolean() });
export type Noticed = z.infer<typeof Noticed>;

export interface Judgement {
  verdict: CheckVerdict;
  why?: string | undefined;
  /** What fails now and did not before. */
  news?: NewFailures;
}

const MOST_NAMED = 5;

/** Whether it passes, without changing the tree. */
export function isGreen({ ending, exitCode, changed }: Pick<CheckEvidence, "ending" | "exitCode" | "changed">): boolean {
  return ending === "exited" && exitCode === 0 && changed === undefined;
}

/** Judges a check on the commit that the run began from. */
export function judgeBaseline(ran: CheckRecord): Judgement {
  if (isGreen(ran)) return { verdict: "passed" };
  const reason = reasonOf(ran);
  return reason ? couldNotRun(reason, ran) : { verdict: "failed", why: failingIn(ran), news: failuresOf(ran) };
}

/**
 * Judges a check on a tree by its result before the run. The run is blamed for everything that did not fail in the same way
 * before.
 */
export function judgeCheck(now: CheckRecord, before: CheckRecord | undefined): Judgement {
  if (isGreen(now)) return judgeGreen(now, before);
  if (now.changed) return { verdict: "failed", why: "it changes files each time it checks" };
  const reason = reasonOf(now);
  const news = failuresOf(now);
  if (!before || isGreen(before)) return { verdict: "failed", why: reason ? `${reason}` : failingIn(now), news };
  const reasonBefore = reasonOf(before);
  if (reasonBefore) return reason ? couldNotRun(reason, now) : { verdict: "failed", why: failingIn(now), news };
  if (reason) return { verdict: "failed", why: `it ran before the run and does not any more (${reason})` };
  if (reachedTests(readingOf(before)) && !reachedTests(readingOf(now)))
    return { verdict: "failed", why: "it ran tests before the run, and reaches none any more" };
  const added = diesTheSame(now, before) ? NOTHING_NEW : newFailures(ranOf(now), ranOf(before));
  if (added.names.length > 0) return { verdict: "failed", why: `new: ${inShort(added.names)}`, news: added };
  if (now.unreached !== undefined)
    return { verdict: "could not run", why: `it failed before the run as it does now, so nothing is known of ${now.unreached}` };
  if (!hasVerdict(readingOf(now))) {
    const why = reachedTests(readingOf(now))
      ? "every test failed before the run, and does now"
      : "it failed before the run as it does now, and names no test that passes";
    return { verdict: "could not run", why };
  }
  return { verdict: "as before", why: `nothing new fails; before the run ${failingIn(before) ?? "it failed too"}` };
}

/** Runners whose results are only seen when something fails. */
const SILENT_WHEN_GREEN = new Set(["Gradle", "JUnit XML"]);
const FROM_CACHE = /\bcached?\b|up[- ]to[- ]date|already fresh|[Nn]othing to be done/;

/**
 * Judges a check that exits with 0. A runner that crashes, or finds no tests any more, may do so too; then the results that the
 * same command printed before the run are missing.
 */
function judgeGreen(now: CheckRecord, before: CheckRecord | undefined): Judgement {
  if (!before || before.command !== now.command) return { verdict: "passed" };
  const seen = seenWhenGreen(before);
  if (seen.length === 0) return { verdict: "passed" };
  const results = readingOf(now).reports.filter(({ complete, passed }) => complete && passed !== 0);
  if (results.length === 0 && !FROM_CACHE.test(now.tail))
    return { verdict: "failed", why: "it ran tests before the run, and now ends without a result of any" };
  const fewer = lostOf(results, seen);
  if (fewer <= 0) return { verdict: "passed" };
  return { verdict: "passed", why: `${fewer} fewer test${fewer === 1 ? "" : "s"} passed than before the run` };
}

/** Results that a green check would have printed too. */
function seenWhenGreen(before: CheckRecord) {
  const isQuiet = (runner: string) => SILENT_WHEN_GREEN.has(runner) || (runner === "Surefire" && !isGreen(before));
  return readingOf(before).reports.filter(
    ({ runner, complete, passed, failed }) => complete && !isQuiet(runner) && (failed.length > 0 || passed !== 0),
  );
}

const NOTHING_NEW: NewFailures = { names: [], byTest: false };

/** Whether a signal ended it both times, after exactly the same output. */
const diesTheSame = (now: CheckRecord, before: CheckRecord) =>
  (now.exitCode === null || now.exitCode > 128) &&
  now.ending === before.ending &&
  now.exitCode === before.exitCode &&
  now.sha256 === before.sha256;

const failuresOf = ({ tests }: CheckRecord): NewFailures => ({
  names: tests?.flatMap(({ failed }) => failed) ?? [],
  byTest: true,
});

/** The tests that a second run has to confirm, if a single runner named all failures and they are all tests. */
export function testsToConfirm({ tests = [] }: CheckRecord, doubted: NewFailures | undefined): NamedTests | undefined {
  const [report, ...more] = tests;
  if (!doubted?.byTest || !report?.complete || more.length > 0) return undefined;
  const isTest = (name: string) => report.failed.includes(name);
  return doubted.names.length > 0 && doubted.names.every(isTest) ? { runner: report.runner, names: doubted.names } : undefined;
}

/** Whether each of the tests failed again. */
export function failAgain({ runner, names }: NamedTests, { tests = [] }: CheckRecord): boolean {
  const failed = tests.filter((report) => report.runner === runner).flatMap((report) => report.failed);
  return names.every((name) => failed.includes(name));
}

/** Whether tests that failed were not run the second time: no more tests pass than passed before. */
export function leftOut(first: CheckRecord, second: CheckRecord): boolean {
  return (first.tests ?? []).some(({ runner, failed, passed }) => {
    if (!failed.some(isTestName) || passed === null || SILENT_WHEN_GREEN.has(runner)) return false;
    const again = second.tests?.find((report) => report.runner === runner);
    return again?.passed === undefined || (again.passed !== null && again.passed <= passed && again.failed.length === 0);
  });
}

const isTestName = (name: string) => !name.startsWith(UNHANDLED);

/** Judges a check that failed and ran again on the same tree: what did not fail both times is flaky, if it ran both times. */
export function judgeTwice(first: Judgement, second: Judgement, isLeftOut = false): Judgement {
  if (second.verdict !== "failed" && isLeftOut)
    return { ...first, why: `${first.why ? `${first.why}; ` : ""}when it was run again it left out what had failed` };
  if (second.verdict !== "failed")
    return { verdict: "flaky", why: `it failed once, and not when it was run again${first.why ? ` (${first.why})` : ""}` };
  const [one, other] = [first.news, second.news];
  if (!one?.byTest || !other?.byTest || one.names.length === 0 || other.names.length === 0) return second;
  const both = inBoth(one.names, other.names);
  if (both.length === 0)
    return { verdict: "flaky", why: `each time other tests failed: ${inShort([...one.names, ...other.names])}` };
  return { ...second, why: second.why?.startsWith("new: ") ? `new: ${inShort(both)}` : second.why };
}

/** What failed in both runs of a check on the commit the run began from. */
export function failedTwice(first: CheckRecord, second: CheckRecord): CheckRecord {
  const tests = second.tests?.map((report) => {
    const others = first.tests?.find(({ runner }) => runner === report.runner)?.failed;
    return others ? { ...report, failed: inBoth(others, report.failed) } : report;
  });
  return tests ? { ...second, tests } : second;
}

/** Whether a check would notice a change: on broken code it fails in a new way. */
export function notices(broken: CheckRecord, before: CheckRecord): boolean {
  if (isGreen(broken)) return false;
  return isGreen(before) || reasonOf(broken) !== undefined || newFailures(ranOf(broken), ranOf(before)).names.length > 0;
}

/** Whether a check is worth a trial: it passes, or tells passing tests from failing ones. */
export function canNotice(before: CheckRecord): boolean {
  return isGreen(before) || hasVerdict(readingOf(before));
}

function couldNotRun(reason: CouldNotRun, { tail }: CheckEvidence): Judgement {
  const line = lineThatTells(reason, tail);
  return { verdict: "could not run", why: line ? `${reason} (${line})` : reason };
}

const reasonOf = (record: CheckRecord) =>
  isGreen(record) ? undefined : whyCouldNotRun({ ...record, reachedTests: reachedTests(readingOf(record)) });

const readingOf = ({ tests, complaints, others }: CheckRecord) => ({
  reports: tests?.map((report) => ({ ...report, passed: report.passed ?? undefined })) ?? [],
  complaints,
  others,
});
const ranOf = (record: CheckRecord): Ran => ({ ...readingOf(record), exitCode: record.exitCode });

/** The failed tests, if they are named. */
function failingIn({ tests }: CheckEvidence): string | undefined {
  const failed = tests?.flatMap((each) => each.failed) ?? [];
  return failed.length > 0 ? `${failed.length} test${failed.length === 1 ? "" : "s"} failed (${inShort(failed)})` : undefined;
}

function inShort(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
