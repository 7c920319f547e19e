// Lint, types and the tests, side by side. The tests' output is shown as it comes, the others' only when they fail.
import { spawn } from "node:child_process";
import { commandOf, runTests } from "./run-tests.js";

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
    child.once("close", (code, signal) => {
      if (code !== 0) console.error(`${output}\n${name} failed (${signal ?? `exit ${code}`}).`);
      resolve(code === 0);
    });
  });
}

async function test() {
  const passed = await runTests(["--project", "fast", ...process.argv.slice(2)]);
  if (!passed) console.error("The tests failed.");
  return passed;
}

const results = await Promise.all([
  test(),
  check("The lint", [commandOf("@biomejs/biome", "biome"), "check", "."]),
  // TypeScript 7 checks in seconds; the page's checker still needs the version before it.
  check("The check of types", [commandOf("typescript7", "tsc"), "--noEmit"]),
  check("The check of the page's types", [commandOf("vue-tsc", "vue-tsc"), "--noEmit", "-p", "web"]),
]);
process.exit(results.every(Boolean) ? 0 : 1);
