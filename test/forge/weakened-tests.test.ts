import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { findWeakenedTests, weakenedBetween } from "../../src/git/weakened-tests.ts";
import { testGit } from "../support/git.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const BEFORE: Record<string, string> = {
  "test/greet.test.ts":
    'test("greets", () => {\n  expect(greet()).toBe("hello");\n  expect(greet("a")).toBe("hello a");\n});\ntest("parts", () => {\n  expect(1).toBe(1);\n});\n',
  "tests/test_greet.py": "def test_greet():\n    assert greet() == 'hello'\n\n\ndef test_part():\n    assert part() == 1\n",
  "greet_test.go": 'func TestGreet(t *testing.T) {\n\tif greet() != "hello" {\n\t\tt.Errorf("no")\n\t}\n}\n',
  "src/test/java/GreetTest.java": "class GreetTest {\n  @Test\n  void greets() {\n    assertEquals(1, 1);\n  }\n}\n",
  "tests/greet.rs": "#[test]\nfn greets() {\n    assert_eq!(1, 1);\n}\n",
  ".github/workflows/ci.yml": "on: push\njobs: {}\n",
  "package.json": '{\n  "name": "greet",\n  "scripts": {\n    "build": "tsc",\n    "test": "vitest run"\n  }\n}\n',
  Makefile: "build:\n\tcc greet.c\n\ntest:\n\tgo test ./...\n",
  "pyproject.toml": '[project]\nname = "greet"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
  "vitest.config.ts": "export default {};\n",
  "pom.xml": "<project><build><plugins></plugins></build></project>\n",
  "test/__snapshots__/greet.test.ts.snap": 'exports[`greets 1`] = `"hello"`;\n',
  "src/lib.rs":
    "pub fn greet() {\n    assert!(true);\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn greets() {\n        assert_eq!(1, 1);\n    }\n}\n",
  "test/long.test.ts": 'test("long", () => {\n  expect(greet("you")).toEqual(\n    "hello you",\n  );\n});\n',
  "vite.config.ts": 'export default {\n  plugins: [],\n  test: { environment: "node" },\n};\n',
  "scripts/test.sh": "#!/bin/sh\nset -e\nnpm test\n",
  ".coveragerc": "[report]\nfail_under = 90\n",
  "src/greet.ts": 'export const greet = () => "hello";\nexpect(1);\n',
};

/** The findings after files are changed to this; null deletes one. */
function found(changes: Record<string, string | null>): string[] {
  const project = makeProject(BEFORE);
  for (const [path, text] of Object.entries(changes)) {
    if (text === null) rmSync(join(project, path));
    else {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), text);
    }
  }
  git(project, "add", "-A");
  const diff = execFileSync("git", ["diff", "--cached", "-M", "HEAD"], { cwd: project, encoding: "utf8" });
  return findWeakenedTests(diff).map(({ path, what }) => `${path}: ${what}`);
}
const of = (path: string) => BEFORE[path]!;

test("deleted, skipped and loosened tests and a changed CI are found, in several languages", () => {
  const ts = "test/greet.test.ts";
  const python = "tests/test_greet.py";
  expect(found({ [ts]: null })).toEqual([`${ts}: a file with tests was deleted`]);
  expect(found({ [ts]: of(ts).replace('test("greets"', 'test.skip("greets"') })).toEqual([`${ts}: 1 test is skipped`]);
  expect(found({ [ts]: of(ts).replace('test("parts"', 'test.only("parts"') })).toEqual([`${ts}: only some of its tests are run`]);
  expect(found({ [ts]: of(ts).replace(/test\("parts"[\s\S]*$/, "") })).toEqual([`${ts}: removed: "parts"`]);
  expect(found({ [ts]: of(ts).replace('  expect(greet("a")).toBe("hello a");\n', "") })).toEqual([`${ts}: 1 fewer assertion`]);
  expect(found({ [ts]: of(ts).replace('toBe("hello")', "toBeDefined()") })).toEqual([`${ts}: 1 assertion was changed`]);
  expect(found({ [python]: of(python).replace("def test_part", "@pytest.mark.skip\ndef test_part") })).toEqual([
    `${python}: 1 test is skipped`,
  ]);
  expect(found({ [python]: of(python).replace(/\n\ndef test_part[\s\S]*$/, "") })).toEqual([`${python}: removed: "test_part"`]);
  expect(found({ "greet_test.go": of("greet_test.go").replace("{\n", "{\n\tt.Skip()\n") })).toEqual([
    "greet_test.go: 1 test is skipped",
  ]);
  const java = "src/test/java/GreetTest.java";
  expect(found({ [java]: of(java).replace("  @Test\n", "") })).toEqual([`${java}: 1 fewer test`]);
  expect(found({ "tests/greet.rs": of("tests/greet.rs").replace("#[test]\n", "#[test]\n#[ignore]\n") })).toEqual([
    "tests/greet.rs: 1 test is skipped",
  ]);
  expect(found({ ".github/workflows/ci.yml": "on: []\n" })).toEqual([".github/workflows/ci.yml: a file of the CI was changed"]);
  expect(found({ ".github/workflows/ci.yml": null })).toEqual([".github/workflows/ci.yml: a file of the CI was deleted"]);
});

test("changes of what runs the tests, of recorded answers and of tests beside the code are found", () => {
  const runs = (path: string) => [`${path}: what runs the tests was changed`];
  expect(found({ "package.json": of("package.json").replace("vitest run", "true") })).toEqual(runs("package.json"));
  expect(found({ "package.json": of("package.json").replace("vitest run", "vitest run --exclude test/greet.test.ts") })).toEqual(
    runs("package.json"),
  );
  expect(found({ Makefile: of("Makefile").replace("go test", "-go test") })).toEqual(runs("Makefile"));
  expect(found({ "pyproject.toml": `${of("pyproject.toml")}addopts = "--deselect tests/test_greet.py"\n` })).toEqual(
    runs("pyproject.toml"),
  );
  expect(
    found({ "pom.xml": of("pom.xml").replace("<build>", "<properties><skipTests>true</skipTests></properties><build>") }),
  ).toEqual(runs("pom.xml"));
  expect(found({ "vitest.config.ts": "export default { test: { exclude: ['test'] } };\n" })).toEqual([
    "vitest.config.ts: the settings of a test runner were changed",
  ]);
  const snapshot = "test/__snapshots__/greet.test.ts.snap";
  expect(found({ [snapshot]: of(snapshot).replace("hello", "bye") })).toEqual([
    `${snapshot}: recorded answers of tests were changed`,
  ]);
  expect(found({ "src/lib.rs": of("src/lib.rs").replace(/\n#\[cfg[\s\S]*$/, "") })).toEqual(["src/lib.rs: 1 fewer test"]);
  expect(found({ "src/lib.rs": of("src/lib.rs").replace("    #[test]\n", "    #[test]\n    #[ignore]\n") })).toEqual([
    "src/lib.rs: 1 test is skipped",
  ]);
  const ts = "test/greet.test.ts";
  expect(found({ [ts]: of(ts).replace('test("greets"', 'test.concurrent.skip("greets"') })).toEqual([`${ts}: 1 test is skipped`]);
});

test("neighbours of those are found: names that no runner knows, swallowed failures, lower thresholds, hidden lines", () => {
  const ts = "test/greet.test.ts";
  const python = "tests/test_greet.py";
  const long = "test/long.test.ts";
  expect(found({ [ts]: of(ts).replace('test("parts"', 'test.todo("parts"') })).toEqual([`${ts}: 1 test is skipped`]);
  expect(found({ [python]: `import pytest\npytestmark = pytest.mark.skip\n\n${of(python)}` })).toEqual([
    `${python}: 1 test is skipped`,
  ]);
  expect(found({ [python]: of(python).replace("def test_part", "@pytest.mark.xfail\ndef test_part") })).toEqual([
    `${python}: 1 test is skipped`,
  ]);
  expect(found({ "tests/conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = []\n" })).toEqual([
    "tests/conftest.py: 1 test is skipped",
  ]);
  // Renamed so that no runner finds it: as a rename in git, and too different for git to recognize one.
  expect(found({ [ts]: null, "test/greet.ts": of(ts) })).toEqual([
    `test/greet.ts: it was ${ts}, which a test runner knows by its name`,
  ]);
  expect(found({ [ts]: null, "test/old.ts": `${"// more\n".repeat(60)}${of(ts)}` })).toEqual([
    `${ts}: a file with tests was deleted`,
  ]);
  expect(found({ [python]: null, "tests/greet_tests.py.txt": of(python) })).toEqual([
    `tests/greet_tests.py.txt: it was ${python}, which a test runner knows by its name`,
  ]);
  expect(found({ [python]: of(python).replace("def test_part", "def part_test") })).toEqual([`${python}: removed: "test_part"`]);
  const classes = "class TestGreet:\n    def test_one(self):\n        assert 1\n";
  expect(found({ [python]: of(python).replace("def test_part", "def _test_part") })).toEqual([`${python}: removed: "test_part"`]);
  expect(found({ "tests/test_class.py": classes })).toEqual([]);
  expect(found({ ".github/workflows/ci.yml": null, "docs/ci.yml": of(".github/workflows/ci.yml") })).toEqual([
    "docs/ci.yml: a file of the CI was changed",
  ]);
  expect(found({ "vitest.config.ts": null, "config/runner.ts": of("vitest.config.ts") })).toEqual([
    "config/runner.ts: the settings of a test runner were changed",
  ]);
  const runs = (path: string) => [`${path}: what runs the tests was changed`];
  expect(found({ "package.json": of("package.json").replace("vitest run", "vitest run || true") })).toEqual(runs("package.json"));
  expect(found({ "package.json": of("package.json").replace('"tsc"', '"tsc || true"') })).toEqual(runs("package.json"));
  expect(found({ "scripts/test.sh": of("scripts/test.sh").replace("npm test", "npm test || true") })).toEqual(
    runs("scripts/test.sh"),
  );
  expect(found({ "scripts/test.sh": `${of("scripts/test.sh")}exit 0\n` })).toEqual(runs("scripts/test.sh"));
  expect(found({ "vite.config.ts": of("vite.config.ts").replace('"node"', '"node", exclude: ["test/greet.test.ts"]') })).toEqual(
    runs("vite.config.ts"),
  );
  expect(
    found({ "package.json": of("package.json").replace('"scripts"', '"jest": { "coverageThreshold": {} },\n  "scripts"') }),
  ).toEqual(runs("package.json"));
  expect(found({ ".coveragerc": "[report]\nfail_under = 10\n" })).toEqual([
    ".coveragerc: the settings of a test runner were changed",
  ]);
  expect(found({ "pytest.ini": "[pytest]\naddopts = --deselect tests/test_greet.py\n" })).toEqual([
    "pytest.ini: the settings of a test runner were changed",
  ]);
  // An expected value on its own line, and a test that ends before its assertions.
  expect(found({ [long]: of(long).replace('"hello you"', '"bye"') })).toEqual([`${long}: an expected value was changed`]);
  expect(found({ [ts]: of(ts).replace("{\n", "{\n  return;\n") })).toEqual([`${ts}: a test ends early`]);
  // Files that git does not show line by line, because of a zero byte or an attribute.
  expect(found({ [ts]: `\0${of(ts)}` })).toEqual([`${ts}: a file with tests was made unreadable`]);
  expect(found({ ".gitattributes": "*.test.ts -diff\n", [ts]: of(ts).replace(/test\("parts"[\s\S]*$/, "") })).toEqual([
    `${ts}: a file with tests was made unreadable`,
  ]);
  expect(found({ ".gitattributes": "package.json binary\n", "package.json": "{}\n" })).toEqual(runs("package.json"));
});

test("a change that is too large to be read whole is not taken for a harmless one", async () => {
  const project = makeProject(BEFORE);
  // Sorted before and after the test, so that the test's lines are in the middle of the diff.
  for (const name of ["a.txt", "z.txt"]) writeFileSync(join(project, name), "padding of a line\n".repeat(130_000));
  writeFileSync(join(project, "test/greet.test.ts"), "");
  git(project, "add", "-A");
  const tree = git(project, "write-tree");
  const found = await weakenedBetween(testGit(), project, "HEAD", tree);
  expect(found).toContainEqual({ path: ".", what: "the change is too large for its tests to be looked at" });
});

test("Rust's tests beside the code are known, whatever the project has git name above a change", async () => {
  const steps = "        step();\n".repeat(12);
  const path = "src/long.rs";
  const text = `#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n${steps}        assert_eq!(add(1, 2), 3);\n    }\n}\n`;
  const project = makeProject({ ".gitattributes": "*.rs diff=rust\n", [path]: text });
  writeFileSync(join(project, path), text.replace("assert_eq!(add(1, 2), 3)", "assert!(true)"));
  git(project, "add", "-A");
  const found = await weakenedBetween(testGit(), project, "HEAD", git(project, "write-tree"));
  expect(found).toEqual([{ path, what: "1 assertion was changed" }]);
});

test("new tests, moved tests and changes of other files are not", () => {
  const ts = "test/greet.test.ts";
  expect(found({ [ts]: `${of(ts)}test("more", () => {\n  expect(2).toBe(2);\n});\n` })).toEqual([]);
  expect(found({ [ts]: null, "test/moved.test.ts": of(ts) })).toEqual([]);
  expect(found({ [ts]: null, "test/deep/greet.test.ts": of(ts) })).toEqual([]);
  expect(found({ "test/data/picture.png": "\0\u0001" })).toEqual([]);
  expect(found({ "vite.config.ts": of("vite.config.ts").replace("[]", "[vue()]") })).toEqual([]);
  expect(found({ "scripts/test.sh": of("scripts/test.sh").replace("set -e", "set -eu") })).toEqual([]);
  expect(found({ "src/greet.ts": "export const greet = () => 1;\n" })).toEqual([]);
  expect(found({ "src/lib.rs": of("src/lib.rs").replace("assert!(true);", "") })).toEqual([]);
  expect(found({ "package.json": of("package.json").replace('"tsc"', '"tsc -b"') })).toEqual([]);
  expect(
    found({ "package.json": of("package.json").replace('"build"', '"test:more": "vitest run more",\n    "build"') }),
  ).toEqual([]);
  expect(found({ Makefile: of("Makefile").replace("cc greet.c", "cc -O2 greet.c") })).toEqual([]);
  expect(found({ "test/__snapshots__/new.test.ts.snap": "exports[`new 1`] = `1`;\n" })).toEqual([]);
});
