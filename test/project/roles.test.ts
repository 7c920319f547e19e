import { expect, test } from "vitest";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { testGit } from "../support/git.ts";
import { projectOf } from "../support/project.ts";

const git = testGit();
const text = (...lines: string[]) => `${lines.join("\n")}\n`;
const json = (value: unknown) => JSON.stringify(value);
const lines = (count: number) => "x\n".repeat(count);
const analysisOf = (files: Record<string, string>) => analyzeProject(git, projectOf(files));

test("package files that were made, copied or are only read by tests are no packages", async () => {
  const other = json({ dependencies: { react: "19", express: "5" }, scripts: { test: "x" } });
  const folders = [
    "dist",
    "packages/a/dist/esm",
    "src/fixtures/app",
    "test-fixtures/app",
    "test_data/x",
    "vendored/x",
    "src/generated/client",
  ];
  const types = Array.from({ length: 60 }, (_, at) => [
    `types/t${at}/package.json`,
    json({ name: `@types/t${at}`, private: true, dependencies: { react: "19" } }),
  ]);
  const analysis = await analysisOf({
    "package.json": json({ name: "a" }),
    "index.js": lines(9),
    ...Object.fromEntries([...folders.map((folder) => [`${folder}/package.json`, other]), ...types]),
  });
  expect(analysis.packages.map(({ path }) => path)).toEqual(["."]);
  expect(analysis.frameworks).toEqual([]);
});

const rolesOf = async (files: Record<string, string>) => (await analysisOf(files)).roster.map(({ roleTitle }) => roleTitle);

test.each<[string, Record<string, string>]>([
  ["Markdown alone", { "README.md": lines(40), "guide/a.md": lines(400) }],
  [
    "pages and a script that builds them",
    { "docs/a.rst": lines(900), "docs/conf.py": lines(30), "build.sh": lines(5), "index.html": lines(50) },
  ],
  [
    "prose with a site generator",
    { "package.json": json({ dependencies: { vitepress: "1" }, scripts: { build: "vitepress build" } }), "a.md": lines(900) },
  ],
])("documentation has writers and nobody for tests: %s", async (_, files) => {
  const roles = await rolesOf(files);
  expect(roles).toContain("Technical Writer");
  expect(roles).not.toContain("Test Lead");
  expect(roles.join()).not.toMatch(/Architect|Backend/);
});

test("documentation that is tested, and code with much documentation, keep their Test Lead", async () => {
  expect(await rolesOf({ "a.md": lines(900), "test/links.test.js": lines(9) })).toContain("Test Lead");
  expect(await rolesOf({ "a.md": lines(900), "src/a.py": lines(400) })).toContain("Test Lead");
});

const java = (folder: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${folder}/src/main/java/A${at}.java`, lines(20)]));
const ANDROID = text("plugins {", '  id("com.android.library")', "}");

test("a library with a corner for Android has no Mobile Engineer; one whose code is an app has", async () => {
  const library = {
    "settings.gradle.kts": 'include("core", "android")\n',
    "build.gradle.kts": text("plugins {", '  id("com.android.application") apply false', "}"),
    "core/build.gradle.kts": text("plugins {", "  java", "}"),
    ...java("core", 30),
    "android/build.gradle.kts": ANDROID,
    ...java("android", 1),
  };
  expect(await rolesOf(library)).not.toContain("Mobile Engineer");
  expect(await rolesOf({ ...library, ...java("android", 20) })).toContain("Mobile Engineer");
  expect(await rolesOf({ "build.gradle.kts": ANDROID, ...java(".", 3) })).toContain("Mobile Engineer");
});

const code = (name: string, count = 5) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [name.replace("*", String(at)), lines(60)]));

test("a C++ library that ships a build file for Android among its scripts has no Mobile Engineer", async () => {
  const support = { "support/build.gradle": 'apply plugin: "com.android.library"\n', ...code("support/script*.py", 8) };
  const library = { "CMakeLists.txt": "project(fmt CXX)\n", ...code("src/part*.cc", 9), ...code("include/part*.h", 9) };
  const analysis = await analysisOf({ ...library, ...support });
  expect(analysis.roster.map(({ roleTitle }) => roleTitle)).not.toContain("Mobile Engineer");
  expect(analysis.commands.filter(({ cwd }) => cwd === "support")).toEqual([]);
  const native = { "app/build.gradle": 'apply plugin: "com.android.application"\n', ...code("app/src/main/cpp/game*.cc", 9) };
  expect(await rolesOf({ ...library, ...native })).toContain("Mobile Engineer");
});

const CI = { ".github/workflows/ci.yml": "on: push\njobs: {}\n" };
const SHAPES: Record<string, { files: Record<string, string>; roles: string[] }> = {
  "a C library": {
    files: { Makefile: "all:\n\tcc\ntest:\n\t./t\n", ...code("src/a*.c"), ...code("src/a*.h"), ...CI },
    roles: ["Lead C Architect", "C Engineer", "Test Lead", "CI/CD Engineer"],
  },
  "a Rust program for the terminal": {
    files: {
      "Cargo.toml": text("[package]", 'name = "a"', "[dependencies]", 'clap = "4"'),
      ...code("src/a*.rs"),
      "tests/a.rs": lines(9),
    },
    roles: ["Lead Rust Architect", "Rust Engineer", "Test Lead"],
  },
  "a Go service": {
    files: {
      "go.mod": text("module a", "require github.com/gin-gonic/gin v1.10.0"),
      ...code("a*.go"),
      "a_test.go": lines(9),
      Dockerfile: "FROM scratch\n",
    },
    roles: ["Lead Go Architect", "Go Backend Engineer", "Test Lead", "DevOps Engineer"],
  },
  "packages of a server and a page": {
    files: {
      "package.json": json({ private: true, workspaces: ["packages/*"] }),
      "packages/server/package.json": json({ name: "server", dependencies: { fastify: "5", pg: "8" } }),
      ...code("packages/server/src/a*.ts"),
      "packages/page/package.json": json({ name: "page", dependencies: { vue: "3" } }),
      ...code("packages/page/src/A*.vue"),
    },
    roles: [
      "Lead TypeScript Architect",
      "Vue Frontend Engineer",
      "TypeScript Backend Engineer",
      "Database Engineer",
      "Test Lead",
    ],
  },
  infrastructure: {
    files: { ...code("modules/a*.tf"), "main.tf": lines(40), "README.md": lines(30), ...CI },
    roles: ["Lead Infrastructure Architect", "Infrastructure Engineer", "CI/CD Engineer"],
  },
  "infrastructure that is tested": {
    files: { ...code("modules/a*.tf"), "test/vpc_test.go": lines(9), "go.mod": "module a\n" },
    roles: ["Lead Infrastructure Architect", "Infrastructure Engineer", "Test Lead", "DevOps Engineer"],
  },
  "models and their training": {
    files: { "requirements.txt": "torch\ntransformers\n", ...code("train*.py") },
    roles: ["Lead Python Architect", "Machine Learning Engineer", "Test Lead"],
  },
  "a Java library": {
    files: {
      "pom.xml": "<project><artifactId>a</artifactId></project>",
      ...java(".", 9),
      "src/test/java/ATest.java": lines(9),
    },
    roles: ["Lead Java Architect", "Java Engineer", "Test Lead"],
  },
  "a Python library whose documentation is built with a page's tools": {
    files: {
      "pyproject.toml": text("[project]", 'name = "a"'),
      ...code("src/a*.py"),
      "tests/test_a.py": lines(9),
      "docs/package.json": json({ dependencies: { react: "19", "@docusaurus/core": "3" } }),
    },
    roles: ["Lead Python Architect", "Python Engineer", "Test Lead"],
  },
  "an app for phones": {
    files: {
      "pubspec.yaml": text("name: a", "dependencies:", "  flutter: {sdk: flutter}"),
      ...code("lib/a*.dart"),
      "test/a_test.dart": lines(9),
    },
    roles: ["Lead Dart Architect", "Mobile Engineer", "Test Lead"],
  },
  "a list of links": { files: { "readme.md": lines(900) }, roles: ["Lead Documentation Editor", "Technical Writer"] },
  "an empty folder": { files: { "README.md": "" }, roles: ["Lead Software Architect", "Software Engineer", "Test Lead"] },
};

test.each(Object.keys(SHAPES))("roles follow what a project is: %s", async (name) => {
  expect(await rolesOf(SHAPES[name]!.files)).toEqual(SHAPES[name]!.roles);
});

test("a package file that tests read says nothing of what the project is installed with", async () => {
  const tool = { "Cargo.toml": '[package]\nname = "bat"\n', ...code("src/part*.rs"), "tests/syntax/a.csproj": "<Project/>\n" };
  expect((await analysisOf(tool)).packageManagers).toEqual(["Cargo"]);
});
