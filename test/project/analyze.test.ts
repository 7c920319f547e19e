import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, realpathSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { findChecks } from "../../src/project/commands.ts";
import { detectTests } from "../../src/project/test-commands.ts";
import type { Analysis } from "../../src/protocol/analysis.ts";
import { Analysis as AnalysisSchema } from "../../src/protocol/analysis.ts";
import { analyzeProject as analyze } from "../../src/squads/analyze.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { soon } from "../support/soon.ts";

const git = testGit();
const analyzeProject = (path: string, options: { signal?: AbortSignal } = {}) => analyze(git, path, options);

const temporary = () => realpathSync(temporaryFolder());

function project(files: Record<string, string>, { git = false } = {}): string {
  const root = temporary();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  if (git) execFileSync("git", ["init", "-q"], { cwd: root });
  return root;
}
const lines = (count: number) => "x\n".repeat(count);
const commands = ({ commands: all }: Analysis) => all.map(({ purpose, command, cwd }) => `${purpose} ${cwd} ${command}`);

const SAMPLES: Record<
  string,
  { files: Record<string, string>; expected: Partial<Analysis>; commands: string[]; roles: string[] }
> = {
  "an npm workspace with a React page and an Express server": {
    files: {
      "package.json": JSON.stringify({ name: "shop", workspaces: ["packages/*"], scripts: { test: "npm test -ws" } }),
      "package-lock.json": "{}",
      "packages/web/package.json": JSON.stringify({ name: "web", dependencies: { react: "19" }, scripts: { lint: "eslint ." } }),
      "packages/web/src/app.tsx": lines(30),
      "packages/api/package.json": JSON.stringify({
        name: "api",
        dependencies: { express: "5", "@prisma/client": "6" },
        devDependencies: { vitest: "4" },
      }),
      "packages/api/src/main.ts": lines(60),
      "packages/api/src/old.js": lines(10),
      ".github/workflows/ci.yml": "on: push\n",
      Dockerfile: "FROM node\n",
    },
    expected: {
      languages: [
        { name: "TypeScript", files: 2, lines: 90, share: 0.891 },
        { name: "JavaScript", files: 1, lines: 10, share: 0.099 },
        { name: "Dockerfile", files: 1, lines: 1, share: 0.01 },
      ],
      monorepo: "npm workspaces",
      packages: [
        { path: ".", name: "shop", kind: "npm", frameworks: [] },
        { path: "packages/api", name: "api", kind: "npm", frameworks: ["Express", "Prisma", "Vitest"] },
        { path: "packages/web", name: "web", kind: "npm", frameworks: ["React"] },
      ],
      frameworks: ["Express", "Prisma", "React"],
      testTools: ["Vitest"],
      ci: ["GitHub Actions"],
      containers: ["Docker"],
    },
    commands: ["test . npm test", "lint packages/web npm run lint"],
    roles: [
      "Lead TypeScript Architect",
      "React Frontend Engineer",
      "TypeScript Backend Engineer",
      "Database Engineer",
      "Test Lead",
      "CI/CD Engineer",
    ],
  },
  "a pnpm monorepo whose root has no scripts": {
    files: {
      "package.json": JSON.stringify({ name: "root", scripts: { test: 'echo "Error: no test specified" && exit 1' } }),
      "pnpm-lock.yaml": "lockfileVersion: 9\n",
      "pnpm-workspace.yaml": "packages: [apps/*]\n",
      "apps/site/package.json": JSON.stringify({
        name: "site",
        dependencies: { vue: "3" },
        scripts: { test: "vitest run", build: "vite build", "evil; rm -rf /": "x" },
      }),
      "apps/site/src/App.vue": lines(5),
    },
    expected: { monorepo: "pnpm workspaces", frameworks: ["Vue"] },
    commands: ["test apps/site pnpm run test", "build apps/site pnpm run build"],
    roles: ["Lead Vue Architect", "Vue Frontend Engineer", "Test Lead"],
  },
  "a Cargo workspace": {
    files: {
      "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
      "Cargo.lock": lines(500),
      "clippy.toml": "",
      "crates/core/Cargo.toml":
        '[package]\nname = "core"\n\n[dependencies]\naxum = "0.8"\nsqlx = { version = "0.8" }\n\n[dev-dependencies]\nproptest = "1"\n',
      "crates/core/src/lib.rs": lines(40),
    },
    expected: {
      monorepo: "Cargo workspace",
      frameworks: ["Axum", "SQLx"],
      testTools: ["proptest", "cargo test"],
      languages: [{ name: "Rust", files: 1, lines: 40, share: 1 }],
    },
    commands: ["test . cargo test --workspace", "lint . cargo clippy --workspace", "build . cargo build --workspace"],
    roles: ["Lead Rust Architect", "Rust Backend Engineer", "Database Engineer", "Test Lead"],
  },
  "a Go service": {
    files: {
      "go.mod":
        "module example.invalid/svc\n\ngo 1.23\n\nrequire (\n\tgithub.com/gin-gonic/gin v1.10.0\n\tgithub.com/jackc/pgx/v5 v5.7.0\n)\n",
      "main.go": lines(20),
      "main_test.go": lines(10),
      "api.pb.go": lines(900),
      Makefile: "test:\n\tgo test ./...\n",
      ".gitlab-ci.yml": "test: {}\n",
    },
    expected: {
      frameworks: ["Gin", "PostgreSQL"],
      testTools: ["go test"],
      ci: ["GitLab CI"],
      packages: [{ path: ".", name: "example.invalid/svc", kind: "go", frameworks: ["Gin", "PostgreSQL"] }],
    },
    commands: ["test . go test ./...", "lint . go vet ./...", "build . go build ./..."],
    roles: ["Lead Go Architect", "Go Backend Engineer", "Database Engineer", "Test Lead", "CI/CD Engineer"],
  },
  "a Python project with uv": {
    files: {
      "pyproject.toml":
        '[project]\nname = "svc"\ndependencies = [\n  "fastapi[standard]>=0.115",\n  "pandas",\n]\n\n[dependency-groups]\ndev = ["pytest>=8", "ruff"]\n\n[tool.mypy]\nstrict = true\n',
      "uv.lock": lines(300),
      "src/svc/app.py": lines(25),
      "tests/test_app.py": lines(5),
      "schema_pb2.py": lines(99),
    },
    expected: {
      frameworks: ["FastAPI", "pandas"],
      testTools: ["pytest"],
      languages: [{ name: "Python", files: 2, lines: 30, share: 1 }],
    },
    commands: ["test . uv run python -m pytest", "lint . uv run ruff check .", "lint . uv run mypy ."],
    roles: ["Lead Python Architect", "Python Backend Engineer", "Machine Learning Engineer", "Test Lead"],
  },
  "a Django project with requirements only": {
    files: {
      "requirements.txt": "Django==5.1  # web\npsycopg2-binary>=2\n",
      "manage.py": lines(10),
      "shop/tests/test_cart.py": lines(4),
    },
    expected: { frameworks: ["Django", "PostgreSQL"] },
    commands: ["test . python3 manage.py test"],
    roles: ["Lead Python Architect", "Python Backend Engineer", "Database Engineer", "Test Lead"],
  },
  "a Maven project of two modules": {
    files: {
      "pom.xml":
        "<project><parent><artifactId>spring-boot-starter-parent</artifactId></parent><artifactId>shop</artifactId><modules><module>core</module></modules></project>",
      mvnw: "#!/bin/sh\n",
      "core/pom.xml":
        "<project><artifactId>core</artifactId><dependencies><dependency><artifactId>junit-jupiter</artifactId></dependency></dependencies></project>",
      "core/src/main/java/A.java": lines(12),
    },
    expected: { monorepo: "Maven modules", frameworks: ["Spring Boot"], testTools: ["JUnit"] },
    commands: ["test . ./mvnw -B test", "build . ./mvnw -B package -DskipTests"],
    roles: ["Lead Java Architect", "Java Backend Engineer", "Test Lead"],
  },
  "a Gradle project in Kotlin": {
    files: {
      "settings.gradle.kts": 'rootProject.name = "app"\ninclude("core")\n',
      "build.gradle.kts":
        'plugins { id("com.diffplug.spotless") version "6" }\ndependencies { implementation("io.ktor:ktor-server-core:3.0") }\n',
      gradlew: "#!/bin/sh\n",
      "core/src/main/kotlin/A.kt": lines(9),
    },
    expected: { monorepo: "Gradle projects", frameworks: ["Ktor"] },
    commands: ["test . ./gradlew test", "lint . ./gradlew spotlessCheck", "build . ./gradlew assemble"],
    roles: ["Lead Kotlin Architect", "Kotlin Backend Engineer", "Test Lead"],
  },
  "a .NET solution": {
    files: {
      "Shop.sln": "Microsoft Visual Studio Solution File\n",
      "src/Shop/Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web"></Project>',
      "src/Shop/Program.cs": lines(15),
      "test/Shop.Tests/Shop.Tests.csproj":
        '<Project Sdk="Microsoft.NET.Sdk"><ItemGroup><PackageReference Include="Microsoft.NET.Test.Sdk" Version="17" /><PackageReference Include="xunit" Version="2" /></ItemGroup></Project>',
    },
    expected: { monorepo: ".NET solution", frameworks: ["ASP.NET Core"], testTools: [".NET test SDK", "xUnit"] },
    commands: ["test . dotnet test", "build . dotnet build"],
    roles: ["Lead C# Architect", "C# Backend Engineer", "Test Lead"],
  },
  "a Rails application": {
    files: {
      Gemfile: 'gem "rails", "~> 8"\ngem "rubocop"\n',
      "Gemfile.lock": lines(80),
      "bin/rails": "#!/usr/bin/env ruby\n",
      "app/models/a.rb": lines(8),
    },
    expected: { frameworks: ["Rails"] },
    commands: ["test . bin/rails test", "lint . bundle exec rubocop"],
    roles: ["Lead Ruby Architect", "Ruby Backend Engineer", "Test Lead"],
  },
  "a C project with a Makefile": {
    files: {
      Makefile: "CC := gcc\nbuild: main.o\n\tcc main.c\n\ncheck: build\n\t./run\n",
      "main.c": lines(50),
      "main.h": lines(5),
      "compose.yaml": "services: {}\n",
    },
    expected: { containers: ["Docker Compose"] },
    commands: ["test . make check", "build . make build"],
    roles: ["Lead C Architect", "C Engineer", "Test Lead", "DevOps Engineer"],
  },
  "an empty folder": {
    files: {},
    expected: { languages: [], packages: [] },
    commands: [],
    roles: ["Lead Software Architect", "Software Engineer", "Test Lead"],
  },
};

test.each(Object.keys(SAMPLES))("%s is seen for what it is", async (name) => {
  const sample = SAMPLES[name]!;
  const analysis = await analyzeProject(project(sample.files));
  expect(AnalysisSchema.parse(analysis)).toEqual(analysis);
  expect(analysis).toMatchObject(sample.expected);
  expect(commands(analysis)).toEqual(sample.commands);
  expect(analysis.roster.map(({ roleTitle }) => roleTitle)).toEqual(sample.roles);
  expect(analysis.problems).toEqual([]);
});

test("every command that a project is said to be tested with is known for a test when it is run", async () => {
  const more: Record<string, string>[] = [
    ...["test", "test:unit", "test:ci", "tests"].flatMap((script) =>
      ["npm", "pnpm", "yarn", "bun"].map((manager) => ({
        "package.json": JSON.stringify({ packageManager: `${manager}@9.0.0`, scripts: { [script]: "x" } }),
      })),
    ),
    { "deno.json": "{}" },
    { "build.sbt": "" },
    { "mix.exs": "" },
    { "pubspec.yaml": "name: x\n" },
    { "pubspec.yaml": "name: x\ndependencies:\n  flutter:\n    sdk: flutter\n" },
    { "Package.swift": "" },
    { "composer.json": '{"scripts":{"test":"x"}}' },
    { "composer.json": "{}", "phpunit.xml": "" },
    { Gemfile: 'gem "rspec"\n' },
    { Gemfile: 'gem "rake"\n', Rakefile: "Rake::TestTask.new\n" },
    { "pom.xml": "<project></project>" },
    { "build.gradle": "" },
    ...["uv.lock", "poetry.lock", "Pipfile", "a.py"].flatMap((runner) =>
      ["pytest.ini", "manage.py", "tox.ini", "test_a.py"].map((sign) => ({ "pyproject.toml": "", [runner]: "", [sign]: "" })),
    ),
    ...["test", "tests", "check"].flatMap((target) => [{ Makefile: `${target}:\n\tx\n` }, { justfile: `${target}:\n  x\n` }]),
    { "CMakeLists.txt": "enable_testing()\n" },
  ];
  const all = await Promise.all(
    [...Object.values(SAMPLES).map(({ files }) => files), ...more].map(
      async (files) => (await analyzeProject(project(files))).commands,
    ),
  );
  const tests = [...new Set(all.flat().flatMap(({ purpose, command }) => (purpose === "test" ? [command] : [])))];
  expect(tests.length).toBeGreaterThan(50);
  expect(tests.filter((command) => !detectTests(command).isTest || !detectTests(command).exitCodeIsTests)).toEqual([]);
  const others = new Set(all.flat().flatMap(({ purpose, command }) => (purpose === "test" ? [] : [command])));
  expect([...others].filter((command) => detectTests(command).isTest)).toEqual([]);
});

test("the checks are the project's own commands, the cheapest first", async () => {
  const scripts = { build: "tsc", lint: "biome check", test: "vitest run", types: "tsc --noEmit" };
  const root = project({
    "package.json": JSON.stringify({ packageManager: "yarn@4.1.0", scripts }),
    "sub/package.json": JSON.stringify({ scripts }),
  });
  expect(findChecks(await analyzeProject(root))).toEqual([
    { name: "lint: yarn run lint", command: "yarn run lint", cwd: ".", from: "package.json" },
    { name: "lint: yarn run types", command: "yarn run types", cwd: ".", from: "package.json" },
    { name: "build", command: "yarn run build", cwd: ".", from: "package.json" },
    { name: "test", command: "yarn run test", cwd: ".", from: "package.json" },
  ]);
});

test("a broken package.json is told of and does not hide the rest", async () => {
  const analysis = await analyzeProject(
    project({
      "package.json": '{ "name": "x", ',
      "a/package.json": "[]",
      "b/package.json": '{"name":"b","dependencies":{"hono":"4"},"scripts":7}',
      "a.ts": lines(3),
    }),
  );
  expect(analysis.problems.map(({ file }) => file)).toEqual(["package.json", "a/package.json"]);
  expect(analysis.packages.map(({ path, name }) => [path, name])).toEqual([
    [".", ""],
    ["a", "a"],
    ["b", "b"],
  ]);
  expect(analysis.frameworks).toEqual(["Hono"]);
  expect(analysis.size.lines).toBe(3);
});

test("a file of a million lines is counted, one line more for an end without a line break", async () => {
  const root = project({ "small.py": "a\nb" });
  const file = openSync(join(root, "big.py"), "w");
  for (let part = 0; part < 100; part += 1) writeSync(file, "value = 1  # some line of ordinary length\n".repeat(10_000));
  closeSync(file);
  const analysis = await analyzeProject(root);
  expect(analysis.languages).toEqual([{ name: "Python", files: 2, lines: 1_000_002, share: 1 }]);
});

test.each([{ git: false }, { git: true }])(
  "links that lead in circles, out of the project or nowhere are not followed (%j)",
  async ({ git }) => {
    const outside = project({ "secret.ts": lines(1_000), "package.json": '{"name":"outside"}' });
    const root = project({ "src/a.ts": lines(4) }, { git });
    symlinkSync("..", join(root, "src", "loop"));
    symlinkSync(outside, join(root, "outside"));
    symlinkSync(join(outside, "secret.ts"), join(root, "linked.ts"));
    symlinkSync(join(outside, "package.json"), join(root, "package.json"));
    symlinkSync("self.ts", join(root, "self.ts"));
    symlinkSync("gone.ts", join(root, "dangling.ts"));
    execFileSync("mkfifo", [join(root, "pipe.ts")]);
    const analysis = await analyzeProject(root);
    expect(analysis.languages).toEqual([{ name: "TypeScript", files: 1, lines: 4, share: 1 }]);
    expect(analysis.packages).toEqual([]);
  },
);

test("what .gitignore leaves out is left out, what is not yet added counts, and what was deleted does not", async () => {
  const root = project(
    { ".gitignore": "out/\n*.log.ts\n", "a.ts": lines(2), "gone.ts": lines(9), "out/b.ts": lines(50), "c.log.ts": lines(50) },
    { git: true },
  );
  execFileSync("git", ["add", "gone.ts"], { cwd: root });
  execFileSync("rm", [join(root, "gone.ts")]);
  const analysis = await analyzeProject(root);
  expect(analysis.source).toBe("git");
  expect(analysis.languages).toEqual([{ name: "TypeScript", files: 1, lines: 2, share: 1 }]);
});

test("outside a repository the folders that tools fill are passed over", async () => {
  const root = project({
    "a.js": lines(2),
    "node_modules/x/index.js": lines(90),
    "dist/a.js": lines(90),
    "target/b.js": lines(9),
    "vendor/c.js": lines(9),
  });
  const analysis = await analyzeProject(root);
  expect([analysis.source, analysis.size]).toMatchObject(["folder", { files: 1, codeFiles: 1, lines: 2 }]);
});

test("outside a repository a .gitignore holds too, repositories inside are seen, and nothing is left behind", async () => {
  const root = project({
    ".gitignore": "out/\n*.log.ts\n!vendor/\n",
    "a.ts": lines(2),
    "out/b.ts": lines(50),
    "c.log.ts": lines(50),
    "sub/.gitignore": "gen\n",
    "sub/gen/d.ts": lines(50),
    "sub/ä e.ts": lines(1),
    "vendor/f.ts": lines(50),
    "inner/.gitignore": "made/\n",
    "inner/g.ts": lines(3),
    "inner/made/h.ts": lines(50),
  });
  execFileSync("git", ["init", "-q"], { cwd: join(root, "inner") });
  const scratch = temporary();
  vi.stubEnv("TMPDIR", scratch);
  onTestFinished(() => void vi.unstubAllEnvs());
  const analysis = await analyzeProject(root);
  expect(analysis.source).toBe("folder");
  expect(analysis.languages).toEqual([{ name: "TypeScript", files: 3, lines: 6, share: 1 }]);
  expect(readdirSync(scratch)).toEqual([]);
});

test("without git a folder is still walked, and what an outer repository ignores is seen", async () => {
  const root = project({ ".gitignore": "work/\n", "work/a.ts": lines(2), "work/node_modules/x.ts": lines(9) }, { git: true });
  const seen = [{ name: "TypeScript", files: 1, lines: 2, share: 1 }];
  expect((await analyzeProject(join(root, "work"))).languages).toEqual(seen);
  vi.stubEnv("PATH", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await analyzeProject(join(root, "work"))).languages).toEqual(seen);
});

test("binary, generated and lock files are not counted, and a script is known by its first line", async () => {
  const root = project({
    "image.ts": `\u0000${lines(9)}`,
    "made.ts": `// @generated by a tool\n${lines(9)}`,
    "made.go": `// Code generated by protoc. DO NOT EDIT.\n${lines(9)}`,
    "app.min.js": lines(9),
    "yarn.lock": lines(9),
    "bin/tool": `#!/usr/bin/env python3\n${lines(3)}`,
    LICENSE: lines(20),
    "README.md": lines(6),
  });
  const analysis = await analyzeProject(root);
  expect(analysis.languages).toEqual([{ name: "Python", files: 1, lines: 4, share: 1 }]);
  expect(analysis.documents).toEqual([{ name: "Markdown", files: 1, lines: 6 }]);
});

test("a path that is missing or no folder is refused with help, and an analysis can be stopped", async () => {
  const root = project({ "a.ts": "x" });
  await expect(analyzeProject(join(root, "nowhere"))).rejects.toThrow(/there is no such folder/);
  await expect(analyzeProject(join(root, "a.ts"))).rejects.toThrow(/is not a folder/);
  await expect(analyzeProject(`${root}\u0000`)).rejects.toThrow(/there is no such folder/);
  await expect(analyzeProject(root, { signal: AbortSignal.abort(new Error("stopped")) })).rejects.toThrow("stopped");
});

test("package files that were written to make a reader hang are read in seconds", async () => {
  const root = project({
    "a/pom.xml": "<parent>".repeat(100_000),
    "b/Cargo.toml": `[a${" ".repeat(900_000)}`,
    "c/requirements.txt": "\n".repeat(900_000),
    "d/setup.py": '"a['.repeat(300_000),
    "e/e.csproj": "<PackageReference ".repeat(50_000),
    "f/deno.json": "/*".repeat(400_000),
    "g/package.json": "[".repeat(100_000),
    "h/Package.swift": 'url: "/'.repeat(100_000),
  });
  const started = performance.now();
  const analysis = await analyzeProject(root);
  expect(performance.now() - started).toBeLessThan(soon(15_000));
  expect(analysis.packages).toHaveLength(8);
});
