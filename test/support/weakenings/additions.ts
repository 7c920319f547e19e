import { collectCases, r } from "./cases.ts";

/** Changes that take no line away, so that only what they add can give them away. */
const { cases, leaves, leavesFiles, weakens, weakensFiles } = collectCases();
export const ADDITIONS = cases;

const JS =
  'import { expect, test, vi } from "vitest";\nimport { add } from "../src/add.js";\n\ntest("adds", () => {\n  expect(add(1, 2)).toBe(3);\n});\n';
const js = "test/add.test.js";
weakens("js mocha done", js, JS, r("() => {\n", "(done) => {\n  return done();\n"));
weakens("js returned value", js, JS, r('"adds", () => {\n', '"adds", () => {\n  return Promise.resolve(add);\n'));
weakens("js hook that skips", js, JS, (s) => `${s}beforeEach(({ skip }) => skip());\n`);
weakens("js hook that exits", js, JS, (s) => `${s}beforeAll(() => process.exit(0));\n`);
weakens("js exit code", js, JS, (s) => `${s}process.on("exit", () => {\n  process.exitCode = 0;\n});\n`);
weakens("js assert stubbed", js, JS, r("\ntest(", '\nvi.spyOn(assert, "equal").mockReturnValue();\ntest('));
weakens("js global defined", js, JS, r("\ntest(", '\nObject.defineProperty(globalThis, "expect", { value: fake });\ntest('));
weakens("js subject mocked", js, JS, r("\ntest(", '\nvi.mock("../src/add.js", () => ({ add: () => 3 }));\ntest('));
weakens("jest subject mocked", js, JS, r("\ntest(", '\njest.mock("../src/add", () => ({ add: () => 3 }));\ntest('));
leaves("js other module mocked", js, JS, r("\ntest(", '\nvi.mock("node:fs");\ntest('));
leaves("js helper with return", js, JS, (s) => `${s}\nfunction three() {\n  return 3;\n}\n`);
leaves("js new test with return", js, JS, (s) => `${s}\ntest("two", async () => {\n  return expect(add(1, 1)).toBe(2);\n});\n`);
const TYPES = 'import { add } from "../src/add.js";\n\ntest("refuses text", () => {\n  // @ts-expect-error\n  add("a");\n});\n';
weakens("ts nocheck", "test/add.test.ts", TYPES, (s) => `// @ts-nocheck\n${s}`);
weakens("ts expect-error", "test/add.test.ts", TYPES, r("  // @ts-expect-error\n", ""));

const PY = "from add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
const py = "tests/test_add.py";
weakens(
  "py session finish",
  "conftest.py",
  "import os\n",
  (s) => `${s}\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n`,
);
weakens("py main", "conftest.py", "import os\n", (s) => `${s}\n\ndef pytest_cmdline_main(config):\n    return 0\n`);
weakens("py at exit", py, PY, (s) => `import atexit, os\natexit.register(lambda: os._exit(0))\n${s}`);
weakens("py raise pytest skip", py, PY, r("():\n", "():\n    raise pytest.skip.Exception\n"));
weakens(
  "py unittest replaced",
  "tests/test_b.py",
  "import unittest\n\n\nclass TestB(unittest.TestCase):\n    def test_b(self):\n        self.assertEqual(1, 1)\n",
  (s) => `${s}\n    def assertEqual(self, *args):\n        pass\n`,
);
weakensFiles("py runner shadowed", { "add.py": "a = 1\n" }, { "pytest.py": "print('ok')\n" });
weakensFiles("py site", { "add.py": "a = 1\n" }, { "sitecustomize.py": "import os\n" });
leaves(
  "py hook for options",
  "conftest.py",
  "import os\n",
  (s) => `${s}\n\ndef pytest_addoption(parser):\n    parser.addoption("--slow")\n`,
);

const GO = 'package x\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1) != 2 {\n\t\tt.Error("no")\n\t}\n}\n';
weakensFiles(
  "go init in a new file",
  { "x_test.go": GO },
  { "a_test.go": 'package x\n\nimport "os"\n\nfunc init() {\n\tos.Exit(0)\n}\n' },
);
weakens("go suite skip", "x_test.go", GO, r("T) {\n", 'T) {\n\tsuite.T().Skip("later")\n'));
weakens("go ginkgo skip", "x_test.go", GO, r("T) {\n", 'T) {\n\tSkip("later")\n'));
weakens("go other name", "x_test.go", GO, r("T) {\n", 'T) {\n\ttt.Skip("later")\n'));

const JAVA = "class AddTest {\n  @Test\n  void adds() {\n    assertEquals(3, add(1, 2));\n  }\n}\n";
const java = "src/test/java/AddTest.java";
weakens("java aborted", java, JAVA, r("() {\n", '() {\n    throw new TestAbortedException("x");\n'));
weakens("java testng skip", java, JAVA, r("() {\n", '() {\n    throw new SkipException("x");\n'));
weakens("java assumptions abort", java, JAVA, r("() {\n", "() {\n    Assumptions.abort();\n"));
weakens("java assert shadowed", java, JAVA, r(/}\n$/, "\n  static void assertEquals(Object a, Object b) {\n  }\n}\n"));
weakensFiles(
  "java platform settings",
  { [java]: JAVA },
  { "src/test/resources/junit-platform.properties": "junit.jupiter.execution.dryRun.enabled=true\n" },
);
weakensFiles("java testng suite", { "testng.xml": "<suite>\n</suite>\n" }, { "testng.xml": "<suite>\n<exclude/>\n</suite>\n" });
const KT = "class AddTest {\n  @Test\n  fun adds() = runTest {\n    assertEquals(3, add(1, 2))\n  }\n}\n";
const kt = "src/commonTest/kotlin/AddTest.kt";
weakens("kt labelled return", kt, KT, r("runTest {\n", "runTest {\n    return@runTest\n"));
weakens("kt assert shadowed", kt, KT, (s) => `${s}\nfun assertEquals(a: Any?, b: Any?) {}\n`);
weakens(
  "kt catching",
  kt,
  KT,
  r("    assertEquals(3, add(1, 2))\n", "    runCatching {\n    assertEquals(3, add(1, 2))\n    }\n"),
);
const CS = "public class AddTests {\n  [Fact]\n  public async Task Adds() {\n    Assert.Equal(3, Add(1, 2));\n  }\n}\n";
const cs = "App.Tests/AddTests.cs";
weakens("cs completed task", cs, CS, r("Adds() {\n", "Adds() {\n    await Task.CompletedTask; return;\n"));
weakens("cs assert skip", cs, CS, r("Adds() {\n", 'Adds() {\n    Assert.Skip("x");\n'));
weakens("cs skip if", cs, CS, r("Adds() {\n", "Adds() {\n    Skip.If(true);\n"));
weakens("cs test category", cs, CS, r("  [Fact]", '  [TestCategory("Never")]\n  [Fact]'));
weakensFiles(
  "cs assert shadowed",
  { [cs]: CS },
  { "App.Tests/Assert.cs": "public static class Assert {\n  public static void Equal(object a, object b) { }\n}\n" },
);
weakens(
  "fs ignore",
  "App.Tests/AddTests.fs",
  "[<Test>]\nlet adds () =\n  Assert.AreEqual(3, add 1 2)\n",
  r("[<Test>]", "[<Ignore>]\n[<Test>]"),
);
const PHP =
  "<?php\nclass AddTest extends TestCase {\n    /**\n     * @test\n     */\n    public function adds(): void {\n        $this->assertSame(3, add(1, 2));\n    }\n}\n";
const php = "tests/AddTest.php";
weakens("php annotation gone", php, PHP, r("     * @test\n", ""));
weakens("php group in a comment", php, PHP, r("     * @test\n", "     * @test\n     * @group never\n"));
weakens("php requires in a comment", php, PHP, r("     * @test\n", "     * @test\n     * @requires PHP 99\n"));
weakens("php exit", php, PHP, r("void {\n", "void {\n        exit;\n"));
weakens("php die", php, PHP, r("void {\n", "void {\n        die();\n"));
weakens(
  "php assert shadowed",
  php,
  PHP,
  r(/}\n$/, "\n    public static function assertSame($a, $b, string $m = ''): void {\n    }\n}\n"),
);
leaves("php comment", php, PHP, r("     * @test\n", "     * Adds two numbers.\n     * @test\n"));
const SW = "import XCTest\nclass AddTests: XCTestCase {\n  func testAdd() {\n    XCTAssertEqual(add(1, 2), 3)\n  }\n}\n";
const sw = "Tests/AppTests/AddTests.swift";
weakens("swift assert shadowed", sw, SW, (s) => `${s}\nfunc XCTAssertEqual(_ a: Int, _ b: Int) {}\n`);
weakens(
  "swift known issue",
  sw,
  SW,
  r("    XCTAssertEqual(add(1, 2), 3)\n", "    withKnownIssue {\n    XCTAssertEqual(add(1, 2), 3)\n    }\n"),
);
weakensFiles("xcode plan", { "App.xctestplan": "{\n}\n" }, { "App.xctestplan": '{\n  "skippedTests" : ["AddTests"]\n}\n' });
weakens(
  "xcode scheme",
  "App.xcodeproj/xcshareddata/xcschemes/App.xcscheme",
  "<TestableReference>\n</TestableReference>\n",
  r("<TestableReference>", '<TestableReference\n  skipped = "YES">'),
);

const RB =
  'require "minitest/autorun"\n\nclass TestAdd < Minitest::Test\n  def test_adds\n    assert_equal 3, add(1, 2)\n  end\nend\n';
const rb = "test/test_add.rb";
weakens(
  "rb rescue",
  rb,
  RB,
  r("    assert_equal 3, add(1, 2)\n", "    assert_equal 3, add(1, 2)\n  rescue Exception\n    nil\n"),
);
weakens("rb at exit", rb, RB, (s) => `at_exit { exit! 0 }\n${s}`);
weakens("rb exit!", rb, RB, (s) => `exit!\n${s}`);
weakens("rb undefined", rb, RB, r(/end\n$/, "  undef_method :test_adds\nend\n"));
weakens("rb assert shadowed", rb, RB, r(/end\n$/, "  def assert_equal(*) = true\nend\n"));
weakens(
  "rspec filter",
  "spec/spec_helper.rb",
  "RSpec.configure do |config|\nend\n",
  r("|config|\n", "|config|\n  config.filter_run_excluding :slow\n"),
);
weakens("rake task cleared", "Rakefile", "require 'rake/testtask'\n", (s) => `${s}Rake::Task[:test].clear\n`);
const EX = 'defmodule AddTest do\n  use ExUnit.Case\n\n  test "adds" do\n    assert add(1, 2) == 3\n  end\nend\n';
weakens("ex rescue", "test/add_test.exs", EX, r("== 3\n", "== 3\n  rescue\n    _ -> :ok\n"));
weakens("ex configured", "test/test_helper.exs", "ExUnit.start()\n", (s) => `${s}ExUnit.configure(exclude: [:test])\n`);
weakens("ex describetag", "test/add_test.exs", EX, r("  use ExUnit.Case\n", "  use ExUnit.Case\n  @describetag :skip\n"));
weakens(
  "ex doctest",
  "lib/add.ex",
  '  @doc """\n      iex> add(1, 2)\n      3\n  """\n',
  r("      iex> add(1, 2)\n      3\n", ""),
);

const RS =
  "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        let want = 3;\n        assert_eq!(add(1, 2), want);\n    }\n}\n";
weakens("rs inline return", "src/lib.rs", RS, r("fn adds() {\n", "fn adds() {\n        return;\n"));
weakens("rs inline expected value", "src/lib.rs", RS, r("want = 3", "want = 4"));
weakens(
  "rs macro shadowed",
  "src/lib.rs",
  RS,
  r("    use super::*;\n", "    use super::*;\n    macro_rules! assert_eq {\n        ($($x:tt)*) => {};\n    }\n"),
);
weakens(
  "rs doc test ignored",
  "src/lib.rs",
  "/// Adds.\n/// ```\n/// assert_eq!(add(1, 2), 3);\n/// ```\npub fn add() {}\n",
  r("/// ```\n", "/// ```ignore\n"),
);
weakens(
  "rs doc test gone",
  "src/lib.rs",
  "/// Adds.\n/// ```\n/// assert_eq!(add(1, 2), 3);\n/// ```\npub fn add() {}\n",
  r("/// assert_eq!(add(1, 2), 3);\n", ""),
);
leaves(
  "rs new example that is not run",
  "src/lib.rs",
  "/// Adds.\npub fn add() {}\n",
  r("/// Adds.\n", "/// Adds.\n/// ```no_run\n/// serve();\n/// ```\n"),
);
leaves(
  "rs new inline test",
  "src/lib.rs",
  RS,
  r(
    /}\n$/,
    "\n    #[test]\n    fn more() -> Result<(), Error> {\n        assert_eq!(add(2, 2), 4);\n        return Ok(());\n    }\n}\n",
  ),
);
leaves("rs code before the tests", "src/lib.rs", RS, r("pub fn add() {}", "pub fn add() -> i32 {\n    return 3;\n}"));
weakens(
  "zig skip",
  "src/add.zig",
  'test "adds" {\n    try expect(add(1, 2) == 3);\n}\n',
  r("{\n", "{\n    if (true) return error.SkipZigTest;\n"),
);
weakens(
  "py doctest answer",
  "add.py",
  'def add(a, b):\n    """\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n',
  r("    3\n", "    4\n"),
);

const C = "#include <assert.h>\n\nint main(void) {\n  assert(add(1, 2) == 3);\n  return 0;\n}\n";
weakens("c assert off", "tests/add.c", C, (s) => `#define NDEBUG\n${s}`);
weakens("c assert shadowed", "tests/add.c", C, r("\nint", "\n#undef assert\n#define assert(x)\n\nint"));
weakens("c exit", "tests/add.c", C, r("{\n", "{\n  return 0;\n"));
weakens(
  "catch2 skip",
  "tests/add_test.cpp",
  'TEST_CASE("adds") {\n  REQUIRE(add(1, 2) == 3);\n}\n',
  r("{\n", '{\n  SKIP("later");\n'),
);
weakens(
  "qt skip",
  "tests/tst_add.cpp",
  "void TestAdd::adds() {\n  QCOMPARE(add(1, 2), 3);\n}\n",
  r("{\n", '{\n  QSKIP("later");\n'),
);
weakens("perl todo", "t/add.t", "use Test::More;\nis(add(1, 2), 3);\ndone_testing;\n", r("is(", 'local $TODO = "later";\nis('));
weakens("perl exit", "t/add.t", "use Test::More;\nis(add(1, 2), 3);\ndone_testing;\n", r("is(", "exit;\nis("));
weakens(
  "r skip_on_ci",
  "tests/testthat/test-add.R",
  'test_that("adds", {\n  expect_equal(add(1, 2), 3)\n})\n',
  r("{\n", "{\n  skip_on_ci()\n"),
);
weakens(
  "r qualified skip",
  "tests/testthat/test-add.R",
  'test_that("adds", {\n  expect_equal(add(1, 2), 3)\n})\n',
  r("{\n", '{\n  testthat::skip("x")\n'),
);
weakens("clojure discarded", "test/add_test.clj", "(deftest adds\n  (is (= 3 (add 1 2))))\n", (s) => `#_\n${s}`);
weakens(
  "haskell pending",
  "test/AddSpec.hs",
  'spec = it "adds" $ do\n  add 1 2 `shouldBe` 3\n',
  r("do\n", 'do\n  pendingWith "later"\n'),
);
weakens(
  "scalatest cancel",
  "src/test/scala/AddSpec.scala",
  'test("adds") {\n  assert(add(1, 2) == 3)\n}\n',
  r("{\n", '{\n  cancel("later")\n'),
);
weakens(
  "scalatest not found",
  "src/test/scala/AddSpec.scala",
  "class AddSpec extends AnyFunSuite {\n}\n",
  (s) => `@DoNotDiscover\n${s}`,
);
weakens(
  "feature wip",
  "features/add.feature",
  "Feature: add\n  Scenario: adds\n    Then the sum is 3\n",
  r("  Scenario", "  @wip\n  Scenario"),
);
weakens(
  "robot skip",
  "tests/add.robot",
  "*** Test Cases ***\nAdds\n    Should Be Equal    3    3\n",
  r("Adds\n", "Adds\n    [Tags]    robot:skip\n"),
);
weakens(
  "pester skipped",
  "Add.Tests.ps1",
  "It 'adds' {\n  Add 1 2 | Should -Be 3\n}\n",
  r("{\n", "{\n  Set-ItResult -Skipped\n"),
);
leavesFiles("new helper of tests", { "test/a.txt": "a\n" }, { "test/helper.js": "export function three() {\n  return 3;\n}\n" });
leavesFiles(
  "new test with a parser",
  { "test/a.txt": "a\n" },
  {
    "test/parse.test.js":
      'import { parse } from "../src/parse.js";\n\ntest("parses", () => {\n  const read = (text) => {\n    if (!text) return;\n    return parse(text);\n  };\n  expect(read("1")).toBe(1);\n});\n',
  },
);
