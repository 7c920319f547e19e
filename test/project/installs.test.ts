import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findInstalls, installInputs, shellCommandOf } from "../../src/project/installs.ts";
import { temporaryFolder } from "../support/home.ts";
import { writeFiles } from "../support/swarm/real-project.ts";

const BERRY = "__metadata:\n  version: 8\n";
const PYTHON = '[project]\nname = "a"\ndependencies = ["click"]\n';
const MANIFEST = '{"dependencies": {"a": "1"}}';

const loosely = (what: string) =>
  `python3 -m venv --system-site-packages .venv && .venv/bin/python -m pip install -q --disable-pip-version-check ${what}`;

/** The install commands for work in these folders of a project with these files. */
function installs(files: Record<string, string>, folders = ["."]): string[] {
  const top = temporaryFolder();
  writeFiles(top, files);
  return findInstalls(top, folders).map(shellCommandOf);
}

test.each<[name: string, files: Record<string, string>, command: string]>([
  ["npm", { "package-lock.json": "{}", "package.json": MANIFEST }, "npm ci --no-audit --no-fund"],
  ["npm's shrinkwrap", { "npm-shrinkwrap.json": "{}" }, "npm ci --no-audit --no-fund"],
  ["a manifest alone", { "package.json": MANIFEST }, "npm install --no-audit --no-fund --no-package-lock"],
  ["pnpm", { "pnpm-lock.yaml": "", "package.json": MANIFEST }, "pnpm install --frozen-lockfile"],
  ["yarn 1", { "yarn.lock": "# yarn lockfile v1\n" }, "yarn install --frozen-lockfile --non-interactive"],
  ["yarn from 2 on", { "yarn.lock": BERRY }, "yarn install --immutable"],
  ["bun", { "bun.lock": "{}" }, "bun install --frozen-lockfile"],
  ["bun's older lock", { "bun.lockb": "" }, "bun install --frozen-lockfile"],
  ["uv", { "uv.lock": "", "requirements.txt": "" }, "uv sync --frozen"],
  ["poetry", { "poetry.lock": "" }, "poetry install --no-interaction"],
  ["pdm", { "pdm.lock": "" }, "pdm sync"],
  ["pipenv", { "Pipfile.lock": "{}" }, "pipenv sync --dev"],
  [
    "pip",
    { "requirements.txt": "", "requirements-dev.txt": "" },
    "python3 -m venv .venv && .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements.txt -r requirements-dev.txt",
  ],
  [
    "a Python package with extras for its tests",
    {
      "pyproject.toml":
        '[project]\nname = "a"\ndependencies = [\n  "click>=8",\n]\n\n[project.optional-dependencies]\ntest = ["pytest"]\ndocs = ["sphinx"]\n',
    },
    loosely("-e .[test]"),
  ],
  [
    "a Python package with groups",
    {
      "pyproject.toml":
        '[project]\nname = "a"\n\n[dependency-groups]\ndev = ["pytest>=8", {include-group = "docs"}, "--index-url=http://x", "./evil"]\ndocs = ["sphinx"]\n',
    },
    loosely("-e . pytest>=8"),
  ],
  ["a Python project that is no package", { "pyproject.toml": '[dependency-groups]\ntest = ["pytest"]\n' }, loosely("pytest")],
  [
    "setuptools with extras",
    { "setup.py": 'setup(\n    install_requires=requires,\n    extras_require={\n        "test": ["pytest"],\n    },\n)\n' },
    loosely("-e .[test]"),
  ],
  [
    "setuptools by its settings",
    { "setup.cfg": "[metadata]\nname = a\n[options]\ninstall_requires =\n    click\n", "setup.py": "setup()\n" },
    loosely("-e ."),
  ],
  [
    "Poetry without a lock",
    { "pyproject.toml": '[tool.poetry]\nname = "a"\n\n[tool.poetry.dependencies]\npython = "^3.9"\nclick = "8"\n' },
    loosely("-e ."),
  ],
  [
    "requirements for developers alone",
    { "requirements-dev.txt": "", "setup.py": "setup()\n" },
    loosely("-r requirements-dev.txt"),
  ],
  ["go", { "go.sum": "" }, "go mod download"],
  ["cargo", { "Cargo.lock": "" }, "cargo fetch --locked"],
  ["maven", { "pom.xml": "" }, "mvn -q -B dependency:go-offline"],
  ["maven's wrapper", { "pom.xml": "", mvnw: "" }, "./mvnw -q -B dependency:go-offline"],
  ["gradle", { "build.gradle.kts": "" }, "gradle -q --no-daemon dependencies"],
  ["gradle's wrapper", { "build.gradle": "", gradlew: "" }, "./gradlew -q --no-daemon dependencies"],
  ["bundler", { "Gemfile.lock": "" }, "bundle config set --local path vendor/bundle && bundle install"],
  ["composer", { "composer.lock": "{}" }, "composer install --no-interaction --no-progress"],
  ["mix", { "mix.lock": "" }, "mix deps.get --check-locked"],
])("%s", (_, files, command) => {
  expect(installs(files)).toEqual([command]);
});

test.each<[name: string, files: Record<string, string>]>([
  ["a package that needs nothing", { "package.json": '{"scripts": {"test": "node --test"}}' }],
  ["a manifest that is no JSON", { "package.json": "{" }],
  ["a vendored Go module", { "go.sum": "", "vendor/modules.txt": "" }],
  ["no manifest", { "README.md": "" }],
  ["a Python package without dependencies", { "setup.py": 'setup(name="a", install_requires=[])\n' }],
  [
    "settings of Python tools",
    { "pyproject.toml": '[tool.ruff]\nselect = ["E"]\n', "setup.cfg": "[flake8]\nmax-line-length = 100\n" },
  ],
  ["a Python project for an interpreter alone", { "pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.9"\n' }],
])("%s asks for nothing", (_, files) => {
  expect(installs(files)).toEqual([]);
});

test("a package of a workspace is installed from above, one with a lock file of its own where it is", () => {
  const files = {
    ...{ "pnpm-lock.yaml": "", "packages/a/package.json": MANIFEST, "site/package-lock.json": "{}" },
    ...{ "server/go.sum": "", "elsewhere/package-lock.json": "{}" },
  };
  expect(installs(files, [".", "packages/a", "site", "server"])).toEqual([
    "pnpm install --frozen-lockfile",
    "cd site && npm ci --no-audit --no-fund",
    "cd server && go mod download",
  ]);
});

test("a link that leads out of the project, and a lock file that is none, are passed over", () => {
  const top = temporaryFolder();
  const outside = temporaryFolder();
  writeFiles(outside, { "package-lock.json": "{}" });
  symlinkSync(outside, join(top, "out"));
  mkdirSync(join(top, "go.sum"));
  symlinkSync(join(outside, "package-lock.json"), join(top, "package-lock.json"));
  expect(findInstalls(top, [".", "out"])).toEqual([]);
});

test.each<[name: string, files: Record<string, string>, changed: Record<string, string>, isAsked: boolean]>([
  ["another lock file", { "package-lock.json": "{}" }, { "package-lock.json": '{"a": 1}' }, true],
  ["a package that the lock file lacks", { "package-lock.json": "{}", "package.json": "{}" }, { "package.json": MANIFEST }, true],
  ["a script alone", { "yarn.lock": "", "package.json": "{}" }, { "package.json": '{"scripts": {"test": "x"}}' }, false],
  ["a manifest that is no JSON any more", { "pnpm-lock.yaml": "", "package.json": "{}" }, { "package.json": "{" }, false],
  ["requirements for developers", { "requirements.txt": "" }, { "requirements-dev.txt": "a\n" }, true],
  ["settings of the project beside uv's lock", { "uv.lock": "", "pyproject.toml": "" }, { "pyproject.toml": "[tool]\n" }, false],
  ["go.sum", { "go.sum": "" }, { "go.sum": "a\n" }, true],
  ["another dependency of Python", { "pyproject.toml": PYTHON }, { "pyproject.toml": PYTHON.replace("click", "flask") }, true],
  ["another setting of a Python tool", { "pyproject.toml": PYTHON }, { "pyproject.toml": `${PYTHON}[tool.ruff]\n` }, false],
  ["a build file that is no lock file", { "pom.xml": "" }, { "pom.xml": "<project/>" }, false],
])("what is asked for anew by %s", (_, files, changed, isAsked) => {
  const top = temporaryFolder();
  const asked = () =>
    findInstalls(top, ["."])
      .flatMap(installInputs)
      .map(({ path, read }) => [path, read(existsSync(join(top, path)) ? readFileSync(join(top, path), "utf8") : "")]);
  writeFiles(top, files);
  const before = JSON.stringify(asked());
  writeFiles(top, changed);
  expect(JSON.stringify(asked()) !== before).toBe(isAsked);
});
