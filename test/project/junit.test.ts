import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parseJunit, readJunit } from "../../src/project/reports/junit.ts";
import { temporaryFolder } from "../support/home.ts";
import { soon } from "../support/soon.ts";

const SUITE = `<?xml version="1.0"?>
<!-- a <testcase name="commented"/> -->
<testsuites><testsuite name="x.ATest">
  <testcase classname="x.ATest" name="adds"/>
  <testcase name='says "&lt;b&gt; &amp; &#99;"' classname="x.ATest"><failure message="1 > 2"><![CDATA[</testcase><testcase name="forged">]]></failure></testcase>
  <testcase classname="x.ATest" name="waits"><skipped/></testcase>
  <testcase classname="x.ATest" name="breaks"><error/><system-out>&lt;failure/></system-out></testcase>
</testsuite></testsuites>`;

const one = (name: string, inner = "<failure/>") =>
  `<testsuite><testcase classname="x" name="${name}">${inner}</testcase></testsuite>`;

function write(folder: string, files: Record<string, string>, at?: number): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    if (at !== undefined) utimesSync(join(folder, path), at, at);
  }
}

const read = (folder: string, since = Date.now() - 60_000) => readJunit({ folder, since, signal: new AbortController().signal });

test("the cases of a file are read by their full names, and nothing that only looks like one", async () => {
  expect(await parseJunit(SUITE)).toEqual([
    { name: "x.ATest.adds", state: "passed" },
    { name: 'x.ATest.says "<b> & c"', state: "failed" },
    { name: "x.ATest.waits", state: "skipped" },
    { name: "x.ATest.breaks", state: "failed" },
  ]);
});

test.each([
  [
    "a document type with entities",
    '<!DOCTYPE a [<!ENTITY b "&c;&c;">]><testsuite><testcase name="&b;"/></testsuite>',
    "something else",
  ],
  ["another kind of file", "<project><testcase name='x'/></project>", "something else"],
  ["no XML", "not ok 1", "something else"],
  ["a file that was cut off", SUITE.slice(0, -20), "broken"],
  ["a tag that never ends", `<testsuite>${"<testcase ".repeat(10)}`, "broken"],
  ["tags that cross", "<testsuite><a></testsuite></a>", "broken"],
  ["a second root", "<testsuite/><testsuite/>", "broken"],
])("%s is no report", async (_, text, is) => {
  expect(await parseJunit(text)).toBe(is);
});

test("hostile files of five megabytes are read in a moment", async () => {
  const long = 5_000_000;
  for (const piece of ["<", "<a>", '<a b="', "<!--", "<![CDATA[", "&amp;", "<a b='&#99;'/>", "<testcase name='"]) {
    const started = performance.now();
    await parseJunit(`<testsuite>${piece.repeat(long / piece.length)}`);
    expect(performance.now() - started, piece).toBeLessThan(soon(20_000));
  }
});

test("only files that were written since the check began count, wherever builds put them", async () => {
  const folder = temporaryFolder();
  write(folder, {
    "target/surefire-reports/TEST-x.ATest.xml": SUITE,
    "core/build/test-results/test/TEST-x.BTest.xml": one("b"),
    "junit.xml": one("c", ""),
    "pom.xml": one("not a report"),
    "node_modules/p/junit.xml": one("not the project's"),
  });
  write(folder, { "web/target/failsafe-reports/TEST-old.xml": one("old") }, 1);
  expect(await read(folder)).toEqual({
    runner: "JUnit XML",
    failed: expect.arrayContaining(['x.ATest.says "<b> & c"', "x.ATest.breaks", "x.b"]),
    passed: 2,
    complete: true,
  });
  expect((await read(folder))?.failed).toHaveLength(3);
  // Gradle does not rewrite unchanged reports, so the number of tests is unknown.
  write(folder, { "web/build/test-results/test/TEST-x.CTest.xml": one("d", "") }, 1);
  expect((await read(folder))?.passed).toBeUndefined();
  expect(await read(folder, Date.now() + 60_000)).toBeUndefined();
});

test("a report is not whole beside one that cannot be read, or with a failure whose name several tests have", async () => {
  const whole = async (files: Record<string, string | Buffer>) => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "reports"));
    for (const [name, text] of Object.entries({ "TEST-a.xml": one("a"), ...files }))
      writeFileSync(join(folder, "reports", name), text);
    return (await read(folder))?.complete;
  };
  expect(await whole({ "lint.xml": "<checkstyle><file/></checkstyle>", "TEST-b.xml": one("b", "") })).toBe(true);
  expect(await whole({ "TEST-b.xml": Buffer.from(`\ufeff${one("b")}`, "utf16le") })).toBe(false);
  expect(await whole({ "TEST-b.xml": `<!DOCTYPE testsuite>${one("b")}` })).toBe(false);
  expect(await whole({ "TEST-b.xml": one("a", "") })).toBe(false);
  expect(await whole({ "TEST-b.xml": one("b", "") + one("c", "") })).toBe(false);
});

test("links, pipes and files that are too long are not opened, and a report that lacks one is not whole", async () => {
  const folder = temporaryFolder();
  const outside = temporaryFolder();
  write(outside, { "junit.xml": one("outside"), "reports/junit.xml": one("outside") });
  symlinkSync(join(outside, "junit.xml"), join(folder, "junit.xml"));
  symlinkSync(join(outside, "reports"), join(folder, "reports"));
  execFileSync("mkfifo", [join(folder, "test-results.xml")]);
  expect(await read(folder)).toBeUndefined();
  write(folder, { "junit-a.xml": one("a") });
  expect(await read(folder)).toMatchObject({ failed: ["x.a"], complete: true });
  write(folder, { "junit-b.xml": " ".repeat(5_000_001) });
  expect(await read(folder)).toMatchObject({ failed: ["x.a"], complete: false });
});
