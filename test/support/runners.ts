import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";
import { ensureProgram, ensurePython, PYTHON } from "./program.ts";

/** A test in a made-up suite, and what it does when it runs. */
export interface Case {
  name: string;
  does: "pass" | "fail" | "crash" | "chatter";
}

/** A third-party test runner: how to write a suite for it, and how to start it. */
export interface Runner {
  name: string;
  command: string;
  /** The command that runs only the tests, if `command` does more than that. */
  direct?: string;
  files: (cases: readonly Case[]) => Record<string, string>;
  /** Makes sure that the runner is installed. `folder` is the project's. */
  prepare?: (folder: string) => Promise<void>;
}

const LINES = 10_000;

const ofJavaScript = (cases: readonly Case[], test: string, crash = "process.kill(process.pid, 'SIGKILL')") =>
  cases
    .map(({ name, does }) => {
      const body = {
        pass: "",
        fail: "throw new Error('boom')",
        crash,
        chatter: `for (let i = 0; i < ${LINES}; i++) process.stdout.write('a line of output ' + i + '\\n')`,
      }[does];
      return `${test}(${JSON.stringify(name)}, () => { ${body} });`;
    })
    .join("\n");

const linkModules = async (folder: string) => symlinkSync(join(packageRoot, "node_modules"), join(folder, "node_modules"));

/** Installs packages once for all tests on this machine, apart from IO's own. */
async function fromNpm(folder: string, ...packages: string[]): Promise<void> {
  const cache = join(tmpdir(), `io-test-npm-${packages.join("-").replace(/[^\w-]/g, "_")}`);
  // Written when all of it is there.
  const whole = join(cache, "installed");
  if (!existsSync(whole)) {
    mkdirSync(cache, { recursive: true });
    const install = [
      "npm",
      "install",
      "--no-save",
      "--no-audit",
      "--no-fund",
      "--prefer-offline",
      "--prefix",
      cache,
      ...packages,
    ];
    const installed = await exec("flock", [join(packageRoot, "package.json"), ...install], { deadlineMs: 300_000 });
    if (installed.code !== 0) throw new Error(`${packages.join(", ")} could not be installed:\n${installed.output}`);
    writeFileSync(whole, "");
  }
  symlinkSync(join(cache, "node_modules"), join(folder, "node_modules"));
}

const camel = (name: string) => name.replace(/[^A-Za-z0-9]/g, "_");
const PYTHON_BODY = {
  pass: "pass",
  fail: 'raise ValueError("boom")',
  crash: "import os; os._exit(7)",
  chatter: `[print("a line of output", i) for i in range(${LINES})]`,
};

export const RUNNERS: readonly Runner[] = [
  {
    name: "node:test",
    command: "node --test",
    files: (cases) => ({
      "package.json": '{"type": "module"}',
      "a.test.js": `import { test } from "node:test";\n${ofJavaScript(cases, "test")}`,
    }),
  },
  {
    name: "node:test for people",
    command: "node --test --test-reporter=spec",
    files: (cases) => ({
      "package.json": '{"type": "module"}',
      "a.test.js": `import { describe, test } from "node:test";\ndescribe("all of it", () => {\n${ofJavaScript(cases, "test")}\n});`,
    }),
  },
  {
    name: "vitest",
    command: "node_modules/.bin/vitest run --pool=forks",
    files: (cases) => ({
      "package.json": '{"type": "module"}',
      "a.test.js": `import { test } from "vitest";\n${ofJavaScript(cases, "test")}`,
    }),
    prepare: linkModules,
  },
  {
    name: "jest",
    command: "node_modules/.bin/jest",
    files: (cases) => ({
      "package.json": '{"jest": {"watchman": false, "haste": {"enableSymlinks": true}}}',
      "a.test.js": ofJavaScript(cases, "test"),
    }),
    prepare: (folder) => fromNpm(folder, "jest@30", "mocha@11"),
  },
  {
    name: "mocha",
    command: "node_modules/.bin/mocha a.js",
    files: (cases) => ({ "a.js": `describe("all of it:", () => {\n${ofJavaScript(cases, "it")}\n});` }),
    prepare: (folder) => fromNpm(folder, "jest@30", "mocha@11"),
  },
  {
    name: "pytest",
    command: `${PYTHON} -m pytest -q -p no:cacheprovider`,
    files: (cases) => ({
      "test_a.py": cases.map(({ name, does }) => `def test_${camel(name)}():\n    ${PYTHON_BODY[does]}\n`).join("\n"),
    }),
    prepare: () => ensurePython("pytest"),
  },
  {
    name: "JUnit XML",
    command: `${PYTHON} -m pytest -q -p no:cacheprovider --junitxml=reports/junit.xml >/dev/null`,
    files: (cases) => ({
      "test_a.py": cases.map(({ name, does }) => `def test_${camel(name)}():\n    ${PYTHON_BODY[does]}\n`).join("\n"),
      // A report left by an earlier run must be ignored.
      "reports/old/junit.xml": '<testsuite><testcase classname="old" name="gone"><failure/></testcase></testsuite>',
    }),
    prepare: async (folder) => {
      await ensurePython("pytest");
      utimesSync(join(folder, "reports", "old", "junit.xml"), 1, 1);
    },
  },
  {
    name: "unittest",
    command: `${PYTHON} -B -m unittest`,
    files: (cases) => ({
      "test_a.py": `import unittest\nclass All(unittest.TestCase):\n${cases.map(({ name, does }) => `    def test_${camel(name)}(self):\n        ${PYTHON_BODY[does]}`).join("\n")}\n`,
    }),
    prepare: () => ensureProgram(PYTHON, "python3"),
  },
  {
    name: "go test",
    command: "go test ./...",
    files: (cases) => ({
      "go.mod": "module example.com/a\n\ngo 1.19\n",
      "a_test.go": `package a\nimport (\n"fmt"\n"os"\n"testing"\n)\nvar _ = fmt.Sprint\nvar _ = os.Exit\n${cases
        .map(({ name, does }) => {
          const body = {
            pass: "",
            fail: 't.Error("boom")',
            crash: "os.Exit(7)",
            chatter: `for i := 0; i < ${LINES}; i++ { fmt.Println("a line of output", i) }`,
          }[does];
          return `func Test_${camel(name)}(t *testing.T) { ${body} }`;
        })
        .join("\n")}\n`,
    }),
    prepare: () => ensureProgram("go", "golang-go"),
  },
  {
    name: "cargo test",
    command: "cargo test --offline --quiet --no-fail-fast --lib -- --test-threads=1",
    files: (cases) => ({
      "Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2018"\n',
      "src/lib.rs": `#[cfg(test)]\nmod tests {\n${cases
        .map(({ name, does }) => {
          const body = {
            pass: "",
            fail: 'panic!("boom")',
            crash: "std::process::abort()",
            chatter: `for i in 0..${LINES} { println!("a line of output {}", i) }`,
          }[does];
          return `#[test] fn ${camel(name).toLowerCase()}() { ${body} }`;
        })
        .join("\n")}\n}\n`,
    }),
    prepare: () => ensureProgram("cargo"),
  },
  {
    name: "CTest",
    command: "cmake -S . -B build >/dev/null && cd build && ctest",
    direct: "ctest --test-dir build",
    files: (cases) => ({
      "CMakeLists.txt": `cmake_minimum_required(VERSION 3.10)\nproject(a NONE)\nenable_testing()\n${cases
        .map(({ name, does }) => {
          const script = { pass: "true", fail: "false", crash: "kill -9 $PPID", chatter: `seq ${LINES}` }[does];
          return `add_test(NAME ${camel(name)} COMMAND sh -c "${script}")`;
        })
        .join("\n")}\n`,
    }),
    prepare: () => ensureProgram("cmake"),
  },
  {
    name: "ExUnit",
    command: "mix test --seed 0",
    files: (cases) => ({
      "mix.exs": 'defmodule A.MixProject do\n  use Mix.Project\n  def project, do: [app: :a, version: "0.1.0"]\nend\n',
      "test/test_helper.exs": "ExUnit.start()\n",
      "test/a_test.exs": `defmodule ATest do\n  use ExUnit.Case\n${cases
        .map(({ name, does }) => {
          const body = {
            pass: ":ok",
            fail: "assert 1 == 2",
            crash: "System.halt(7)",
            chatter: `for n <- 1..${LINES}, do: IO.puts("line #{n}")`,
          }[does];
          return `  test ${JSON.stringify(name)} do\n    ${body}\n  end`;
        })
        .join("\n")}\nend\n`,
    }),
    prepare: () => ensureProgram("mix", "elixir"),
  },
  {
    name: "TAP",
    command: "sh a.sh",
    files: (cases) => ({
      "a.sh": `echo TAP version 13\necho 1..${cases.length}\n${cases
        .map(({ name, does }, at) => {
          const words = `${at + 1} - ${name}`;
          return {
            pass: `echo ok ${words}`,
            fail: `echo not ok ${words}`,
            crash: "exit 7",
            chatter: `seq ${LINES}; echo ok ${words}`,
          }[does];
        })
        .join("\n")}\n${cases.some(({ does }) => does === "fail") ? "exit 1" : "exit 0"}\n`,
    }),
  },
];
