import { collectCases, r } from "./cases.ts";

const { cases, weakens, weakensFiles } = collectCases();
export const COMPILED = cases;

const GO =
  'package x\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tcases := []struct{ a, want int }{\n\t\t{1, 2},\n\t\t{2, 3},\n\t}\n\tfor _, c := range cases {\n\t\tif got := Add(c.a); got != c.want {\n\t\t\tt.Errorf("no")\n\t\t}\n\t}\n}\n\nfunc ExampleAdd() {\n\tfmt.Println(Add(1))\n\t// Output: 2\n}\n';
const g = "x_test.go";
weakens("go row", g, GO, r("\t\t{2, 3},\n", ""));
weakens("go cond loosened", g, GO, r("got != c.want", "got < 0"));
weakens("go errorf→log", g, GO, r("t.Errorf", "t.Logf"));
weakens("go build tag", g, GO, (s) => `//go:build integration\n\n${s}`);
weakens("go old build tag", g, GO, (s) => `// +build never\n\n${s}`);
weakens("go short", g, GO, r("T) {\n", "T) {\n\tif testing.Short() {\n\t\tt.Skip()\n\t}\n"));
weakens("go SkipNow", g, GO, r("T) {\n", "T) {\n\tt.SkipNow()\n"));
weakens("go example out", g, GO, r("\t// Output: 2\n", ""));
weakens("go example removed", g, GO, r(/func ExampleAdd[\s\S]*/, ""));
weakens("go block comment", g, GO, (s) =>
  s.replace("func TestAdd", "/*\nfunc TestAdd").replace("func Example", "*/\nfunc Example"),
);
weakens("go TestMain", g, GO, (s) => `${s}\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n`);
weakens(
  "go subtests removed",
  g,
  'package x\nfunc TestA(t *testing.T) {\n\tt.Run("one", func(t *testing.T) { check(t, 1) })\n\tt.Run("two", func(t *testing.T) { check(t, 2) })\n}\n',
  r('\tt.Run("two", func(t *testing.T) { check(t, 2) })\n', ""),
);
weakensFiles("go renamed", { [g]: GO }, { [g]: null, "x_tests.go": GO });
weakensFiles("go testdata", { "testdata/out.golden": "a\n", "testdata/want.txt": "x\n" }, { "testdata/want.txt": "y\n" });
weakensFiles(
  "fixture expected",
  { "test/fixtures/out.json": '{\n  "a": 1\n}\n' },
  { "test/fixtures/out.json": '{\n  "a": 2\n}\n' },
);
weakensFiles("tests expected txt", { "tests/expected.txt": "hello\n" }, { "tests/expected.txt": "bye\n" });
const JAVA =
  "import org.junit.jupiter.api.Test;\n\nclass AddTest {\n  @Test\n  void adds() {\n    assertEquals(3, add(1, 2));\n  }\n\n  @Test\n  void more() {\n    assertThat(add(2, 2)).isEqualTo(4);\n  }\n}\n";
const jv = "src/test/java/AddTest.java";
weakens("java disabled", jv, JAVA, r("  @Test\n", '  @Disabled("x")\n  @Test\n'));
weakens("java EnabledIf", jv, JAVA, r("  @Test\n", '  @EnabledIfEnvironmentVariable(named = "X", matches = "1")\n  @Test\n'));
weakens("java assume", jv, JAVA, r("void adds() {\n", "void adds() {\n    Assumptions.assumeTrue(false);\n"));
weakens("java assumeTrue static", jv, JAVA, r("void adds() {\n", "void adds() {\n    assumeTrue(false);\n"));
weakens("java testng", jv, JAVA, r("  @Test\n", "  @Test(enabled = false)\n"));
weakens("java Test expected", jv, JAVA, r("  @Test\n", "  @Test(expected = AssertionError.class)\n"));
weakens("java comment", jv, JAVA, r("  @Test\n", "  //@Test\n"));
weakens("java private", jv, JAVA, r("  void adds()", "  private void adds()"));
weakens("java abstract", jv, JAVA, r("class AddTest", "abstract class AddTest"));
weakens(
  "java ValueSource",
  jv,
  "class ATest {\n  @ParameterizedTest\n  @ValueSource(ints = {1, 2, 3})\n  void a(int x) {\n    assertTrue(x > 0);\n  }\n}\n",
  r("{1, 2, 3}", "{1}"),
);
weakens("java removed", jv, JAVA, r(/\n {2}@Test\n {2}void more[\s\S]*/, "}\n"));
weakens(
  "java Test line w/ method",
  jv,
  "class ATest {\n  @Test void a() { assertTrue(f()); }\n  @Test void b() { check(1); }\n}\n",
  r("  @Test void b() { check(1); }\n", ""),
);
const KT = "class AddTest {\n  @Test\n  fun `adds`() {\n    assertEquals(3, add(1, 2))\n  }\n}\n";
weakens("kt ignore", "src/test/kotlin/AddTest.kt", KT, r("  @Test\n", "  @Ignore\n  @Test\n"));
weakens(
  "kotest x",
  "src/test/kotlin/AddTest.kt",
  'class AddTest : StringSpec({\n  "adds" {\n    add(1, 2) shouldBe 3\n  }\n})\n',
  r('"adds"', '"!adds"'),
);
weakens(
  "kotest config",
  "src/test/kotlin/AddTest.kt",
  'class AddTest : StringSpec({\n  "adds" {\n    add(1, 2) shouldBe 3\n  }\n})\n',
  r('"adds"', '"adds".config(enabled = false)'),
);
const CS =
  "public class AddTests {\n  [Fact]\n  public void Adds() {\n    Assert.Equal(3, Add(1, 2));\n  }\n  [Theory]\n  [InlineData(1, 2)]\n  [InlineData(2, 3)]\n  public void More(int a, int b) {\n    Assert.Equal(b, Add(a, 1));\n  }\n}\n";
const cs = "tests/AddTests.cs";
weakens("cs skip", cs, CS, r("[Fact]", '[Fact(Skip = "x")]'));
weakens("cs inline", cs, CS, r("  [InlineData(2, 3)]\n", ""));
weakens("cs ignore", cs, CS, r("  [Fact]", '  [Fact, Ignore("x")]'));
weakens("cs #if", cs, CS, (s) => s.replace("  [Theory]", "#if FALSE\n  [Theory]").replace(/}\n$/, "#endif\n}\n"));
weakens("cs explicit", cs, CS, r("  [Fact]", "  [Fact]\n  [Explicit]"));
weakens("cs Test.Pass", cs, CS, r("    Assert.Equal(3", "    Assert.Pass();\n    Assert.Equal(3"));
const PHP =
  "<?php\nclass AddTest extends TestCase {\n    public function testAdd(): void {\n        $this->assertSame(3, add(1, 2));\n    }\n    #[Test]\n    public function more(): void {\n        $this->assertSame(4, add(2, 2));\n    }\n}\n";
const ph = "tests/AddTest.php";
weakens("php skip", ph, PHP, r("void {\n", 'void {\n        $this->markTestSkipped("x");\n'));
weakens("php group", ph, PHP, r("    #[Test]\n", ""));
weakens("php rename", ph, PHP, r("testAdd", "addTest"));
weakens("php loosen", ph, PHP, r("assertSame(3", "assertEquals(3"));
weakens("php noassert", ph, PHP, r("void {\n", "void {\n        $this->expectNotToPerformAssertions();\n"));
weakens("php requires", ph, PHP, r("    #[Test]", '    #[RequiresPhp("99")]\n    #[Test]'));
weakens(
  "pest skip",
  "tests/AddTest.php",
  '<?php\nit("adds", function () {\n    expect(add(1, 2))->toBe(3);\n});\n',
  r("});\n", "})->skip();\n"),
);
weakens(
  "pest todo",
  "tests/AddTest.php",
  '<?php\nit("adds", function () {\n    expect(add(1, 2))->toBe(3);\n});\n',
  r("});\n", "})->todo();\n"),
);
weakens(
  "pest only",
  "tests/AddTest.php",
  '<?php\nit("adds", function () {\n    expect(add(1, 2))->toBe(3);\n});\n',
  r("});\n", "})->only();\n"),
);
const RS = "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n\n#[test]\nfn more() {\n    assert!(add(2, 2) == 4);\n}\n";
const rs = "tests/add.rs";
weakens("rs should_panic", rs, RS, r("#[test]\nfn adds", "#[test]\n#[should_panic]\nfn adds"));
weakens("rs cfg", rs, RS, r("#[test]\nfn adds", '#[cfg(feature = "slow")]\n#[test]\nfn adds'));
weakens("rs cfg not test", rs, RS, (s) => `#![cfg(not(test))]\n${s}`);
weakens("rs block", rs, RS, (s) => `${s.replace("#[test]\nfn more", "/*\n#[test]\nfn more")}*/\n`);
weakens("rs return", rs, RS, r("fn adds() {\n", "fn adds() {\n    return;\n"));
weakens("rs debug_assert", rs, RS, r("assert_eq!", "debug_assert_eq!"));
weakens("rs exit", rs, RS, r("fn adds() {\n", "fn adds() {\n    std::process::exit(0);\n"));
weakens(
  "rs beside assert",
  "src/lib.rs",
  "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
  r("        assert_eq!(add(1, 2), 3);\n", ""),
);
weakens(
  "rs beside loosened",
  "src/lib.rs",
  "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
  r("assert_eq!(add(1, 2), 3)", "assert!(true)"),
);
weakens("rs cfg(test) gone", "src/lib.rs", "pub fn add() {}\n\n#[cfg(test)]\nmod tests;\n", r("#[cfg(test)]\nmod tests;\n", ""));
weakens(
  "rs cfg any",
  "src/lib.rs",
  "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
  r("#[cfg(test)]", "#[cfg(any())]"),
);
weakens(
  "rs cfg feature",
  "src/lib.rs",
  "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
  r("#[cfg(test)]", '#[cfg(all(test, feature = "x"))]'),
);
weakens(
  "py doctest",
  "add.py",
  'def add(a, b):\n    """\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n',
  r("    >>> add(1, 2)\n    3\n", ""),
);
weakens(
  "ts in-source vitest",
  "src/add.ts",
  'export const add = (a, b) => a + b;\nif (import.meta.vitest) {\n  const { it, expect } = import.meta.vitest;\n  it("adds", () => {\n    expect(add(1, 2)).toBe(3);\n  });\n}\n',
  r("toBe(3)", "toBeDefined()"),
);
const SW =
  "import XCTest\nclass AddTests: XCTestCase {\n  func testAdd() {\n    XCTAssertEqual(add(1, 2), 3)\n  }\n  func testMore() throws {\n    XCTAssertTrue(add(1, 2) > 2)\n  }\n}\n";
const sw = "Tests/AppTests/AddTests.swift";
weakens("swift XCTSkip", sw, SW, r("throws {\n", 'throws {\n    throw XCTSkip("x")\n'));
weakens("swift XCTSkipIf", sw, SW, r("throws {\n", "throws {\n    try XCTSkipIf(true)\n"));
weakens("swift rename", sw, SW, r("testMore", "disabled_testMore"));
weakens("swift loosened", sw, SW, r("XCTAssertEqual(add(1, 2), 3)", "XCTAssertNotNil(add(1, 2))"));
weakens("swift removed", sw, SW, r("    XCTAssertEqual(add(1, 2), 3)\n", ""));
weakens("swift expectfail", sw, SW, r("testAdd() {\n", 'testAdd() {\n    XCTExpectFailure("x")\n'));
weakens(
  "swift testing disabled",
  sw,
  "@Test func adds() {\n  #expect(add(1, 2) == 3)\n}\n",
  r("@Test func", '@Test(.disabled("x")) func'),
);
weakens(
  "swift testing loosen",
  sw,
  "@Test func adds() {\n  #expect(add(1, 2) == 3)\n}\n",
  r("#expect(add(1, 2) == 3)", "#expect(Bool(true))"),
);
const DT = "void main() {\n  test('adds', () {\n    expect(add(1, 2), 3);\n  });\n}\n";
weakens("dart skip", "test/add_test.dart", DT, r("  });\n}", "  }, skip: true);\n}"));
weakens("dart Skip ann", "test/add_test.dart", DT, (s) => `@Skip('x')\nlibrary;\n${s}`);
const CPP = "TEST(Add, Adds) {\n  EXPECT_EQ(add(1, 2), 3);\n}\n\nTEST(Add, More) {\n  ASSERT_TRUE(add(1, 2) > 2);\n}\n";
const cpp = "tests/add_test.cpp";
weakens("cpp disabled", cpp, CPP, r("TEST(Add, Adds)", "TEST(Add, DISABLED_Adds)"));
weakens("cpp gtest_skip", cpp, CPP, r("Adds) {\n", "Adds) {\n  GTEST_SKIP();\n"));
weakens("cpp expect", cpp, CPP, r("EXPECT_EQ(add(1, 2), 3)", "EXPECT_GE(add(1, 2), 0)"));
weakens("cpp #if 0", cpp, CPP, (s) => `${s.replace("TEST(Add, More)", "#if 0\nTEST(Add, More)")}#endif\n`);
weakens("cpp removed", cpp, CPP, r(/\nTEST\(Add, More[\s\S]*/, ""));
weakens(
  "catch2",
  cpp,
  'TEST_CASE("adds") {\n  REQUIRE(add(1, 2) == 3);\n}\n',
  r('TEST_CASE("adds")', 'TEST_CASE("adds", "[.]")'),
);
weakens(
  "catch2 loosen",
  cpp,
  'TEST_CASE("adds") {\n  REQUIRE(add(1, 2) == 3);\n}\n',
  r("REQUIRE(add(1, 2) == 3);", "REQUIRE(true);"),
);
const SC = 'class AddSuite extends FunSuite {\n  test("adds") {\n    assertEquals(add(1, 2), 3)\n  }\n}\n';
weakens("scala ignore", "src/test/scala/AddSuite.scala", SC, r('test("adds")', 'ignore("adds")'));
weakens("scala munit", "src/test/scala/AddSuite.scala", SC, r('test("adds")', 'test("adds".ignore)'));
weakens("perl", "t/add.t", "use Test::More;\nis(add(1, 2), 3);\ndone_testing;\n", r("is(add(1, 2), 3);\n", "pass();\n"));
weakens(
  "perl skip_all",
  "t/add.t",
  "use Test::More;\nis(add(1, 2), 3);\ndone_testing;\n",
  r("use Test::More;", "use Test::More skip_all => 'x';"),
);
weakens(
  "lua",
  "spec/add_spec.lua",
  'describe("add", function()\n  it("adds", function()\n    assert.are.equal(3, add(1, 2))\n  end)\nend)\n',
  r('it("adds"', 'pending("adds"'),
);
weakens("clojure", "test/add_test.clj", "(deftest adds\n  (is (= 3 (add 1 2))))\n", r("(is (= 3 (add 1 2)))", "(is true)"));
weakens(
  "haskell",
  "test/AddSpec.hs",
  'spec = describe "add" $ do\n  it "adds" $ add 1 2 `shouldBe` 3\n',
  r('it "adds"', 'xit "adds"'),
);
weakens(
  "feature",
  "features/add.feature",
  "Feature: add\n  Scenario: adds\n    Then the sum is 3\n",
  r("    Then the sum is 3\n", ""),
);
weakens(
  "cypress",
  "cypress/e2e/add.cy.ts",
  'it("adds", () => {\n  cy.get("#sum").should("have.text", "3");\n});\n',
  r('"have.text", "3"', '"exist"'),
);
weakens(
  "R testthat",
  "tests/testthat/test-add.R",
  'test_that("adds", {\n  expect_equal(add(1, 2), 3)\n})\n',
  r("  expect_equal(add(1, 2), 3)\n", '  skip("x")\n'),
);
weakens("zig", "src/add.zig", 'test "adds" {\n    try std.testing.expect(add(1, 2) == 3);\n}\n', r(/test "adds"[\s\S]*/, ""));
