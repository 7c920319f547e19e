// Runs lint, type checks and tests in parallel. The tests' output is shown as it comes, the others' at the end if they fail.
import { spawn } from "node:child_process";
import { commandOf, runTests } from "./run-tests.js";

/** Runs a check. Returns a description of its failure; undefined if it passed. */
function check(name, args) {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  return new Promise((resolve) => {
    child.once("close", (code, signal) =>
      resolve(code === 0 ? undefined : `${output}\n${name} failed (${signal ?? `exit ${code}`}).`),
    );
  });
}

async function test() {
  const passed = await runTests(["--project", "fast", ...process.argv.slice(2)]);
  return passed ? undefined : "The tests failed.";
}

const failures = (
  await Promise.all([
    test(),
    check("The lint", [commandOf("@biomejs/biome", "biome"), "check", "."]),
    // TypeScript 7 checks in seconds. The page's checker still needs the version before it.
    check("The check of types", [commandOf("typescript7", "tsc"), "--noEmit"]),
    check("The check of the page's types", [commandOf("vue-tsc", "vue-tsc"), "--noEmit", "-p", "web"]),
  ])
).filter(Boolean);
for (const failure of failures) console.log(failure);
process.exit(failures.length === 0 ? 0 : 1);
