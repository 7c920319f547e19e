import { collectCases, r } from "./cases.ts";

const { cases, leaves, leavesFiles, weakens, weakensFiles } = collectCases();
export const SCRIPTS = cases;

const JS = `import test from "node:test";
import assert from "node:assert";
import { add } from "../src/add.js";

test("adds", () => {
  const expected = 3;
  assert.equal(add(1, 2), expected);
});

test("adds more", () => {
  assert.equal(add(2, 2), 4);
});
`;
const j = "test/add.test.js";
weakens("block comment", j, JS, (s) => `${s.replace('test("adds more"', '/*\ntest("adds more"')}*/\n`);
weakens("line comment", j, JS, r("  assert.equal(add(2, 2), 4);", "  // assert.equal(add(2, 2), 4);"));
weakens("if false", j, JS, r("  assert.equal(add(2, 2), 4);\n", "  if (false)\n  assert.equal(add(2, 2), 4);\n"));
weakens("if false braces", j, JS, r("  assert.equal(add(2, 2), 4);\n", "  if (false) {\n  assert.equal(add(2, 2), 4);\n  }\n"));
weakens("try catch", j, JS, r("  assert.equal(add(2, 2), 4);\n", "  try {\n  assert.equal(add(2, 2), 4);\n  } catch {}\n"));
weakens(
  "early return cond",
  j,
  JS,
  r('test("adds more", () => {\n', 'test("adds more", () => {\n  if (process.env.CI) return;\n'),
);
weakens("early return true", j, JS, r('test("adds more", () => {\n', 'test("adds more", () => {\n  return true;\n'));
weakens("process.exit", j, JS, r('test("adds",', 'process.exit(0);\ntest("adds",'));
weakens("expected const", j, JS, r("expected = 3", "expected = 4"));
weakens("t.skip node", j, JS, r('test("adds more", () => {\n', 'test("adds more", (t) => {\n  t.skip("later");\n'));
weakens("opts skip", j, JS, r('test("adds more", ', 'test("adds more", { skip: true }, '));
weakens("this.skip", j, JS, r('test("adds more", () => {\n', 'test("adds more", function () {\n  this.skip();\n'));
weakens("ctx.skip", j, JS, r('test("adds more", () => {\n', 'test("adds more", (ctx) => {\n  ctx.skip();\n'));
weakens("only opts", j, JS, r('test("adds",', 'test("adds", { only: true },'));
weakens("concurrent.only", j, JS, r('test("adds",', 'test.concurrent.only("adds",'));
weakens("test.fixme", j, JS, r('test("adds more"', 'test.fixme("adds more"'));
weakens("xtest", j, JS, r('test("adds more"', 'xtest("adds more"'));
weakens("renamed fn", j, JS, r('test("adds more"', 'noop("adds more"'));
weakens("dead fn wrap", j, JS, (s) => `${s.replace('test("adds more"', 'function later() {\ntest("adds more"')}}\n`);
weakens("template literal", j, JS, (s) => `${s.replace('test("adds more"', 'const later = `\ntest("adds more"')}\`;\n`);
weakens("shadow assert", j, JS, r('import assert from "node:assert";', "const assert = { equal() {} };"));
weakens("mock subject", j, JS, r('import { add } from "../src/add.js";', "const add = (a, b) => a + b;"));
weakens("loosen notEqual", j, JS, r("assert.equal(add(2, 2), 4)", "assert.ok(add(2, 2))"));
weakens("retry", j, JS, r('test("adds",', 'jest.retryTimes(5);\ntest("adds",'));
weakens(
  "test.each rows",
  "test/e.test.ts",
  'test.each([\n  [1, 2, 3],\n  [2, 2, 4],\n])("adds %i", (a, b, c) => {\n  expect(add(a, b)).toBe(c);\n});\n',
  r("  [2, 2, 4],\n", ""),
);
weakens(
  "each obj rows",
  "test/e.test.ts",
  "const cases = [\n  { a: 1, want: 2 },\n  { a: 2, want: 3 },\n];\nfor (const c of cases) test(c.a, () => {\n  expect(f(c.a)).toBe(c.want);\n});\n",
  r("  { a: 2, want: 3 },\n", ""),
);
weakens(
  "inside suppressed describe",
  "test/e.test.ts",
  'describe("x", () => {\n  it("a", () => {\n    expect(1).toBe(1);\n  });\n});\n',
  r('describe("x"', 'xdescribe("x"'),
);
weakens(
  "describe.skip.each",
  "test/e.test.ts",
  'describe("x", () => {\n  it("a", () => {\n    expect(1).toBe(1);\n  });\n});\n',
  r('describe("x"', 'describe.skip("x"'),
);
weakens("it no call", "test/e.test.ts", "it(`a`, () => {\n  expect(1).toBe(1);\n});\n", r(/^it\(/, "void ("));
weakens(
  "plain test.js",
  "test.js",
  'const { add } = require("./add");\nif (add(1, 2) !== 3) {\n  console.error("bad");\n  process.exit(1);\n}\n',
  r("!== 3", "!== 4"),
);
weakens(
  "plain test.js exit",
  "test.js",
  'const { add } = require("./add");\nif (add(1, 2) !== 3) {\n  console.error("bad");\n  process.exit(1);\n}\n',
  r("process.exit(1)", "process.exit(0)"),
);
weakensFiles(
  "plain test.js deleted",
  { "test.js": 'require("assert").equal(1,1);\n', "package.json": "{}" },
  { "test.js": null },
);
weakensFiles(
  "tests.py deleted",
  { "tests.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n" },
  { "tests.py": null },
);
weakensFiles("test.sh deleted", { "test.sh": '#!/bin/sh\nset -e\n[ "$(./greet)" = hello ]\n' }, { "test.sh": null });
weakens(
  "test.sh loosened",
  "test.sh",
  '#!/bin/sh\nset -e\n[ "$(./greet)" = hello ]\ngrep -q hello out\n',
  r('[ "$(./greet)" = hello ]\n', ""),
);
weakens("tests/run.sh loosened", "tests/run.sh", "#!/bin/sh\nset -e\ndiff out expected\n", r("diff out expected\n", "echo ok\n"));
weakens(
  "bats skip",
  "test/greet.bats",
  '@test "greets" {\n  run greet\n  [ "$status" -eq 0 ]\n}\n',
  r("  run greet\n", "  skip\n  run greet\n"),
);
weakens(
  "bats removed",
  "test/greet.bats",
  '@test "greets" {\n  run greet\n  [ "$status" -eq 0 ]\n}\n@test "b" {\n  run b\n  [ "$status" -eq 0 ]\n}\n',
  r(/@test "b"[\s\S]*/, ""),
);
weakens(
  "bats loosened",
  "test/greet.bats",
  '@test "greets" {\n  run greet\n  [ "$status" -eq 0 ]\n  [ "$output" = hi ]\n}\n',
  r('  [ "$output" = hi ]\n', ""),
);
const PY =
  'import pytest\nfrom add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n@pytest.mark.parametrize("a,b", [\n    (1, 2),\n    (2, 3),\n])\ndef test_more(a, b):\n    assert add(a, 1) == b\n';
const p = "tests/test_add.py";
weakens("py triple quote", p, PY, (s) => `${s.replace("@pytest.mark.param", '"""\n@pytest.mark.param')}"""\n`);
weakens("py param rows", p, PY, r("    (2, 3),\n", ""));
weakens("py return early", p, PY, r("def test_add():\n", "def test_add():\n    return\n"));
weakens("py return None", p, PY, r("def test_add():\n", "def test_add():\n    return None\n"));
weakens("py if ci", p, PY, r("def test_add():\n", 'def test_add():\n    if os.environ.get("CI"): return\n'));
weakens("py sys.exit", p, PY, r("import pytest\n", "import pytest, sys\nsys.exit(0)\n"));
weakens("py raise Skip", p, PY, r("def test_add():\n", 'def test_add():\n    raise unittest.SkipTest("x")\n'));
weakens("py skip import", p, PY, r("def test_add():\n", '@skip("later")\ndef test_add():\n'));
weakens("py __test__", p, PY, r("from add", "__test__ = False\nfrom add"));
weakens(
  "py try",
  p,
  PY,
  r("    assert add(1, 2) == 3\n", "    try:\n        assert add(1, 2) == 3\n    except AssertionError:\n        pass\n"),
);
weakens("py approx", p, PY, r("== 3", ">= 3"));
weakens("py flaky", p, PY, r("def test_add():", "@pytest.mark.flaky(reruns=5)\ndef test_add():"));
weakens("py skip alias", p, PY, r("def test_add():", '@pytest.mark.skipif(True, reason="x")\ndef test_add():'));
weakens("py del", p, PY, (s) => `${s}\n\ndel test_add\n`);
weakens("py collect ignore glob", "conftest.py", "import os\n", (s) => `${s}collect_ignore_glob = ["tests/*"]\n`);
leaves("new test", j, JS, (s) => `${s}\ntest("three", () => {\n  const got = add(1, 1);\n  assert.equal(got, 2);\n});\n`);
leaves(
  "new test with try and return",
  j,
  JS,
  (s) => `${s}\nfunction helper(x) {\n  if (x) return;\n  try {\n    return x;\n  } catch (error) {\n    return 0;\n  }\n}\n`,
);
leaves("import", j, JS, r('"../src/add.js"', '"../src/sum.js"'));
leaves("comment added", j, JS, r('test("adds"', '/** Adds.\n * really\n */\ntest("adds"'));
leaves("describe wrap", j, JS, (s) => `${s.replace('test("adds",', 'describe("all", () => {\ntest("adds",')}});\n`);
leaves("doc py", p, PY, r("def test_add():\n", 'def test_add():\n    """Adds\n    two.\n    """\n'));
leaves(
  "more assertion",
  j,
  JS,
  r("  assert.equal(add(2, 2), 4);\n", "  assert.equal(add(2, 2), 4);\n  assert.equal(add(3, 2), 5);\n"),
);
leaves(
  "rust code",
  "src/lib.rs",
  "pub fn add(a: i32) -> i32 {\n    assert!(a > 0);\n    a\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn x() {\n        assert_eq!(super::add(1), 1);\n    }\n}\n",
  r("    assert!(a > 0);\n    a\n", "    a + 1\n"),
);
leavesFiles(
  "package dep",
  { "package.json": '{\n  "dependencies": {\n    "a": "1"\n  },\n  "devDependencies": {\n    "vitest": "1.0.0"\n  }\n}\n' },
  { "package.json": '{\n  "dependencies": {\n    "a": "2"\n  },\n  "devDependencies": {\n    "vitest": "1.0.0"\n  }\n}\n' },
);
leavesFiles(
  "src latest.js",
  { "src/latest.js": "export const a = 1;\nif (a === 1) throw 1;\n" },
  { "src/latest.js": "export const a = 2;\n" },
);
leavesFiles("src contest.py", { "src/contest.py": "a = 1\nassert a == 1\n" }, { "src/contest.py": "a = 2\n" });
leavesFiles("new expected file", { a: "1" }, { "tests/expected.txt": "x\n" });
leavesFiles(
  "src code",
  { "src/add.js": "export function add(a, b) {\n  return a - b;\n}\n" },
  { "src/add.js": "export function add(a, b) {\n  return a + b;\n}\n" },
);
leavesFiles("readme", { "test/README.md": "# a\nb\n" }, { "test/README.md": "# c\n" });
