import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepingGoing, notReachedAfterFailure } from "../../src/project/keep-going.ts";
import { json, text } from "../fixtures/repositories/shape.ts";
import { temporaryFolder } from "../support/home.ts";
import { projectOf } from "../support/project.ts";

test.each([
  ["cargo test", "cargo test --no-fail-fast"],
  ["cargo +nightly test --workspace -- --nocapture", "cargo +nightly test --no-fail-fast --workspace -- --nocapture"],
  ["RUSTFLAGS='-D warnings' cargo t -p a", "RUSTFLAGS='-D warnings' cargo t --no-fail-fast -p a"],
  ["cargo nextest run --all", "cargo nextest run --no-fail-fast --all"],
  ["cd core && cargo test && cargo doc", "cd core && cargo test --no-fail-fast && cargo doc"],
  ["mvn -B test", "mvn -fae -B test"],
  ["./mvnw verify", "./mvnw -fae verify"],
  ["./gradlew check", "./gradlew --continue check"],
  ["gradle :core:test", "gradle --continue :core:test"],
  ["make test", "make -k test"],
  ["pnpm --recursive --if-present run test", "pnpm --no-bail --recursive --if-present run test"],
  ["pnpm -r test", "pnpm --no-bail -r test"],
  ["pnpm --filter=./a --filter=./b test", "pnpm --no-bail --filter=./a --filter=./b test"],
  ["npx turbo run test", "npx turbo run --continue test"],
  ["yarn lerna run test --scope=a", "yarn lerna run --no-bail test --scope=a"],
])("a runner that would stop at the first failing package goes on: %s", (command, going) => {
  expect(keepingGoing(command)).toBe(going);
  expect(keepingGoing(going)).toBe(going);
});

test.each([
  ...[
    "cargo build",
    "cargo test --no-run",
    "cargo clippy",
    "mvn -B package -DskipTests",
    "./gradlew assemble",
    "make",
    "make all",
  ],
  ...["make -n test", "mvn -ff test", "npm test", "pnpm test", "pytest -q", "go test ./...", "node --test", "ctest", "make lint"],
])("nothing else is changed: %s", (command) => expect(keepingGoing(command)).toBe(command));

const scripts = (own: Record<string, string>) => ({ "package.json": json({ name: "a", scripts: own }) });
const STOPS: Record<string, { command?: string; files: Record<string, string>; unreached: string }> = {
  "a script whose tests come first": { files: scripts({ test: "mocha && eslint ." }), unreached: '"eslint ."' },
  "a script of scripts": {
    files: scripts({ test: "npm run unit && npm run types", unit: "NODE_ENV=test vitest run", types: "tsc --noEmit" }),
    unreached: '"npm run types"',
  },
  "a script that is followed by another": {
    files: scripts({ test: "node --test", posttest: "npm run lint", lint: "eslint ." }),
    unreached: '"npm run lint"',
  },
  "a script whose tests are in the one before": {
    files: scripts({ pretest: "jest", test: "eslint ." }),
    unreached: '"eslint ."',
  },
  "tests of two kinds": { files: scripts({ test: "jest unit && jest e2e" }), unreached: '"jest e2e"' },
  "a group of scripts": {
    files: scripts({ test: "run-s test:*", "test:unit": "ava", "test:types": "tsd" }),
    unreached: '"npm run test:types"',
  },
  "a line of commands": { command: "pytest && mypy .", files: {}, unreached: '"mypy ."' },
  "a line in another folder": {
    command: "cd web && npm test",
    files: { "web/package.json": json({ scripts: { test: "jest && tsc" } }) },
    unreached: '"tsc"',
  },
  "a runner told to stop": { command: "pytest -x", files: {}, unreached: '"the tests after the first failing one of pytest -x"' },
  "a runner in a script told to stop": {
    files: scripts({ test: "mocha --bail" }),
    unreached: '"the tests after the first failing one of mocha --bail"',
  },
  "a runner set up to stop": {
    files: { ...scripts({ test: "mocha" }), ".mocharc.yml": "spec: test\nbail: true\n" },
    unreached: '"the tests after the first failing one of mocha"',
  },
  "Vitest set up to stop": {
    files: { ...scripts({ test: "vitest run" }), "vitest.config.ts": "export default { test: { bail: 1 } };\n" },
    unreached: '"the tests after the first failing one of vitest run"',
  },
  "PHPUnit set up to stop": {
    command: "vendor/bin/phpunit",
    files: { "phpunit.xml": '<phpunit stopOnFailure="true"/>\n' },
    unreached: '"the tests after the first failing one of vendor/bin/phpunit"',
  },
  "Go told to stop": {
    command: "go test -failfast ./...",
    files: {},
    unreached: '"the tests after the first failing one of go test -failfast ./..."',
  },
  "packages behind a script": {
    files: scripts({ test: "lerna run test" }),
    unreached: '"the packages after the first failing one of lerna run test"',
  },
  "a recipe with lines after the tests": {
    command: "make test",
    files: { Makefile: text("PYTEST = pytest", "test:", "\t@$(PYTEST) -q", "\tmypy .", "", "lint:", "\truff .") },
    unreached: '"mypy ."',
  },
  "a recipe after a prerequisite that tests": {
    command: "make check",
    files: { Makefile: text("check: unit docs", "\t./more.sh", "unit:", "\tpytest", "docs:", "\tmkdocs build") },
    unreached: '"./more.sh"',
  },
  "a recipe of just": {
    command: "just test",
    files: { justfile: text("test: unit lint", "unit:", "  cargo test", "lint:", "  cargo clippy") },
    unreached: '"just lint"',
  },
  "a strict shell script": {
    command: "./ci.sh",
    files: { "ci.sh": text("#!/bin/sh", "set -eu", "npm run build", "node --test", "", "# types", "npx tsc") },
    unreached: '"npx tsc"',
  },
  "Composer's scripts": {
    command: "composer test",
    files: { "composer.json": json({ scripts: { test: ["@unit", "phpstan"], unit: "phpunit" } }) },
    unreached: '"phpstan"',
  },
};
test.each(Object.keys(STOPS))("what is not reached after a failing test is known: %s", (name) => {
  const { command = "npm test", files, unreached } = STOPS[name]!;
  const top = projectOf({ "a.txt": "a\n", ...files });
  expect(notReachedAfterFailure(command, { top, cwd: top })).toBe(unreached);
});

const REACHES: Record<string, { command?: string; files: Record<string, string> }> = {
  "tests at the end": { files: scripts({ test: "eslint . && tsc && vitest run" }) },
  "tests after the script before": { files: scripts({ pretest: "npm run build", build: "tsc", test: "jest" }) },
  "what only prints": { command: "pytest && echo fine", files: {} },
  "commands that run in any case": { command: "pytest; mypy .", files: {} },
  "a shell script that goes on": { command: "sh ci.sh", files: { "ci.sh": text("node --test", "npx tsc") } },
  "a recipe of one line": {
    command: "make test",
    files: { Makefile: text("test: build", "\tgo test ./...", "build:", "\tgo build") },
  },
  "prerequisites beside each other": {
    command: "make test",
    files: { Makefile: text("test: unit lint", "unit:", "\tpytest", "lint:", "\truff check .") },
  },
  "a recipe whose later line may fail": { command: "make test", files: { Makefile: text("test:", "\tpytest", "\t-mypy .") } },
  "scripts that call each other": { files: scripts({ test: "npm run a", a: "npm test" }) },
  "a runner set up to go on": {
    files: { ...scripts({ test: "mocha" }), ".mocharc.json": '{"bail": false}' },
  },
  "a bail of none": { command: "npx vitest run --bail=0", files: {} },
  "no file at all": { command: "make check", files: {} },
};
test.each(Object.keys(REACHES))("a check that reaches everything is not doubted: %s", (name) => {
  const { command = "npm test", files } = REACHES[name]!;
  const top = projectOf({ "a.txt": "a\n", ...files });
  expect(notReachedAfterFailure(command, { top, cwd: top })).toBeUndefined();
});

test("no file outside of the project is read for it", () => {
  const outside = temporaryFolder();
  writeFileSync(join(outside, "package.json"), json({ scripts: { test: "jest && private words" } }));
  const top = projectOf({ "a.txt": "a\n" });
  expect(notReachedAfterFailure(`cd ${outside} && npm test`, { top, cwd: top })).toBeUndefined();
});
