// Runs one of vitest's projects. With IO_TEST_AGAIN set, as in the gate, files with a failing test run once more, alone and one
// after another. What passes then is reported by name as flaky, and what fails again has failed.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";

/** If more files fail, the change is at fault, not the load of the machine. */
const MOST_FILES_AGAIN = 8;

const require = createRequire(import.meta.url);

/** The script of a command that a package provides. */
export function commandOf(packageName, command) {
  const file = require.resolve(`${packageName}/package.json`);
  const { bin } = require(file);
  return join(dirname(file), typeof bin === "string" ? bin : bin[command]);
}

/** Runs the tests. Returns whether they passed. */
export async function runTests(args, env = process.env) {
  const folder = mkdtempSync(join(tmpdir(), "io-report-"));
  try {
    const report = join(folder, "first.json");
    if (await runVitest([...args, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`], env)) return true;
    if (!env.IO_TEST_AGAIN) return false;
    const failed = failedFiles(report);
    if (failed.length === 0 || failed.length > MOST_FILES_AGAIN) return false;
    console.log(`\nOnce more, alone: ${failed.map(({ file }) => file).join(", ")}`);
    // A shard selects some of the files, but all failed files have to run.
    const options = args.filter(
      (arg, index) =>
        (arg.startsWith("-") && !arg.startsWith("--shard=")) || args[index - 1] === "--project" || args[index - 1] === "-t",
    );
    if (!(await runVitest([...options, "--no-file-parallelism", ...failed.map(({ file }) => file)], env))) return false;
    for (const { file, tests } of failed)
      for (const test of tests) console.log(`FLAKY (failed, then passed alone): ${file} > ${test}`);
    return true;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runVitest(args, env) {
  const child = spawn(process.execPath, [commandOf("vitest", "vitest"), "run", ...args], {
    stdio: ["ignore", "inherit", "inherit"],
    env,
  });
  return new Promise((resolve) => {
    child.once("close", (code) => resolve(code === 0));
  });
}

/** The failed files and tests; empty if the report is missing, or if an error belongs to no test. */
function failedFiles(report) {
  let results;
  try {
    results = JSON.parse(readFileSync(report, "utf8")).testResults;
  } catch {
    // Vitest ended too early to write it.
    return [];
  }
  return results
    .filter(({ status }) => status === "failed")
    .map(({ name, assertionResults }) => {
      const tests = assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName);
      return { file: relative(process.cwd(), name), tests: tests.length > 0 ? tests : ["(outside of its tests)"] };
    });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = (await runTests(process.argv.slice(2))) ? 0 : 1;
