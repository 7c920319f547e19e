import { type ExecResult, exec } from "../../process/exec.ts";
import { JUNIT, readJunit } from "./junit.ts";
import { createReader, type Reading } from "./read.ts";
import { shortName, type TestReport } from "./report.ts";

export interface ReportedOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  deadlineMs: number;
  signal: AbortSignal;
  /** How many characters of the output are kept. */
  maxOutput: number;
  /** Changes lines and names before they are kept, such as the names of folders. */
  clean?: ((text: string) => string) | undefined;
  /** Hears the output as it comes. */
  onOutput?: ((chunk: string) => void) | undefined;
}

/**
 * Runs a program and reads its test results: from its whole output as it comes, and from JUnit XML files if the output names
 * none.
 */
export async function runReported(
  [program, ...args]: readonly [string, ...string[]],
  { env, clean, onOutput, ...options }: ReportedOptions,
): Promise<{ result: ExecResult; reading: Reading }> {
  const reader = createReader(clean, options.cwd);
  const since = Date.now();
  const result = await exec("/bin/sh", ["-c", IN_ORDER, "sh", program, ...args], {
    ...options,
    env: { ...env, ...reportingEnvironment(env) },
    onOutput: (chunk) => {
      reader.add(chunk);
      onOutput?.(chunk);
    },
  });
  const reading = reader.end();
  const isRed = result.ending === "exited" && result.code !== 0;
  if (!isRed || reading.reports.some(({ runner }) => !WITH_JUNIT.has(runner))) return { result, reading };
  const junit = await readJunit({ folder: options.cwd, since, signal: options.signal }).catch(() => undefined);
  return { result, reading: junit ? { ...reading, reports: [inJunit(junit, reading.tail, clean)] } : reading };
}

/** Both streams in one pipe: of two pipes nobody can tell which line came first, such as a crate's name or its failures. */
const IN_ORDER = 'exec "$@" 2>&1';
/** Runners that always write JUnit XML, which says more than their output. */
const WITH_JUNIT = new Set(["Surefire", "Gradle"]);
/** What builds print if tests did not run to their end; the XML files look complete anyway. */
const CRASHED = /forked VM terminated|ForkedBooter|Could not complete execution|finished with non-zero exit value/;

function inJunit(report: TestReport, tail: string, clean = (text: string) => text): TestReport {
  return {
    ...report,
    runner: JUNIT,
    failed: report.failed.map((name) => shortName(clean(name))),
    complete: report.complete && !CRASHED.test(tail),
  };
}

/** Variables that make runners name their tests and keep them from waiting for a person. */
function reportingEnvironment({ CI = "true", PYTEST_ADDOPTS = "", GOFLAGS = "" }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    CI,
    PYTEST_ADDOPTS: `${PYTEST_ADDOPTS} -rfE`.trim(),
    GOFLAGS: `${GOFLAGS} -v`.trim(),
    CTEST_OUTPUT_ON_FAILURE: "1",
  };
}
