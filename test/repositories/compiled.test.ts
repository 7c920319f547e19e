import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ensureFile, ensureProgram } from "../support/program.ts";
import { type RealProject, runOn, writeFiles } from "../support/swarm/real-project.ts";

/**
 * Compilers keep files in the user's home. Debian's programs come first in the PATH, because those installed in a home only
 * work there.
 */
const env = { PATH: `/usr/bin:${process.env.PATH}`, HOME: process.env.HOME };

/**
 * For a project whose tests import its package: a working change is approved, by a check that was seen failing on broken code,
 * and a change that breaks the import is not.
 */
async function expectBound(project: Omit<RealProject, "writes">, source: string, better: string, broken?: string): Promise<void> {
  const good = await runOn({ ...project, writes: [source, better], parts: { env } });
  expect([good.run.outcome, good.run.reason]).toEqual(["approved", null]);
  expect(good.run.evidence.at(-1)).toMatchObject({ exitCode: 0, bound: true });
  if (broken === undefined) return;
  const bad = await runOn({ ...project, writes: [source, broken], parts: { env } });
  expect(bad.run.outcome).toBe("unapproved");
  expect(bad.run.reason).toContain('the check "test" fails');
}

const tested = (command: string) => [{ name: "test", command, cwd: "." }];

test("Go: modules of one repository", async () => {
  await ensureProgram("go", "golang-go");
  const files = {
    "go.mod": "module example.test/greet\n\ngo 1.19\n",
    "words/words.go": 'package words\n\nfunc Hello() string { return "hello" }\n',
    "greet_test.go":
      'package greet\n\nimport (\n\t"testing"\n\n\t"example.test/greet/words"\n)\n\nfunc TestHello(t *testing.T) {\n\tif words.Hello() != "hello" {\n\t\tt.Fatal("no")\n\t}\n}\n',
  };
  const better = `${files["words/words.go"]}\nfunc More() int { return 1 }\n`;
  const checks = tested("GOFLAGS=-mod=mod GOPROXY=off go test ./...");
  await expectBound({ files, checks }, "words/words.go", better, "package other\n");
});

test("Rust: a workspace with a path dependency", async () => {
  await ensureFile("/usr/bin/cargo", "cargo");
  const files = {
    ".gitignore": "target/\n",
    "Cargo.toml": '[workspace]\nmembers = ["core", "app"]\n',
    "core/Cargo.toml": '[package]\nname = "core-words"\nversion = "0.1.0"\nedition = "2021"\n',
    "core/src/lib.rs": 'pub fn hello() -> &\'static str { "hello" }\n',
    "app/Cargo.toml":
      '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\ncore-words = { path = "../core" }\n',
    "app/src/lib.rs": "pub fn greet() -> String { core_words::hello().to_string() }\n",
    "app/tests/greet.rs": '#[test]\nfn greets() { assert_eq!(app::greet(), "hello"); }\n',
  };
  const lock = "Cargo.lock\n";
  const project = { files: { ...files, ".gitignore": `target/\n${lock}` }, checks: tested("cargo test --offline --workspace") };
  await expectBound(project, "core/src/lib.rs", `${files["core/src/lib.rs"]}pub fn more() -> u8 { 1 }\n`, "pub fn other() {}\n");
});

test("Rust: a new failure in a crate behind one that failed before the run is found", async () => {
  await ensureFile("/usr/bin/cargo", "cargo");
  const crate = (name: string) => `[package]\nname = "${name}"\nversion = "0.1.0"\nedition = "2021"\n`;
  const tests = (body: string) => `#[test] fn fine() {}\n#[test] fn greets() { ${body} }\n`;
  const files = {
    ".gitignore": "target/\nCargo.lock\n",
    "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\n',
    "a/Cargo.toml": crate("a"),
    "a/src/lib.rs": tests('panic!("old")'),
    "b/Cargo.toml": crate("b"),
    "b/src/lib.rs": tests(""),
  };
  const project = { files, checks: tested("cargo test --offline") };
  const { run } = await runOn({ ...project, writes: ["b/src/lib.rs", tests('panic!("new")')], parts: { env } });
  expect(run.outcome).toBe("unapproved");
  expect(run.evidence.at(-1)).toMatchObject({
    verdict: "failed",
    why: expect.stringMatching(/^new: b:src\/lib.rs greets/),
    ranWith: 'run as "cargo test --no-fail-fast --offline", so that no failure hides another',
  });
});

test("C++: CMake and CTest", async () => {
  await ensureProgram("cmake");
  await ensureProgram("g++");
  const files = {
    ".gitignore": "out/\n",
    "CMakeLists.txt":
      "cmake_minimum_required(VERSION 3.20)\nproject(greet CXX)\nenable_testing()\nadd_library(words src/words.cpp)\ntarget_include_directories(words PUBLIC include)\nadd_executable(greet_test tests/greet_test.cpp)\ntarget_link_libraries(greet_test words)\nadd_test(NAME greet COMMAND greet_test)\n",
    "include/words.hpp": "#pragma once\nint words();\n",
    "src/words.cpp": '#include "words.hpp"\nint words() { return 1; }\n',
    "tests/greet_test.cpp": '#include "words.hpp"\nint main() { return words() == 1 ? 0 : 1; }\n',
  };
  const checks = tested(
    "cmake -S . -B out >out.log && cmake --build out >>out.log && ctest --test-dir out --output-on-failure; e=$?; rm -f out.log; exit $e",
  );
  await expectBound({ files, checks }, "src/words.cpp", `${files["src/words.cpp"]}int more() { return 2; }\n`);
});

/** Where Debian packages install what Maven would otherwise download. */
const MAVEN_REPOSITORY = "/usr/share/maven-repo";

/** A plugin in the newest installed version, because Maven's defaults name other versions. */
function plugin(name: string): string {
  const versions = readdirSync(join(MAVEN_REPOSITORY, "org/apache/maven/plugins", name)).filter((version) => /^\d/.test(version));
  const newest = versions.sort((a, b) => a.localeCompare(b, undefined, { numeric: true })).at(-1);
  return `<plugin><groupId>org.apache.maven.plugins</groupId><artifactId>${name}</artifactId><version>${newest}</version></plugin>`;
}

test("Java: Maven and JUnit", async () => {
  await ensureProgram("javac", "default-jdk-headless");
  await ensureProgram("mvn", "maven");
  const libraries = ["libmaven-compiler-plugin-java", "libmaven-resources-plugin-java", "libsurefire-java", "junit4"];
  await ensureFile(join(MAVEN_REPOSITORY, "org/apache/maven/plugins/maven-surefire-plugin"), ...libraries);
  const plugins = ["maven-resources-plugin", "maven-compiler-plugin", "maven-surefire-plugin"].map(plugin).join("");
  const settings =
    "<maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>";
  const files = {
    ".gitignore": "target/\n",
    // Nothing is downloaded: only Debian's packages are available.
    ".mvn/maven.config": `-o\n-Dmaven.repo.local=${MAVEN_REPOSITORY}\n`,
    "pom.xml": `<project><modelVersion>4.0.0</modelVersion><groupId>example</groupId><artifactId>words</artifactId><version>1</version><properties>${settings}</properties><dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies><build><plugins>${plugins}</plugins></build></project>\n`,
    "src/main/java/words/Words.java":
      'package words;\n\npublic class Words {\n  public static String hello() {\n    return "hello";\n  }\n}\n',
    "src/test/java/words/WordsTest.java":
      'package words;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class WordsTest {\n  @Test\n  public void says() {\n    assertEquals("hello", Words.hello());\n  }\n}\n',
  };
  const source = "src/main/java/words/Words.java";
  const checks = tested(`mvn -o -B -q -Dmaven.repo.local=${MAVEN_REPOSITORY} test`);
  await expectBound({ files, checks }, source, files[source].replace("hello()", "hello() /* as before */"));
});

test("PHP: PHPUnit, with what Composer put into vendor", async () => {
  await ensureProgram("php", "php-cli");
  await ensureProgram("phpunit");
  const files = {
    ".gitignore": "vendor/\n.phpunit.result.cache\n",
    "composer.json": '{"autoload": {"psr-4": {"Words\\\\": "src/"}}}\n',
    "src/Greeting.php": "<?php\nnamespace Words;\nclass Greeting { public static function hello() { return 'hello'; } }\n",
    "tests/GreetingTest.php":
      "<?php\nclass GreetingTest extends PHPUnit\\Framework\\TestCase {\n  public function testHello() { $this->assertSame('hello', Words\\Greeting::hello()); }\n}\n",
  };
  // What Composer generates for these files, without the rest of its loader.
  const autoload =
    "<?php\n$base = dirname(__DIR__);\nspl_autoload_register(function ($class) use ($base) { if (str_starts_with($class, 'Words')) require $base . '/src/' . substr($class, 6) . '.php'; });\n";
  const prepare = (project: string) => writeFiles(project, { "vendor/autoload.php": autoload });
  const better = files["src/Greeting.php"].replace("hello()", "hello() /* as before */");
  const checks = tested("phpunit --bootstrap vendor/autoload.php tests");
  await expectBound({ files, checks, prepare }, "src/Greeting.php", better);
});
