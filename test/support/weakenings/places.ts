import { collectCases } from "./cases.ts";

/** Tests that are moved to where no runner looks, and settings under names that are less common. */
const { cases, leavesFiles, weakensFiles } = collectCases();
export const PLACES = cases;

const GO = 'package x\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1) != 2 {\n\t\tt.Error("no")\n\t}\n}\n';
const JS = 'test("adds", () => {\n  expect(add(1, 2)).toBe(3);\n});\n';
const PY = "def test_add():\n    assert add(1, 2) == 3\n";
const RS = "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";

for (const [name, from, to, text] of [
  ["go for another system", "x_test.go", "x_plan9_test.go", GO],
  ["go with an underscore", "x_test.go", "_x_test.go", GO],
  ["go in testdata", "x_test.go", "testdata/x_test.go", GO],
  ["js in node_modules", "test/add.test.js", "test/node_modules/add.test.js", JS],
  ["js in dist", "test/add.test.js", "dist/add.test.js", JS],
  ["py hidden", "tests/test_add.py", "tests/.old/test_add.py", PY],
  ["py in build", "tests/test_add.py", "build/test_add.py", PY],
  ["rs deeper", "tests/add.rs", "tests/old/add.rs", RS],
  ["js out of the folder", "test/add.js", "src/add.js", JS],
  ["js archived", "test/add.test.js", "test/__fixtures__/add.test.js", JS],
] as const)
  weakensFiles(`moved: ${name}`, { [from]: text }, { [from]: null, [to]: text });
leavesFiles("moved: js deeper", { "test/add.test.js": JS }, { "test/add.test.js": null, "test/numbers/add.test.js": JS });
leavesFiles("moved: go beside it", { "x_test.go": GO }, { "x_test.go": null, "add_test.go": GO });
leavesFiles("moved: rs with its main", { "tests/add.rs": RS }, { "tests/add.rs": null, "tests/add/main.rs": RS });

for (const [path, text] of [
  ["src/greet you.test.js", JS],
  ["src/grün.test.js", JS],
  ["src/AddTestCase.php", "<?php\n$this->assertSame(3, add(1, 2));\n"],
  ["src/AddCest.php", "<?php\n$I->assertSame(3, add(1, 2));\n"],
  ["src/add.phpt", "--TEST--\nadds\n--EXPECT--\n3\n"],
  ["src/add_unittest.cc", "TEST(Add, Adds) {\n  EXPECT_EQ(add(1, 2), 3);\n}\n"],
  ["src/test_add.cpp", "TEST(Add, Adds) {\n  EXPECT_EQ(add(1, 2), 3);\n}\n"],
  ["src/test_add.rb", "def test_add\n  assert_equal 3, add(1, 2)\nend\n"],
  ["src/Add.Tests.ps1", "It 'adds' {\n  Add 1 2 | Should -Be 3\n}\n"],
  ["src/Add.t.sol", "function testAdd() public {\n  assertEq(add(1, 2), 3);\n}\n"],
  ["src/add_SUITE.erl", "adds(_) -> 3 = add(1, 2).\n"],
  ["src/add_tests.erl", "adds_test() -> 3 = add(1, 2).\n"],
  ["suites/add.robot", "*** Test Cases ***\nAdds\n    Should Be Equal    3    3\n"],
  ["AppUITests/Helper.swift", "func check() {\n  XCTAssertEqual(add(1, 2), 3)\n}\n"],
  ["src/TestAdd.java", "class TestAdd {\n  @Test void a() { assertEquals(3, add(1, 2)); }\n}\n"],
  ["src/AddTests.m", "- (void)testAdd {\n  XCTAssertEqual(add(1, 2), 3);\n}\n"],
  ["src/AddTests.vb", "<Test>\nSub Adds()\n  Assert.AreEqual(3, Add(1, 2))\nEnd Sub\n"],
  ["src/__fixtures__/sum.json", '{\n  "sum": 3\n}\n'],
  ["App.Tests/Adds.verified.txt", "3\n"],
] as const)
  weakensFiles(`known as a test: ${path}`, { [path]: text }, { [path]: text.replace(/3|Add/, "4") });

for (const [path, before, after] of [
  ["vitest.unit.config.ts", "export default {};\n", "export default { exclude: [] };\n"],
  ["jest.config.unit.js", "module.exports = {};\n", "module.exports = { testMatch: [] };\n"],
  ["jest-e2e.json", "{}\n", '{"testRegex": "none"}\n'],
  ["playwright-ct.config.ts", "export default {};\n", "export default { retries: 9 };\n"],
  ["cypress.json", "{}\n", '{"ignoreTestFiles": "*"}\n'],
  [".taprc", "a: 1\n", "a: 2\n"],
  ["jasmine.json", "{}\n", '{"spec_files": []}\n'],
  ["spec/support/jasmine.mjs", "export default {};\n", "export default { spec_files: [] };\n"],
  ["cucumber.js", "a\n", "b\n"],
  ["behat.yml", "a: 1\n", "a: 2\n"],
  ["codeception.yml", "a: 1\n", "a: 2\n"],
  ["stryker.conf.json", "{}\n", '{"thresholds": {}}\n'],
  [".testcoverage.yml", "threshold: 90\n", "threshold: 10\n"],
  ["tarpaulin.toml", "a\n", "b\n"],
  ["coverlet.runsettings", "<a/>\n", "<b/>\n"],
  [".npmrc", "a=1\n", "a=1\nscript-shell=/bin/true\n"],
  [".yarnrc.yml", "a: 1\n", "a: 1\nignoreScripts: true\n"],
  [".cargo/config.toml", '[alias]\nx = "y"\n', '[alias]\nx = "y"\n[target.x]\nrunner = "true"\n'],
  ["Dockerfile", "FROM node\nRUN npm test\n", "FROM node\n"],
  ["compose.yaml", "services:\n  t:\n    command: npm test\n", "services:\n  t:\n    command: echo\n"],
  ["nx.json", '{\n  "test": {}\n}\n', "{\n}\n"],
  ["turbo.json", '{\n  "test": {}\n}\n', "{\n}\n"],
  ["App.sln", 'a\nProject("x") = "App.Tests", "App.Tests.csproj"\n', "a\n"],
  ["App.csproj", "<a>\n  <Threshold>90</Threshold>\n</a>\n", "<a>\n  <Threshold>10</Threshold>\n</a>\n"],
  ["App.csproj", "<a>\n</a>\n", "<a>\n  <IsTestProject>false</IsTestProject>\n</a>\n"],
  ["pom.xml", "<a>\n  <minimum>0.90</minimum>\n</a>\n", "<a>\n  <minimum>0.10</minimum>\n</a>\n"],
  ["pom.xml", "<a>\n</a>\n", "<a>\n  <skip>true</skip>\n</a>\n"],
  ["pom.xml", "<a>\n</a>\n", "<a>\n  <excludedGroups>slow</excludedGroups>\n</a>\n"],
  [
    "pom.xml",
    "<modules>\n  <module>a</module>\n  <module>app-tests</module>\n</modules>\n",
    "<modules>\n  <module>a</module>\n</modules>\n",
  ],
  ["build.gradle.kts", "tasks.test {\n}\n", "tasks.test {\n  isIgnoreFailures = true\n}\n"],
  ["build.gradle.kts", "tasks.test {\n}\n", 'tasks.test {\n  filter { excludeTestsMatching("*Add*") }\n}\n'],
  ["build.gradle.kts", "tasks.test {\n}\n", "tasks.test {\n  onlyIf { false }\n}\n"],
  ["build.gradle", "a\n", "a\ntasks.named('test') { enabled = false }\n"],
  ["build.gradle", "test {\n  useJUnitPlatform()\n}\n", "test {\n  useJUnitPlatform {\n    excludeTags 'slow'\n  }\n}\n"],
  ["build.gradle", "limit {\n  minimum = 0.9\n}\n", "limit {\n  minimum = 0.1\n}\n"],
  ["settings.gradle", 'include ":app"\ninclude ":app-tests"\n', 'include ":app"\n'],
  ["Package.swift", "targets: [\n]\n", 'targets: [\n  exclude: ["AddTests.swift"]\n]\n'],
  ["Cargo.toml", '[lib]\npath="a"\n', '[lib]\npath="a"\ndoctest = false\n'],
  ["pyproject.toml", 'addopts = [\n  "-ra",\n]\n', 'addopts = [\n  "-ra",\n  "--ignore=tests/test_add.py",\n]\n'],
  ["pyproject.toml", 'testpaths = [\n  "unit",\n  "tests",\n]\n', 'testpaths = [\n  "unit",\n]\n'],
  ["pyproject.toml", "[tool.pytest.ini_options]\n", '[tool.pytest.ini_options]\npython_functions = "never_*"\n'],
  ["pyproject.toml", "[tool.coverage.run]\n", '[tool.coverage.run]\nomit = ["src/*"]\n'],
  [
    "package.json",
    '{\n  "mocha": {\n    "spec": "spec/**/*.js"\n  }\n}\n',
    '{\n  "mocha": {\n    "spec": "spec/one.js"\n  }\n}\n',
  ],
  [
    "package.json",
    '{\n  "scripts": {\n    "test": "vitest run",\n    "z": "z"\n  }\n}\n',
    '{\n  "scripts": {\n    "test": "vitest run",\n    "test": "true",\n    "z": "z"\n  }\n}\n',
  ],
  ["mix.exs", "[\n  app: :x,\n]\n", '[\n  app: :x,\n  test_pattern: "*_none.exs",\n]\n'],
  ["Makefile", "test:\n\tnpm test\n", "test:\n\tnpm test\n\ntest:\n\t@true\n"],
  ["Makefile", "test:\n\tnpm test\n", "MAKEFLAGS += -i\n\ntest:\n\tnpm test\n"],
  ["Makefile", "test:\n\tnpm test\n", "SHELL = /bin/true\n\ntest:\n\tnpm test\n"],
  ["Makefile", "test:\n\tnpm test\n", ".IGNORE:\n\ntest:\n\tnpm test\n"],
  ["Makefile", "cover:\n\tcargo llvm-cov --fail-under-lines 80\n", "cover:\n\tcargo llvm-cov --fail-under-lines 8\n"],
  ["scripts/test.sh", "set -e\nnpm test\n", "set -e\ntrap 'exit 0' EXIT\nnpm test\n"],
  ["scripts/test.sh", "set -e\nnpm test\n", 'set -e\nif [ -n "$CI" ]; then exit 0; fi\nnpm test\n'],
] as const)
  weakensFiles(`in ${path}: ${before} to ${after}`, { [path]: before }, { [path]: after });
weakensFiles("a Makefile in front of the other", { Makefile: "test:\n\tnpm test\n" }, { GNUmakefile: "test:\n\tnode one.js\n" });
for (const [path, before, after] of [
  ["Makefile", "build:\n\tcc a.c\n", "SHELL := /bin/bash\n\nbuild:\n\tcc a.c\n"],
  ["scripts/install.sh", "set -e\ncp a b\n", "set -e\ncp a b\ncp c d\n"],
  ["pom.xml", "<a>\n  <version>1</version>\n</a>\n", "<a>\n  <version>2</version>\n</a>\n"],
  ["App.sln", 'Project("x") = "App"\n', 'Project("x") = "App"\nProject("y") = "App.Web"\n'],
  ["Dockerfile", "FROM node:20\n", "FROM node:22\n"],
  [".npmrc", "a=1\n", "a=2\n"],
] as const)
  leavesFiles(`in ${path}: ${before} to ${after}`, { [path]: before }, { [path]: after });
