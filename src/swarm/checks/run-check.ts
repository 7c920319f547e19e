import { resolve } from "node:path";
import type { Redactor } from "../../lib/redact.ts";
import { projectEnvironment } from "../../process/environment.ts";
import type { SandboxProfile, Wrap } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import { activated } from "../../project/fallbacks.ts";
import { withInstalledPnpm } from "../../project/package-manager.ts";
import { type Reading, readOutput } from "../../project/reports/read.ts";
import { shortName } from "../../project/reports/report.ts";
import { runReported } from "../../project/reports/run.ts";
import type { CheckEnd } from "../../workers/remote/job-messages.ts";
import type { CheckRecord } from "./verdicts.ts";

const MAX_OUTPUT = 16_000;

export interface RunCheckDeps {
  wrap: Wrap;
  sandboxProfile: (cwd: string) => SandboxProfile;
  env: (folder: string) => NodeJS.ProcessEnv;
  deadlineMs: number;
  signal: AbortSignal;
  redactor: Redactor;
  onOutput?: ((chunk: string) => void) | undefined;
}

/** How a check ended, and what its output says about tests. */
export interface CheckRun {
  end: CheckEnd;
  reading: Reading;
}

/**
 * Runs one check in a folder, or `instead` in place of its command. The whole output is read as it comes; only its two ends are
 * kept.
 */
export async function runCheck(
  check: Check,
  folder: string,
  deps: RunCheckDeps,
  instead: readonly [string, ...string[]] = ["/bin/sh", "-c", check.command],
): Promise<CheckRun> {
  const { wrap, sandboxProfile, env, deadlineMs, signal, redactor, onOutput } = deps;
  const cwd = resolve(folder, check.cwd);
  const own = env(folder);
  const more = withInstalledPnpm({ top: folder, cwd, env: own })?.env;
  const { result, reading } = await runReported(await wrap(instead, cwd, { place: folder, ...sandboxProfile(folder) }), {
    cwd,
    env: projectEnvironment(activated({ ...own, ...more }, { top: folder, cwd }), redactor),
    deadlineMs,
    signal,
    maxOutput: MAX_OUTPUT,
    onOutput,
  });
  const { code: exitCode, ending, output, sha256, bytes, durationMs } = result;
  return { end: { exitCode, ending, output, sha256, bytes, durationMs }, reading };
}

/**
 * Reads the result of a check that ran on another host; a worker that sends no reading sent only the two ends of a long output.
 */
export function readEnd({ reading: sent, ...end }: CheckEnd): CheckRun {
  if (sent) {
    const reports = sent.reports.map(({ passed, failed, ...report }) => ({ ...report, passed, failed: failed.map(shortName) }));
    return {
      end,
      reading: { tail: sent.tail, reports, complaints: sent.complaints, others: sent.others, stopped: sent.stopped === true },
    };
  }
  const reading = readOutput(end.output);
  if (Buffer.byteLength(end.output) >= end.bytes) return { end, reading };
  const reports = reading.reports.map((each) => ({ ...each, complete: false }));
  return { end, reading: { ...reading, reports, complaints: undefined, others: undefined } };
}

/** The record of a check that ran; if it passed, its tests are only counted. */
export function recordOf(check: Check, { end, reading }: CheckRun, redactor: Redactor): Omit<CheckRecord, "tree" | "at"> {
  const { exitCode, ending, output, sha256, bytes, durationMs } = end;
  const hasPassed = ending === "exited" && exitCode === 0;
  const tests = reading.reports.map(({ passed, failed, ...report }) => ({
    ...report,
    failed: hasPassed ? [] : failed.map(redactor.clean),
    passed: passed ?? null,
  }));
  return {
    name: check.name,
    command: check.command,
    exitCode,
    ending,
    tail: redactor.clean(ending === "not-started" ? output : reading.tail),
    sha256,
    bytes,
    durationMs: Math.round(durationMs),
    ...(tests.length > 0 && { tests }),
    ...(!hasPassed && reading.complaints && { complaints: reading.complaints }),
    ...(!hasPassed && reading.others && { others: reading.others }),
    ...(!hasPassed && reading.stopped && { unreached: "the tests after the first failure" }),
  };
}
