import { existsSync, readdirSync, readFileSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { exec } from "../../src/process/exec.ts";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { startRegistry, type TestRegistry } from "../support/npm-registry.ts";
import { sleeping } from "../support/processes.ts";
import { ensurePython, PYTHON } from "../support/program.ts";
import { git, startSwarm } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { type RealProject, runOn, run as sh, writeFiles } from "../support/swarm/real-project.ts";
import { until } from "../support/until.ts";
import { makeWheel } from "../support/wheel.ts";

let registry: TestRegistry;
let npmFiles: Record<string, string>;
const home = temporaryFolder(afterAll);

const { atTheEnd, end } = collectEndings();
beforeAll(async () => {
  registry = await startRegistry(
    { name: "greeter", version: "1.0.0" },
    { "index.js": "module.exports = () => 'hello';\n" },
    atTheEnd,
  );
  const folder = temporaryFolder(atTheEnd);
  const asked = {
    ".npmrc": `registry=${registry.url}\n`,
    "package.json": JSON.stringify({ name: "app", version: "1.0.0", dependencies: { greeter: "1.0.0" } }),
  };
  writeFiles(folder, asked);
  const lock = ["install", "--package-lock-only", "--no-audit", "--no-fund", `--cache=${join(home, "cache")}`];
  expect(await exec("npm", lock, { cwd: folder })).toMatchObject({ code: 0 });
  npmFiles = {
    ...asked,
    ".gitignore": "node_modules/\n",
    "package-lock.json": readFileSync(join(folder, "package-lock.json"), "utf8"),
    "src/index.js": "module.exports = require('greeter');\n",
    "app.test.js":
      "const { test } = require('node:test');\nconst assert = require('node:assert');\ntest('greets', () => assert.equal(require('./src/index.js')(), 'hello'));\n",
  };
});
afterAll(end);

/** A PATH folder that contains only these programs. */
function onlyPrograms(...names: string[]): string {
  const folder = temporaryFolder();
  for (const name of names) symlinkSync(name === "python3" ? PYTHON : sh(folder, "which", name).trim(), join(folder, name));
  return folder;
}

/** An environment with a new home, so that the user's caches are not used. */
const machine = (more: NodeJS.ProcessEnv = {}) => ({ PATH: process.env.PATH, HOME: temporaryFolder(), ...more });
const npmProject = (parts: RealProject["parts"] = {}): RealProject => ({
  files: npmFiles,
  checks: [{ name: "test", command: "node --test app.test.js", cwd: "." }],
  writes: ["src/index.js", "module.exports = require('greeter');\nmodule.exports.more = 1;\n"],
  parts: { env: machine(), ...parts },
});

test("what a lock file asks for is installed before anybody is asked, once, and not in the checkout", async () => {
  const installedFolder = join(temporaryFolder(), "installed");
  const { run, project, news } = await runOn(npmProject({ installedFolder }));
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.preparation).toMatchObject([{ command: "npm ci --no-audit --no-fund", verdict: "passed", exitCode: 0 }]);
  expect(run.evidence.at(-1)).toMatchObject({ verdict: "passed", bound: true });
  expect(existsSync(join(project, "node_modules"))).toBe(false);
  expect(git(project, "diff", "--name-only", `main..${run.branch}`)).toBe("src/index.js");
  const steps = news.flatMap((each) =>
    each.type.startsWith("step.") && "key" in each.data ? [`${each.type} ${each.data.key}`] : [],
  );
  expect(steps.indexOf("step.finished run/prepare")).toBeGreaterThan(0);
  expect(steps.indexOf("step.finished run/prepare")).toBeLessThan(steps.indexOf("step.started implement/stream-1/draft"));
  const asked = registry.asked.length;
  expect(asked).toBeGreaterThan(0);

  const again = await runOn(npmProject({ installedFolder }));
  expect([again.run.outcome, again.run.reason]).toEqual(["approved", null]);
  expect(again.run.preparation).toMatchObject([
    { verdict: "passed", why: "an earlier run installed the same, and that was taken" },
  ]);
  expect(registry.asked.length).toBe(asked);
});

test("an install that fails is said before anybody is asked, with the command; what the checkout has is used as it is", async () => {
  const gone: Record<string, string> = { ...npmFiles, ".npmrc": "registry=http://127.0.0.1:1\nfetch-retries=0\n" };
  const closed = gone["package-lock.json"]!.replaceAll(registry.url, "http://127.0.0.1:1");
  const project: RealProject = { ...npmProject(), files: { ...gone, "package-lock.json": closed } };
  const { run, prompts } = await runOn(project);
  expect(run.outcome).toBe("untested");
  expect(run.preparation).toMatchObject([{ verdict: "failed", exitCode: 1 }]);
  expect(run.notes.join("\n")).toMatch(
    /"npm ci --no-audit --no-fund" failed \(no network: .*Checks that need it cannot run\. Install it in the project: npm ci/,
  );
  expect(run.steps.find(({ key }) => key === "run/prepare")).toMatchObject({ state: "failed", verdict: "not installed" });
  expect(prompts("engineer")).toHaveLength(1);
  const stale = await runOn({
    ...project,
    prepare: (folder) => {
      writeFiles(folder, { "node_modules/greeter/index.js": "module.exports = () => 'hello';\n" });
      const longAgo = new Date(Date.now() - 3_600_000);
      utimesSync(join(folder, "node_modules"), longAgo, longAgo);
    },
  });
  expect([stale.run.outcome, stale.run.reason]).toEqual(["approved", null]);
  expect(stale.run.notes.join("\n")).toContain("What the checkout has is used as it is.");
});

test("with required checks a run whose checks cannot run asks no model", async () => {
  const PATH = onlyPrograms("node", "git", "sh", "bwrap", "cp", "find", "rm");
  const project = npmProject({ env: machine({ PATH }) });
  const { run, roles } = await runOn({ ...project, requireChecks: true });
  expect([run.status, exitCodeOf(run), roles()]).toEqual(["failed", 2, []]);
  expect(run.reason).toMatch(
    /^no model was asked, .*"test" failed.*package-lock\.json asks for npm, which is not installed here\..* Install it in the project: npm ci/,
  );
  const good = await runOn({ ...npmProject(), requireChecks: true });
  expect([good.run.outcome, good.run.reason]).toEqual(["approved", null]);
  const none = await runOn({ ...npmProject(), checks: [], requireChecks: true });
  expect([exitCodeOf(none.run), none.roles(), none.run.reason]).toEqual([2, [], expect.stringContaining("it has none")]);
});

test("what is installed and newer than its lock file is left as it is", async () => {
  const before = registry.asked.length;
  const { run } = await runOn({
    ...npmProject(),
    prepare: (folder) => writeFiles(folder, { "node_modules/greeter/index.js": "module.exports = () => 'hello';\n" }),
  });
  expect([run.outcome, run.preparation, registry.asked.length]).toEqual(["approved", [], before]);
});

/** The project with a script that runs before its packages are installed. */
const withScript = (preinstall: string) => {
  const manifest = JSON.stringify({ ...JSON.parse(npmFiles["package.json"]!), scripts: { preinstall } });
  return { ...npmFiles, "package.json": manifest };
};

test("an install ends with its run", async () => {
  const mark = `300.${process.pid}${Date.now()}`;
  const { swarm, project, settings, roles } = await startSwarm({
    files: { ...withScript(`sleep ${mark}`), "swarm.config.yaml": ON_BRANCH },
    parts: { env: machine() },
  });
  const handle = await swarm.start({ projectPath: project, issue: "Change it", settings });
  await until("the install is under way", async () => (await sleeping(mark)) > 0, 60_000);
  handle.cancel();
  const run = await handle.finished;
  expect([run.status, roles()]).toEqual(["cancelled", []]);
  await until("nothing of it is left", async () => (await sleeping(mark)) === 0, 30_000);
});

test("what an install prints is kept without secrets, and what it does to files is undone", async () => {
  const redactor = createRedactor();
  redactor.hide("s3cret-value-of-this-test");
  const script = 'echo mine > app.test.js && echo new > left.txt && echo "it is s3cret-value-of-this-test" && exit 3';
  const { run, home, project } = await runOn({
    ...npmProject({ redactor }),
    files: withScript(script),
    requireChecks: true,
  });
  expect([exitCodeOf(run), run.preparation[0]!.exitCode]).toEqual([2, 3]);
  expect(run.preparation[0]!.tail).toContain("it is ");
  expect(JSON.stringify(run)).not.toContain("s3cret-value-of-this-test");
  const tree = join(home, "runs", run.id, "worktrees", "run");
  expect(readFileSync(join(tree, "app.test.js"), "utf8")).toBe(npmFiles["app.test.js"]);
  expect([existsSync(join(tree, "left.txt")), git(project, "status", "--porcelain", "--", ".", ":!doc")]).toEqual([false, ""]);
});

const VENV_FILES = {
  ".gitignore": "__pycache__/\n.venv/\n",
  "src/pack.py": "import greeter\n\n\ndef greet():\n    return greeter.hello()\n",
  "test_pack.py":
    'import sys, unittest\nsys.path.insert(0, "src")\nimport pack\n\n\nclass Greeting(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(pack.greet(), "hello")\n',
};
const pythonProject = (files: Record<string, string>, command: string): RealProject => ({
  files: { ...VENV_FILES, ...files },
  checks: [{ name: "test", command, cwd: "." }],
  writes: ["src/pack.py", `${VENV_FILES["src/pack.py"]}\n\ndef more():\n    return 1\n`],
  parts: { env: machine({ PATH: onlyPrograms("python3", "sh") }) },
});

test("requirements are installed into an environment that the checks run in, though git does not ignore it", async () => {
  await ensurePython("ensurepip", "python3-venv");
  const wheels = temporaryFolder();
  sh(wheels, PYTHON, "-c", makeWheel("greeter"));
  const { run, project: folder } = await runOn(
    pythonProject(
      { ".gitignore": "__pycache__/\n", "requirements.txt": `--no-index\n--find-links ${wheels}\ngreeter==1\n` },
      "python3 -B -m unittest test_pack",
    ),
  );
  expect(run.preparation).toMatchObject([{ verdict: "passed", exitCode: 0 }]);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.at(-1)).toMatchObject({ verdict: "passed", bound: true });
  expect(git(folder, "diff", "--name-only", `main..${run.branch}`)).toBe("src/pack.py");
});

test("without uv, a check that asks for it runs in the environment that is there, and says so", async () => {
  await ensurePython("ensurepip", "python3-venv");
  const { run } = await runOn({
    ...pythonProject({ "uv.lock": "version = 1\n" }, "uv run python -B -m unittest test_pack"),
    prepare: (folder) => {
      sh(folder, PYTHON, "-m", "venv", "--without-pip", ".venv");
      const site = join(folder, ".venv", "lib", readdirSync(join(folder, ".venv", "lib"))[0]!, "site-packages");
      writeFiles(site, { "greeter.py": 'def hello():\n    return "hello"\n' });
    },
  });
  expect([run.outcome, run.reason, run.preparation]).toEqual(["approved", null, []]);
  expect(run.evidence.at(-1)).toMatchObject({
    command: ".venv/bin/python -B -m unittest test_pack",
    ...{ verdict: "passed", bound: true, ranWith: "uv is not here; ran with .venv" },
  });
});
