import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../support/home.ts";
import { ensurePython, PYTHON } from "../support/program.ts";
import { type RealProject, runOn, run as sh } from "../support/swarm/real-project.ts";

const BROKEN = 'raise ImportError("gone")\n';
const BETTER = 'def greet():\n    return "hello"\n\n\ndef more():\n    return 1\n';

beforeAll(async () => {
  await ensurePython("ensurepip", "python3-venv");
  await ensurePython("setuptools");
});

/** A package below src, installed in development mode, and a test that imports it by name. */
const files = {
  ".gitignore": ".venv/\n*.egg-info/\n__pycache__/\n",
  "setup.py": 'from setuptools import setup\nsetup(name="pack", version="1", package_dir={"": "src"}, packages=["pack"])\n',
  "src/pack/__init__.py": 'def greet():\n    return "hello"\n',
  "tests/test_pack.py":
    'import unittest\nimport pack\n\n\nclass Greeting(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(pack.greet(), "hello")\n',
};

function installInPlace(project: string, venv: string): void {
  sh(project, PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", venv);
  sh(project, join(venv, "bin", "python"), "setup.py", "-q", "develop");
}

const inTheProject = (project: string) => installInPlace(project, join(project, ".venv"));
const test1 = { name: "test", command: ".venv/bin/python -m unittest discover -s tests", cwd: "." };
const editable = (writes: RealProject["writes"]): RealProject => ({ files, prepare: inTheProject, checks: [test1], writes });

test("an environment of the checkout, with the project installed in place, runs the stream's code: what works is approved", async () => {
  const { run, project } = await runOn(editable(["src/pack/__init__.py", BETTER]));
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.at(-1)).toMatchObject({ name: "test", exitCode: 0, bound: true, tree: run.tree });
  const site = join(project, ".venv", "lib");
  const list = join(site, readdirSync(site)[0]!, "site-packages", "easy-install.pth");
  expect(readFileSync(list, "utf8").trim()).toBe(join(project, "src"));
});

test("an engineer that breaks the package's import is not approved, though the checkout's own code still works", async () => {
  const { run } = await runOn(editable(["src/pack/__init__.py", BROKEN]));
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain('the check "test" fails');
});

test("an environment outside of the project runs the checkout's code: its tests are no evidence, and nothing is approved", async () => {
  const elsewhere = join(temporaryFolder(), "env");
  mkdirSync(elsewhere);
  const command = `${elsewhere}/bin/python -m unittest discover -s tests`;
  for (const text of [BETTER, BROKEN]) {
    const { run } = await runOn({
      files,
      prepare: (project) => installInPlace(project, elsewhere),
      checks: [{ name: "test", command, cwd: "." }],
      writes: ["src/pack/__init__.py", text],
    });
    expect(run.outcome).toBe("untested");
    expect(run.reason).toContain('"test" passes on broken code too');
    expect(run.notes.join("\n")).toMatch(/1 file was broken for a trial/);
  }
});

test("PATH and VIRTUAL_ENV of a checkout's environment lead to the stream's own", async () => {
  const project: { path?: string } = {};
  const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, HOME: temporaryFolder() };
  const { run } = await runOn({
    ...editable(["src/pack/__init__.py", BROKEN]),
    prepare: (folder) => {
      inTheProject(folder);
      project.path = folder;
      Object.assign(env, { VIRTUAL_ENV: `${folder}/.venv`, PATH: `${folder}/.venv/bin:${process.env.PATH}` });
    },
    checks: [{ name: "test", command: 'echo "$VIRTUAL_ENV" && python -m unittest discover -s tests', cwd: "." }],
    parts: { env },
  });
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain('the check "test" fails');
  expect(run.evidence.at(-1)!.tail).not.toContain(`${project.path}/.venv`);
});
