// Runs the tests of the engine, of recovery (with the kill sweeps) and of skills on each Copilot runtime that this platform can
// install: all of them, or the versions given as arguments. With --at-least <n> it fails if fewer could be installed. With
// --quick it leaves out the wires and the kill sweeps, which take minutes for each runtime.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { findRuntime, platformName } from "../src/engine/runtime/path.ts";
import { DEFAULT_RUNTIME, TESTED_RUNTIMES, type TestedRuntime } from "../src/engine/runtime/tested-versions.ts";
import { isRuntimeFolder, runtimeFile, unpackRuntime } from "../src/engine/runtime/unpack.ts";
import { UserError } from "../src/lib/errors.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { exec } from "../src/process/exec.ts";

const TESTS = ["test/engine/", "test/skills/", "test/orchestrator/skills", "crash.test.ts"];
/** The tests that --quick leaves out, as in the gate: every provider's protocol, and the kill sweeps. */
const SLOW_TESTS = ["test/engine/wire/", "test/daemon/doctor", "test/orchestrator/setup", ".crash.ts"];
const NOT_PUBLISHED = /\b(E404|ETARGET)\b/;

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { "at-least": { type: "string", default: "1" }, quick: { type: "boolean", default: false } },
  });
  const ran: string[] = [];
  const failed: string[] = [];
  for (const runtime of wanted(positionals)) {
    const path = await install(runtime);
    if (path === undefined) {
      console.log(`runtime ${runtime.version}: ${packageOf(runtime)} is not published, so it is left out`);
      continue;
    }
    console.log(`runtime ${runtime.version}: ${path}`);
    ran.push(runtime.version);
    if (!passes(runtime, path, values.quick)) failed.push(runtime.version);
  }
  console.log(`runtimes that ran: ${ran.join(", ") || "none"}; failed: ${failed.join(", ") || "none"}`);
  if (ran.length >= Number(values["at-least"])) return failed.length === 0 ? 0 : 1;
  console.error(`at least ${values["at-least"]} were wanted`);
  return 1;
}

function wanted(versions: readonly string[]): readonly TestedRuntime[] {
  const known = TESTED_RUNTIMES.map(({ version }) => version);
  const stranger = versions.find((version) => !known.includes(version));
  if (stranger) throw new UserError(`${stranger} is not one of the runtimes that are tested: ${known.join(", ")}`);
  return TESTED_RUNTIMES.filter(({ version }) => versions.length === 0 || versions.includes(version));
}

function passes({ version }: TestedRuntime, path: string, quick: boolean): boolean {
  const runTests = join(packageRoot, "scripts", "run-tests.js");
  const env = { ...process.env, COPILOT_CLI_PATH: path, IO_TEST_RUNTIME: version };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [runTests, ...args], { cwd: packageRoot, env, stdio: "inherit" }).status === 0;
  return run("--project", "fast", "--project", "daemons", ...TESTS) && (quick || run("--project", "slow", ...SLOW_TESTS));
}

/** The runtime's executable; undefined if npm has no such package for this platform. */
async function install(runtime: TestedRuntime): Promise<string | undefined> {
  if (runtime === DEFAULT_RUNTIME) return findRuntime({ ...process.env, COPILOT_CLI_PATH: "" });
  const folder = join(homedir(), ".cache", "io-orchestrator", "tested", `${runtime.version}-${platformName()}`);
  if (isRuntimeFolder(folder)) return runtimeFile(folder);
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  const scratch = mkdtempSync(join(dirname(folder), ".install-"));
  try {
    const name = packageOf(runtime);
    const args = [
      "install",
      "--prefix",
      scratch,
      "--no-save",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      name,
    ];
    const { code, output } = await exec("npm", args, { cwd: scratch, deadlineMs: 600_000 });
    if (code !== 0 && NOT_PUBLISHED.test(output)) return undefined;
    if (code !== 0) throw new UserError(`npm could not install ${name} (exit ${code}):\n${output}`);
    const installed = join(scratch, "node_modules", `${runtime.packagePrefix}${platformName()}`);
    const ready = join(installed, "prebuilds", platformName());
    if (!isRuntimeFolder(ready)) return await unpackRuntime(installed, folder);
    renameSync(ready, folder);
    return runtimeFile(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function packageOf({ packagePrefix, packageVersion }: TestedRuntime): string {
  return `${packagePrefix}${platformName()}@${packageVersion}`;
}
