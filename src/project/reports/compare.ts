import type { Reading } from "./read.ts";
import type { TestReport } from "./report.ts";
import { withoutVolatile } from "./volatile.ts";

/** The record of one execution of a check. */
export interface Ran extends Omit<Reading, "tail" | "stopped"> {
  exitCode: number | null;
}

export interface NewFailures {
  /** What fails now and did not before; empty if nothing does. */
  names: string[];
  /** The names are names of tests, from the runner itself. */
  byTest: boolean;
}

/**
 * What fails now and did not before. Tests are compared by name if every runner named them all both times; otherwise every
 * complaining line must have been there before. When in doubt, it is a new failure.
 */
export function newFailures(now: Ran, before: Ran): NewFailures {
  if (areComparable(now.reports, before.reports)) {
    const names = now.reports.flatMap((report) => added(report.failed, runnerIn(before.reports, report)?.failed ?? []));
    const lost = lostOf(now.reports, before.reports);
    const others = addedCount(now.others, before.others);
    const isUnexplained = names.length === 0 && failsWithoutTests(now, before);
    return {
      byTest: true,
      names: [
        ...names,
        ...(names.length === 0 && lost > 0 ? [`${lost} test${lost === 1 ? "" : "s"} that passed before did not pass now`] : []),
        ...(isUnexplained ? ["it fails, though no test does"] : []),
        ...(others === 0 ? [] : [`${others ?? "many"} new complaint${others === 1 ? "" : "s"} besides the tests`]),
      ],
    };
  }
  if (before.reports.some((report) => report.complete && runnerIn(now.reports, report)?.complete !== true))
    return { byTest: false, names: ["it does not name every test that fails any more"] };
  const count = addedCount(now.complaints, before.complaints);
  const isSame = count === 0 && now.exitCode === before.exitCode && (now.complaints?.length ?? 0) > 0;
  return { byTest: false, names: isSame ? [] : ["its output differs from before"] };
}

/** Whether a check named every failing test, and as far as it says not all of them fail. */
export function hasVerdict({ reports }: Pick<Reading, "reports">): boolean {
  const mayPass = reports.some(({ passed }) => passed === undefined || passed > 0);
  return mayPass && reports.every(({ complete }) => complete);
}

/** Whether any test was reached at all. */
export function reachedTests({ reports }: Pick<Reading, "reports">): boolean {
  return reports.some(({ failed, passed }) => failed.length > 0 || (passed ?? 0) > 0);
}

/** Whether a check fails because of something that is no test, and did not fail that way before. */
function failsWithoutTests(now: Ran, before: Ran): boolean {
  const hasFailing = ({ reports }: Ran) => reports.some(({ failed }) => failed.length > 0);
  if (hasFailing(now) || (now.others?.length ?? 0) > 0) return false;
  return hasFailing(before) || now.exitCode !== before.exitCode || addedCount(now.complaints, before.complaints) !== 0;
}

function areComparable(now: readonly TestReport[], before: readonly TestReport[]): boolean {
  const areWhole = now.length > 0 && [...now, ...before].every(({ complete }) => complete);
  return areWhole && before.every((report) => runnerIn(now, report)) && now.every((report) => runnerIn(before, report));
}

const runnerIn = (reports: readonly TestReport[], { runner }: TestReport) => reports.find((each) => each.runner === runner);

/**
 * How many fewer tests pass than before, for runners that counted them both times. What one runner gains makes up for nothing
 * that another one lost.
 */
export function lostOf(now: readonly TestReport[], before: readonly TestReport[]): number {
  const lost = now.map((report) => (runnerIn(before, report)?.passed ?? Number.NaN) - (report.passed ?? Number.NaN));
  return lost.reduce((sum, each) => sum + (each > 0 ? each : 0), 0);
}

/** What `now` holds more often than `before`. A name in `before` without its volatile parts matches any in place of them. */
function added(now: readonly string[], before: readonly string[]): string[] {
  const known = new Map<string, number>();
  for (const name of before) known.set(name, (known.get(name) ?? 0) + 1);
  return now.filter((name) => {
    const key = known.has(name) ? name : withoutVolatile(name);
    const left = known.get(key) ?? 0;
    known.set(key, left - 1);
    return left <= 0;
  });
}

/**
 * The names that failed in both runs on the same tree. One whose volatile parts alone differ is kept without them: two runs have
 * proven that they mean nothing.
 */
export function inBoth(first: readonly string[], second: readonly string[]): string[] {
  const onlySecond = added(second, first);
  const same = without(second, onlySecond);
  const onlyFirst = without(first, same).map(withoutVolatile);
  const renamed = onlySecond.map(withoutVolatile);
  return [...same, ...without(renamed, added(renamed, onlyFirst))];
}

/** A list without some of its entries, each taken away once. */
function without(list: readonly string[], some: readonly string[]): string[] {
  const left = [...some];
  return list.filter((name) => {
    const at = left.indexOf(name);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Undefined if one of the two is incomplete. */
function addedCount(now: readonly string[] | undefined, before: readonly string[] | undefined): number | undefined {
  return now && before && added(now, before).length;
}
