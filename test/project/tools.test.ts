import { expect, test } from "vitest";
import { detectTests } from "../../src/project/test-commands.ts";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { formatFacts } from "../../src/squads/prompt.ts";
import { json, lines, text } from "../fixtures/repositories/shape.ts";
import { testGit } from "../support/git.ts";
import { commandLines, projectOf } from "../support/project.ts";

const git = testGit();
const analysisOf = (files: Record<string, string>) => analyzeProject(git, projectOf(files));

interface Tool {
  files: Record<string, string>;
  commands: string[];
  testTools?: string[];
  packageManagers?: string[];
}

const TOOLS: Record<string, Tool> = {
  "CMake without tests": {
    files: { "CMakeLists.txt": text("project(a C)", "# enable_testing()"), "a.c": lines(9) },
    commands: ["build . cmake -B build && cmake --build build"],
    testTools: [],
  },
  "GoogleTest in a folder of tests": {
    files: {
      "CMakeLists.txt": text("project(a CXX)", "include( CTest )", "add_subdirectory(test)"),
      "test/CMakeLists.txt": text("find_package(GTest REQUIRED)", "gtest_discover_tests(unit)"),
      "test/unit_test.cc": lines(9),
      "build/notes.txt": "kept here\n",
    },
    commands: [
      "test . cmake -B cmake-build && cmake --build cmake-build && ctest --test-dir cmake-build --output-on-failure --no-tests=error",
      "build . cmake -B cmake-build && cmake --build cmake-build",
    ],
    testTools: ["CTest", "GoogleTest"],
  },
  "Python without a package file": {
    files: { "pack.py": lines(9), "test_pack.py": "import unittest\n" },
    commands: ["test . python3 -m unittest discover (guess)"],
  },
  "Python without a package file, its tests in a folder that is no package": {
    files: { "pack.py": lines(9), "tests/test_pack.py": "import unittest\n" },
    commands: ["test . python3 -m unittest discover -s tests (guess)"],
  },
  "Python without a package file, tested by pytest": {
    files: { "pack.py": lines(9), "tests/test_pack.py": "import os\nimport pytest\n" },
    commands: ["test . python3 -m pytest (guess)"],
  },
  "scripts for Node.js without a package file": {
    files: { "pack.mjs": lines(9), "pack.test.mjs": 'import { test } from "node:test";\n' },
    commands: ["test . node --test (guess)"],
  },
  Autotools: {
    files: { "configure.ac": lines(3), "Makefile.am": lines(3), "autogen.sh": "#!/bin/sh\n", "a.c": lines(9) },
    commands: ["test . ./autogen.sh && ./configure && make check", "build . ./autogen.sh && ./configure && make"],
  },
  "CMake below the root": {
    files: { "native/CMakeLists.txt": text("project(a CXX)", "enable_testing()"), "native/sub/CMakeLists.txt": "" },
    commands: [
      "test native cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error",
      "build native cmake -B build && cmake --build build",
    ],
  },
  "Gradle with plugins that judge": {
    files: {
      "settings.gradle.kts": text('rootProject.name = "a"', 'include("core")'),
      "build.gradle.kts": text("plugins {", "    java", "    checkstyle", "    pmd", "}"),
      "core/build.gradle.kts": text(
        'plugins { id("com.github.spotbugs") version "6" }',
        "dependencies {",
        '    testImplementation("org.junit.jupiter:junit-jupiter:5.11")',
        "}",
      ),
    },
    commands: [
      "test . gradle test",
      "lint . gradle checkstyleMain",
      "lint . gradle pmdMain",
      "lint . gradle spotbugsMain",
      "build . gradle assemble",
    ],
    testTools: ["JUnit"],
    packageManagers: ["Gradle"],
  },
  "a Maven plugin bound to its own phase": {
    files: {
      "pom.xml": text(
        "<project>",
        "<build><plugins><plugin>",
        "<artifactId>maven-checkstyle-plugin</artifactId>",
        "<executions><execution><goals><goal>check</goal></goals></execution></executions>",
        "</plugin></plugins></build>",
        "</project>",
      ),
      "src/test/java/ATest.java": lines(3),
    },
    commands: ["test . mvn -B test", "lint . mvn -B verify -DskipTests", "build . mvn -B package -DskipTests"],
  },
  tox: { files: { "setup.py": "setup()\n", "tox.ini": "[tox]\n" }, commands: ["test . tox"], testTools: ["tox"] },
  nox: { files: { "setup.py": "setup()\n", "noxfile.py": lines(3) }, commands: ["test . nox"], testTools: ["nox"] },
  "hatch with a script": {
    files: {
      "pyproject.toml": text(
        "[project]",
        'name = "a"',
        "[tool.hatch.envs.default]",
        'dependencies = ["pytest"]',
        "[tool.hatch.envs.default.scripts]",
        'test = "pytest {args:tests}"',
      ),
    },
    commands: ["test . hatch run test"],
    testTools: ["pytest", "Hatch"],
    packageManagers: ["Hatch"],
  },
  "hatch's own environment for tests": {
    files: { "pyproject.toml": text("[project]", 'name = "a"', "[tool.hatch.envs.hatch-test]", 'extra-dependencies = ["trio"]') },
    commands: ["test . hatch test"],
    packageManagers: ["Hatch"],
  },
  "a workspace of uv": {
    files: {
      "pyproject.toml": text("[project]", 'name = "root"', "[tool.uv.workspace]", 'members = ["packages/*"]'),
      "uv.lock": lines(9),
      "packages/a/pyproject.toml": text("[project]", 'name = "a"', "[dependency-groups]", 'dev = ["pytest"]'),
    },
    commands: ["test packages/a uv run python -m pytest"],
    packageManagers: ["uv"],
  },
  "an application of Django's": {
    files: {
      "requirements/base.txt": text("Django==5.1"),
      "requirements/dev.txt": text("psycopg2"),
      "manage.py": lines(9),
      "shop/tests.py": lines(9),
    },
    commands: ["test . python3 manage.py test"],
    testTools: ["Django's test runner"],
  },
  "PHPUnit without a configuration": {
    files: {
      "composer.json": json({ require: { "symfony/console": "^7" }, "require-dev": { "phpunit/phpunit": "^11" } }),
      "tests/ATest.php": lines(3),
      "phpstan.neon": "parameters: {}\n",
    },
    commands: ["test . vendor/bin/phpunit tests", "lint . vendor/bin/phpstan analyse"],
    testTools: ["PHPUnit"],
    packageManagers: ["Composer"],
  },
  "an application of Laravel's": {
    files: {
      "composer.json": json({ require: { "laravel/framework": "^12" } }),
      artisan: "#!/usr/bin/env php\n",
      "phpunit.xml": "<phpunit/>\n",
    },
    commands: ["test . php artisan test"],
  },
  "a gem with its own script": {
    files: { "a.gemspec": text("Gem::Specification.new do |s|", '  s.name = "a"', "end"), "bin/test": "#!/usr/bin/env ruby\n" },
    commands: ["test . bin/test"],
  },
  "Swift with tests": {
    files: {
      "Package.swift": text('let package = Package(name: "a", targets: [', '    .testTarget(name: "aTests"),', "])"),
      "Sources/a/a.swift": lines(9),
    },
    commands: ["test . swift test", "build . swift build"],
    testTools: ["XCTest"],
  },
  "Bazel alone": {
    files: { "MODULE.bazel": 'module(name = "a")\n', BUILD: "", "a/BUILD.bazel": text("cc_test(", '    name = "a_test",', ")") },
    commands: ["test . bazel test //...", "build . bazel build //..."],
    testTools: ["bazel test"],
  },
  "Deno with tasks": {
    files: { "deno.jsonc": text("{", "  // ours", '  "tasks": { "test": "deno test -A", "build": "deno run build.ts" }', "}") },
    commands: ["test . deno task test", "lint . deno lint (guess)", "build . deno task build"],
    testTools: ["deno test"],
    packageManagers: ["Deno"],
  },
  "Bun without a script": {
    files: {
      "package.json": json({ name: "a", workspaces: ["packages/*"] }),
      "bun.lock": "{}",
      "packages/b/b.test.ts": lines(3),
    },
    commands: ["test . bun test"],
    testTools: ["bun test"],
    packageManagers: ["bun"],
  },
  "Cargo without a test in sight": {
    files: { "Cargo.toml": text("[package]", 'name = "a"'), "src/main.rs": lines(9) },
    commands: ["test . cargo test (guess)", "build . cargo build"],
    testTools: [],
    packageManagers: ["Cargo"],
  },
  "test files whose runner nobody names": {
    files: { "setup.py": "setup()\n", "tests/test_a.py": lines(3) },
    commands: ["test . python3 -m unittest discover (guess)"],
    testTools: [],
  },
};

test.each(Object.keys(TOOLS))("%s", async (name) => {
  const { files, ...expected } = TOOLS[name]!;
  const { testTools, packageManagers, ...analysis } = await analysisOf(files);
  const commands = commandLines(analysis);
  expect({ commands, testTools, packageManagers }).toMatchObject(expected);
  for (const { purpose, command } of analysis.commands)
    expect([command, detectTests(command).isTest]).toEqual([command, purpose === "test"]);
});

const member = (name: string) => json({ name, version: "1.0.0" });
const WORKSPACES: Record<string, Record<string, string>> = {
  "npm workspaces": { "package.json": json({ workspaces: ["a"] }), "package-lock.json": "{}", "a/package.json": member("a") },
  "Yarn workspaces": { "package.json": json({ workspaces: ["a"] }), "yarn.lock": "", "a/package.json": member("a") },
  "Bun workspaces": { "package.json": json({ workspaces: ["a"] }), "bun.lockb": "", "a/package.json": member("a") },
  "pnpm workspaces": { "package.json": "{}", "pnpm-workspace.yaml": "packages: [a]\n", "a/package.json": member("a") },
  "Deno workspace": { "deno.json": json({ workspace: ["a"] }), "a/deno.json": "{}" },
  "Cargo workspace": { "Cargo.toml": text("[workspace]", 'members = ["a"]'), "a/Cargo.toml": text("[package]", 'name = "a"') },
  "Go workspace": { "go.work": "use ./a\n", "a/go.mod": "module a\n" },
  "Maven modules": { "pom.xml": "<project><modules><module>a</module></modules></project>", "a/pom.xml": "<project/>" },
  "Gradle projects": { "settings.gradle": "include 'a'\n", "a/build.gradle": "" },
  "uv workspace": { "pyproject.toml": text("[tool.uv.workspace]", 'members = ["a"]'), "a/pyproject.toml": "" },
  "Dart workspace": { "pubspec.yaml": text("name: root", "workspace: [a]"), "a/pubspec.yaml": "name: a\n" },
  "Elixir umbrella": { "mix.exs": 'apps_path: "apps"\n', "apps/a/mix.exs": "" },
};

test.each(Object.keys(WORKSPACES))("several packages in one project: %s", async (name) => {
  expect((await analysisOf(WORKSPACES[name]!)).monorepo).toBe(name);
});

const NOBODY_FOR: Record<string, Record<string, string>> = {
  "development dependencies": {
    "package.json": json({ name: "a", devDependencies: { express: "5", pg: "8", "better-sqlite3": "11" } }),
    "a.js": lines(9),
  },
  "extras of a library": {
    "pyproject.toml": text(
      "[project]",
      'name = "a"',
      "dependencies = []",
      "[project.optional-dependencies]",
      'sql = ["sqlalchemy"]',
      'web = ["fastapi"]',
    ),
    "a.py": lines(9),
  },
  "groups of a Gemfile": {
    Gemfile: text('gem "rake"', "group :test do", '  gem "rails"', '  gem "pg"', "end", 'gem "sinatra", group: :development'),
    "a.rb": lines(9),
  },
  "optional and development crates": {
    "Cargo.toml": text(
      "[package]",
      'name = "a"',
      "[dependencies]",
      'axum = { version = "0.8", optional = true }',
      "[dev-dependencies]",
      'sqlx = "0.8"',
    ),
    "src/lib.rs": lines(9),
  },
  "configurations that only test": {
    "build.gradle": text(
      "dependencies {",
      "  testImplementation 'org.springframework.boot:spring-boot-starter-web:3'",
      "  testImplementation 'org.flywaydb:flyway-core:10'",
      "}",
    ),
    "src/main/java/A.java": lines(9),
  },
  "what only a test environment needs": {
    "mix.exs": text("{:phoenix, only: :test}", "{:ecto, only: [:dev, :test]}"),
    "lib/a.ex": lines(9),
  },
  "examples, documentation and tests": {
    "package.json": json({ name: "a" }),
    "a.js": lines(9),
    "examples/api/package.json": json({ dependencies: { express: "5", pg: "8" } }),
    "docs/package.json": json({ dependencies: { koa: "3", vue: "3" } }),
    "test/package.json": json({ dependencies: { fastify: "5", knex: "3" } }),
    "docs/schema.sql": lines(99),
    "examples/page.html": lines(99),
  },
};

test.each(Object.keys(NOBODY_FOR))("%s make no backend, frontend or database engineer", async (name) => {
  const { roster, frameworks } = await analysisOf(NOBODY_FOR[name]!);
  expect(frameworks).toEqual([]);
  expect(roster.map(({ roleTitle }) => roleTitle).join()).not.toMatch(/Backend|Frontend|Database/);
});

test("an application that is bundled may list its pages' framework among its tools", async () => {
  const { frameworks, roster } = await analysisOf({
    "package.json": json({ private: true, devDependencies: { svelte: "5", vite: "7" } }),
    "src/App.svelte": lines(9),
  });
  expect(frameworks).toEqual(["Svelte", "Vite"]);
  expect(roster.map(({ roleTitle }) => roleTitle)).toContain("Svelte Frontend Engineer");
});

test("a repository of nothing but examples is told by them", async () => {
  const { frameworks, commands } = await analysisOf({
    "examples/api/package.json": json({ dependencies: { express: "5" }, scripts: { test: "node --test" } }),
    "examples/api/index.js": lines(9),
  });
  expect(frameworks).toEqual(["Express"]);
  expect(commands.map(({ command }) => command)).toEqual(["npm test"]);
});

const REASONS: Record<string, { files: Record<string, string>; reason: string }> = {
  "a target of Make": { files: { Makefile: "test:\n\tx\n", "a.c": lines(3) }, reason: 'tested by "make test"' },
  "a guess without test files": {
    files: { "Cargo.toml": "[package]\n", "src/main.rs": lines(3) },
    reason: 'whether there are tests is not known; "cargo test" is a guess at how they are run',
  },
  "a guess with test files": {
    files: { "setup.py": "setup()\n", "tests/test_a.py": lines(3) },
    reason: '1 test file; "python3 -m unittest discover" is a guess at how they are run',
  },
  "test files alone": {
    files: { "a.lua": lines(3), "tests/a.lua": lines(3), "tests/b.lua": lines(3) },
    reason: "2 test files, but no command that runs them was found",
  },
  nothing: { files: { "a.lua": lines(3) }, reason: "no tests were found for the Lua code yet" },
};

test.each(Object.keys(REASONS))("what is known of the tests is said as surely as it is known: %s", async (name) => {
  const { files, reason } = REASONS[name]!;
  const analysis = await analysisOf(files);
  expect(analysis.roster.find(({ roleTitle }) => roleTitle === "Test Lead")!.reason).toBe(reason);
  const isGuess = analysis.commands.some((one) => one.purpose === "test" && one.isGuess);
  expect(/To test, at a guess: /.test(formatFacts(analysis))).toBe(isGuess);
});
