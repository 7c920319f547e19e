import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram, ensurePython, PYTHON } from "../support/program.ts";
import { type RealProject, runOn, run as sh, writeFiles } from "../support/swarm/real-project.ts";

type Files = Record<string, string>;
const MADE = join(packageRoot, "node_modules", ".cache");
const POETRY = join(MADE, "poetry-2", "bin");
const BUN = join(MADE, "bun-1", "node_modules", ".bin");
const home = temporaryFolder(afterAll);
const env = { PATH: [POETRY, BUN, process.env.PATH].join(delimiter), HOME: home, COMPOSER_ALLOW_SUPERUSER: "1" };

beforeAll(async () => {
  await ensurePython("ensurepip", "python3-venv");
  await ensureProgram("bundle", "ruby-bundler");
  await ensureProgram("composer");
  const made = async (program: string, script: string) => {
    if (existsSync(program)) return;
    const { code, output } = await exec("/bin/sh", ["-c", script], { deadlineMs: 600_000 });
    if (code !== 0) throw new Error(`${program} is needed and could not be installed:\n${output}`);
  };
  const venv = join(POETRY, "..");
  await made(join(POETRY, "poetry"), `${PYTHON} -m venv ${venv} && ${venv}/bin/pip install -q 'poetry>=2,<3'`);
  await made(join(BUN, "bun"), `npm install --no-audit --no-fund --prefix ${join(BUN, "..", "..")} bun@1`);
}, 1_200_000);

/** Adds the lock file that the package manager generates. */
function locked(files: Files, lock: string, program: string, ...args: string[]): Files {
  const folder = temporaryFolder();
  writeFiles(folder, files);
  sh(folder, "env", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), program, ...args);
  return { ...files, [lock]: readFileSync(join(folder, lock), "utf8") };
}

/**
 * Expects that the package manager installs the dependencies into the run's tree, that the check runs and notices the change,
 * and that nothing is installed in the checkout.
 */
async function expectPrepared(project: Omit<RealProject, "parts" | "checks">, command: string, check: string): Promise<void> {
  const checks = [{ name: "test", command: check, cwd: "." }];
  const { run, project: folder } = await runOn({ ...project, checks, parts: { env } });
  expect(run.preparation, run.notes.join("\n")).toMatchObject([{ command, verdict: "passed", exitCode: 0 }]);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.at(-1)).toMatchObject({ verdict: "passed", bound: true });
  for (const name of ["node_modules", ".venv", "vendor", ".bundle"]) expect(existsSync(join(folder, name))).toBe(false);
}

test("poetry makes the environment that its lock file asks for", async () => {
  const files = {
    ".gitignore": "__pycache__/\n.venv/\n",
    "pyproject.toml": `[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.9"\n\n[tool.poetry]\npackage-mode = false\n`,
    "src/pack.py": 'import sys\n\n\ndef greet():\n    return "hello" if ".venv" in sys.prefix else sys.prefix\n',
    "test_pack.py":
      'import sys, unittest\nsys.path.insert(0, "src")\nimport pack\n\n\nclass Greeting(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(pack.greet(), "hello")\n',
  };
  await expectPrepared(
    {
      files: locked(files, "poetry.lock", "poetry", "lock", "--no-interaction"),
      writes: ["src/pack.py", `${files["src/pack.py"]}\n\ndef more():\n    return 1\n`],
    },
    "poetry install --no-interaction",
    "poetry run python -B -m unittest test_pack",
  );
});

test("bun installs what its lock file asks for", async () => {
  const files = {
    ".gitignore": "node_modules/\n",
    "words/package.json": JSON.stringify({ name: "words", version: "1.0.0", main: "index.js" }),
    "words/index.js": "module.exports = () => 'hello';\n",
    "package.json": JSON.stringify({ name: "app", version: "1.0.0", dependencies: { words: "file:./words" } }),
    "src/index.js": "module.exports = require('words');\n",
    "app.test.js":
      "const { expect, test } = require('bun:test');\ntest('greets', () => expect(require('./src/index.js')()).toBe('hello'));\n",
  };
  await expectPrepared(
    {
      files: locked(files, "bun.lock", "bun", "install", "--lockfile-only"),
      writes: ["src/index.js", `${files["src/index.js"]}module.exports.more = 1;\n`],
    },
    "bun install --frozen-lockfile",
    "bun test",
  );
});

test("bundler installs what Gemfile.lock asks for", async () => {
  const files = {
    ".gitignore": "vendor/bundle/\n.bundle/\n",
    "words/words.gemspec":
      'Gem::Specification.new do |s|\n  s.name = "words"\n  s.version = "1.0.0"\n  s.summary = "words"\n  s.authors = ["a"]\n  s.files = ["lib/words.rb"]\nend\n',
    "words/lib/words.rb": 'module Words\n  def self.hello = "hello"\nend\n',
    Gemfile: 'gem "words", path: "words"\n',
    "lib/pack.rb": 'require "words"\n\ndef greet = Words.hello\n',
    "test/pack_test.rb":
      'require_relative "../lib/pack"\nabort "not hello" unless greet == "hello"\nputs "1..1", "ok 1 - greets"\n',
  };
  await expectPrepared(
    {
      files: locked(files, "Gemfile.lock", "bundle", "lock", "--local"),
      writes: ["lib/pack.rb", `${files["lib/pack.rb"]}\ndef more = 1\n`],
    },
    "bundle config set --local path vendor/bundle && bundle install",
    "bundle exec ruby test/pack_test.rb",
  );
});

test("composer installs what composer.lock asks for", async () => {
  const files = {
    ".gitignore": "vendor/\n",
    "words/composer.json": JSON.stringify({ name: "io/words", version: "1.0.0", autoload: { files: ["words.php"] } }),
    "words/words.php": "<?php\nfunction hello() { return 'hello'; }\n",
    "composer.json": JSON.stringify({
      name: "io/app",
      repositories: [{ type: "path", url: "words" }, { "packagist.org": false }],
      require: { "io/words": "1.0.0" },
    }),
    "src/pack.php": "<?php\nfunction greet() { return hello(); }\n",
    "tests/packTest.php":
      "<?php\nrequire __DIR__ . '/../vendor/autoload.php';\nrequire __DIR__ . '/../src/pack.php';\nif (greet() !== 'hello') exit(1);\necho \"1..1\\nok 1 - greets\\n\";\n",
  };
  await expectPrepared(
    {
      files: locked(files, "composer.lock", "composer", "update", "--no-install", "--no-interaction"),
      writes: ["src/pack.php", `${files["src/pack.php"]}function more() { return 1; }\n`],
    },
    "composer install --no-interaction --no-progress",
    "php tests/packTest.php",
  );
});
