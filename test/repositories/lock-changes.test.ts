import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensurePython, PYTHON } from "../support/program.ts";
import { startSwarm } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { run as sh, writeFiles } from "../support/swarm/real-project.ts";
import { until } from "../support/until.ts";
import { makeWheel } from "../support/wheel.ts";

type Files = Record<string, string>;

const TEST = `const { test } = require('node:test');
const assert = require('node:assert');
test('greets', () => assert.equal(require('./src/index.js')(), 'hello'));
`;
const packageNamed = (name: string) => ({
  [`packed/${name}/package.json`]: JSON.stringify({ name, version: "1.0.0" }),
  [`packed/${name}/index.js`]: "module.exports = () => 'hello';\n",
});

/**
 * A project that depends on packages inside it, with the lock file that npm generates. Each install appends a line to `mark`.
 */
function npmProject(names: readonly string[], mark: string, scripts: Files = {}): Files {
  const dependencies = Object.fromEntries(names.map((name) => [name, `file:./packed/${name}`]));
  const manifest = { name: "app", version: "1.0.0", dependencies, scripts: { postinstall: `echo it >> ${mark}`, ...scripts } };
  const files: Files = {
    ...Object.assign({}, ...names.map(packageNamed)),
    ".gitignore": "node_modules/\n",
    "package.json": JSON.stringify(manifest),
    "src/index.js": `module.exports = require('${names.at(-1)}');\n`,
    "app.test.js": TEST,
  };
  const folder = temporaryFolder();
  writeFiles(folder, files);
  const npm = ["install", "--package-lock-only", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", npm, { cwd: folder, stdio: "ignore" });
  return { ...files, "package-lock.json": readFileSync(join(folder, "package-lock.json"), "utf8") };
}

/** A run whose engineer writes these files, round by round. */
async function runWith(files: Files, rounds: readonly Files[], command = "node --test app.test.js") {
  const writeAll = (round: Files): Act => ({
    call: Object.entries(round).map(([path, content]) => ({ tool: "file_ops", args: { operation: "write", path, content } })),
  });
  let [asked, reviewed] = [0, 0];
  const { swarm, project, settings, home } = await startSwarm({
    checks: [{ name: "test", command, cwd: "." }],
    files: { "swarm.config.yaml": ON_BRANCH.replace("maxIterations: 1", `maxIterations: ${rounds.length}`), ...files },
    script: ({ role, afterTool }) => {
      if (role === "engineer" && !afterTool) return writeAll(rounds[asked++] ?? {});
      if (role !== "eng-code-reviewer") return undefined;
      reviewed += 1;
      return reviewed < rounds.length ? { say: "Please write more." } : undefined;
    },
    parts: { env: { PATH: process.env.PATH, HOME: temporaryFolder() } },
  });
  const handle = await swarm.start({ projectPath: project, issue: "Change it", settings });
  const run = await handle.finished;
  return { run, kept: join(home, "runs", run.id, "installed") };
}

const installs = (mark: string) => (existsSync(mark) ? readFileSync(mark, "utf8").split("\n").length - 1 : 0);
const marks = () => ({ before: join(temporaryFolder(), "before"), after: join(temporaryFolder(), "after") });

test("a dependency that an engineer adds is there for the checks, and is installed once for all later rounds", async () => {
  const mark = marks();
  const changed = npmProject(["greeter", "added"], mark.after);
  const { run, kept } = await runWith(npmProject(["greeter"], mark.before), [changed, { "notes.txt": "more\n" }]);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.notes.join("\n")).toContain("package-lock.json was changed during the run; what it asks for now was installed");
  expect(run.evidence.map(({ name, verdict }) => `${name} ${verdict}`)).toEqual(["test passed", "test passed"]);
  expect([installs(mark.before), installs(mark.after)]).toEqual([1, 1]);
  await until("what the run kept to be gone", () => !existsSync(kept), 30_000);
});

test("a project that had nothing to install gets what its first lock file asks for", async () => {
  const mark = marks();
  const before = { "src/index.js": "module.exports = () => 'hello';\n", "app.test.js": TEST };
  const { run } = await runWith(before, [npmProject(["added"], mark.after)]);
  expect([run.outcome, run.reason, installs(mark.after)]).toEqual(["approved", null, 1]);
});

test("a lock file that does not install is held against the work, and the engineer can mend it", async () => {
  const mark = marks();
  const before = npmProject(["greeter"], mark.before);
  const changed = npmProject(["greeter", "added"], mark.after);
  // The package file requires a package that the lock file lacks.
  const forgotten = { "package.json": changed["package.json"]! };
  const { run } = await runWith(before, [forgotten]);
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain('the check "install (package-lock.json)" fails');
  // The previously installed packages are restored, so the tests still run.
  expect(run.evidence.map(({ name, verdict }) => `${name} ${verdict}`)).toEqual([
    ...["install (package-lock.json) failed", "test passed"],
  ]);
  expect(run.evidence[0]!.tail).toMatch(/in sync|Missing/);
  const mended = await runWith(before, [forgotten, changed]);
  expect([mended.run.outcome, mended.run.reason, installs(mark.after)]).toEqual(["approved", null, 1]);
});

test("a package file that names the same packages as before is not installed anew", async () => {
  const mark = marks();
  const before = npmProject(["greeter"], mark.before);
  const manifest = { ...JSON.parse(before["package.json"]!), description: "greets", version: "2.0.0" };
  const { run } = await runWith(before, [{ "package.json": JSON.stringify(manifest) }]);
  expect([run.status, installs(mark.before)]).toEqual(["done", 1]);
  expect(run.notes.join("\n")).not.toContain("was changed during the run");
});

test("requirements that an engineer adds are in the environment that the checks run in", async () => {
  await ensurePython("ensurepip", "python3-venv");
  const wheels = temporaryFolder();
  for (const name of ["greeter", "added"]) sh(wheels, PYTHON, "-c", makeWheel(name));
  const requirements = (...names: string[]) =>
    `--no-index\n--find-links ${wheels}\n${names.map((name) => `${name}==1\n`).join("")}`;
  const pack = (name: string) => `import ${name}\n\n\ndef greet():\n    return ${name}.hello()\n`;
  const before = {
    ".gitignore": "__pycache__/\n.venv/\n",
    "requirements.txt": requirements("greeter"),
    "pack.py": pack("greeter"),
    "test_pack.py":
      'import unittest\nimport pack\n\n\nclass Greeting(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(pack.greet(), "hello")\n',
  };
  const changed = { "requirements.txt": requirements("greeter", "added"), "pack.py": pack("added") };
  const { run } = await runWith(before, [changed], "python3 -B -m unittest test_pack");
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.notes.join("\n")).toContain("requirements.txt was changed during the run");
});
