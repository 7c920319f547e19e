import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { detectTests } from "../../src/project/test-commands.ts";
import type { Analysis } from "../../src/protocol/analysis.ts";
import { Analysis as AnalysisSchema } from "../../src/protocol/analysis.ts";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { express, prettier, vueCore } from "../fixtures/repositories/javascript.ts";
import { cobra, kubernetes, nlohmannJson, ripgrep, tokio } from "../fixtures/repositories/native.ts";
import { commonsLang, newtonsoft, rails, springPetclinic } from "../fixtures/repositories/others.ts";
import { django, flask, requests } from "../fixtures/repositories/python.ts";
import type { Shape } from "../fixtures/repositories/shape.ts";
import { testGit } from "../support/git.ts";
import { commandLines, projectOf } from "../support/project.ts";

const git = testGit();

/** Every fact of an analysis except sizes, so that the analysis cannot state any fact that is not expected here. */
const factsOf = (analysis: Analysis) => ({
  languages: analysis.languages.map(({ name }) => name).join(" "),
  monorepo: analysis.monorepo,
  packages: analysis.packages.map(({ path, kind }) => `${path} ${kind}`),
  packageManagers: analysis.packageManagers,
  frameworks: analysis.frameworks,
  testTools: analysis.testTools,
  testFiles: analysis.testFiles,
  ci: analysis.ci,
  containers: analysis.containers,
  commands: commandLines(analysis),
  roles: analysis.roster.map(({ roleTitle }) => roleTitle),
});

const CASES: Record<string, { files: Shape; facts: ReturnType<typeof factsOf> }> = {
  "nlohmann/json": {
    files: nlohmannJson,
    facts: {
      languages: "C++ HTML Python CMake Make Swift Starlark",
      monorepo: null,
      packages: [". cmake", ". bazel", ". swift"],
      packageManagers: [],
      frameworks: [],
      testTools: ["doctest", "CTest"],
      testFiles: 2,
      ci: ["GitHub Actions", "Cirrus CI"],
      containers: [],
      commands: [
        "test . cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error",
        "build . cmake -B build && cmake --build build",
      ],
      roles: ["Lead C++ Architect", "C++ Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  django: {
    files: django,
    facts: {
      languages: "Python JavaScript HTML CSS",
      monorepo: null,
      packages: [". npm", ". python"],
      packageManagers: ["npm"],
      frameworks: [],
      testTools: ["QUnit", "tox", "a runner of its own"],
      testFiles: 3,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . python3 -Wall tests/runtests.py -v2"],
      roles: ["Lead Python Architect", "Python Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  flask: {
    files: flask,
    facts: {
      languages: "Python SQL HTML",
      monorepo: null,
      packages: [". python", "examples/celery python", "examples/javascript python", "examples/tutorial python"],
      packageManagers: ["uv"],
      frameworks: [],
      testTools: ["tox", "pytest"],
      testFiles: 2,
      ci: ["GitHub Actions"],
      containers: [],
      commands: [
        "test . uv run python -m pytest",
        "lint . uv run ruff check --no-fix .",
        "lint . uv run mypy",
        "lint . uv run pyright",
      ],
      roles: ["Lead Python Architect", "Python Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  requests: {
    files: requests,
    facts: {
      languages: "Python HTML Make",
      monorepo: null,
      packages: [". python"],
      packageManagers: [],
      frameworks: [],
      testTools: ["pytest", "tox"],
      testFiles: 2,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . make ci"],
      roles: ["Lead Python Architect", "Python Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  express: {
    files: express,
    facts: {
      languages: "JavaScript HTML",
      monorepo: null,
      packages: [". npm", "examples/search npm"],
      packageManagers: ["npm"],
      frameworks: [],
      testTools: ["Mocha"],
      testFiles: 3,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . npm test", "lint . npm run lint"],
      roles: ["Lead JavaScript Architect", "JavaScript Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  "vue core": {
    files: vueCore,
    facts: {
      languages: "TypeScript HTML JavaScript Vue",
      monorepo: "pnpm workspaces",
      packages: [
        ". npm",
        "packages-private/sfc-playground npm",
        "packages/runtime-dom npm",
        "packages/server-renderer npm",
        "packages/vue npm",
      ],
      packageManagers: ["pnpm"],
      frameworks: ["esbuild", "Rollup", "Vite"],
      testTools: ["Vitest"],
      testFiles: 1,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . pnpm run test-unit", "lint . pnpm run lint", "lint . pnpm run check"],
      roles: ["Lead TypeScript Architect", "TypeScript Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  prettier: {
    files: prettier,
    facts: {
      languages: "JavaScript CSS Vue",
      monorepo: "Yarn workspaces",
      packages: [". npm", "website npm", "packages/plugin-oxc npm", "scripts/tools/eslint-plugin-prettier-internal-rules npm"],
      packageManagers: ["yarn"],
      frameworks: ["esbuild", "Rollup"],
      testTools: ["Jest", "node:test"],
      testFiles: 2,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . yarn test", "lint . yarn run lint"],
      roles: ["Lead JavaScript Architect", "JavaScript Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  rails: {
    files: rails,
    facts: {
      languages: "Ruby JavaScript",
      monorepo: "Yarn workspaces",
      packages: [
        ". ruby",
        ". npm",
        "actioncable ruby",
        "actioncable npm",
        "activerecord ruby",
        "activesupport ruby",
        "railties ruby",
      ],
      packageManagers: ["Bundler", "yarn"],
      frameworks: ["Rollup"],
      testTools: ["Minitest", "Capybara", "Karma", "QUnit"],
      testFiles: 2,
      ci: ["GitHub Actions"],
      containers: ["Dev Container"],
      commands: [
        "test . bundle exec rake test",
        "test actioncable yarn run test",
        "lint . bundle exec rubocop --parallel",
        "build actioncable yarn run build",
      ],
      roles: ["Lead Ruby Architect", "Ruby Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  "spring petclinic": {
    files: springPetclinic,
    facts: {
      languages: "Java SQL HTML Groovy",
      monorepo: null,
      packages: [". gradle", ". maven"],
      packageManagers: ["Gradle", "Maven"],
      frameworks: ["Spring Boot", "Spring Data", "PostgreSQL", "MySQL"],
      testTools: ["Spring Boot Test", "JUnit"],
      testFiles: 1,
      ci: ["GitHub Actions"],
      containers: ["Docker Compose"],
      commands: ["test . ./mvnw -B verify"],
      roles: ["Lead Java Architect", "Java Backend Engineer", "Database Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  "commons-lang": {
    files: commonsLang,
    facts: {
      languages: "Java",
      monorepo: null,
      packages: [". maven"],
      packageManagers: ["Maven"],
      frameworks: [],
      testTools: ["JUnit"],
      testFiles: 1,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . mvn --show-version clean verify checkstyle:check spotbugs:check pmd:check"],
      roles: ["Lead Java Architect", "Java Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  newtonsoft: {
    files: newtonsoft,
    facts: {
      languages: "C# PowerShell",
      monorepo: ".NET solution",
      packages: ["Src/Newtonsoft.Json.Tests dotnet", "Src/Newtonsoft.Json dotnet"],
      packageManagers: ["NuGet"],
      frameworks: [],
      testTools: ["NUnit", ".NET test SDK"],
      testFiles: 1,
      ci: ["Azure Pipelines"],
      containers: [],
      commands: ["test Src dotnet test", "build Src dotnet build"],
      roles: ["Lead C# Architect", "C# Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  ripgrep: {
    files: ripgrep,
    facts: {
      languages: "Rust Python",
      monorepo: "Cargo workspace",
      packages: [". cargo", "fuzz cargo", "crates/globset cargo", "crates/ignore cargo"],
      packageManagers: ["Cargo"],
      frameworks: [],
      testTools: ["cargo test"],
      testFiles: 1,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . cargo test --verbose --workspace", "lint . cargo fmt --all --check"],
      roles: ["Lead Rust Architect", "Rust Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  tokio: {
    files: tokio,
    facts: {
      languages: "Rust",
      monorepo: "Cargo workspace",
      packages: [". cargo", "benches cargo", "examples cargo", "tests-integration cargo", "tokio-stream cargo", "tokio cargo"],
      packageManagers: ["Cargo"],
      frameworks: [],
      testTools: ["proptest", "cargo test"],
      testFiles: 2,
      ci: ["GitHub Actions", "Cirrus CI"],
      containers: [],
      commands: [
        "test . cargo test --features full",
        "lint . cargo clippy --all --tests --all-features --no-deps",
        "lint . cargo fmt --check",
      ],
      roles: ["Lead Rust Architect", "Rust Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  cobra: {
    files: cobra,
    facts: {
      languages: "Go Make",
      monorepo: null,
      packages: [". go"],
      packageManagers: ["Go modules"],
      frameworks: [],
      testTools: ["go test"],
      testFiles: 2,
      ci: ["GitHub Actions"],
      containers: [],
      commands: ["test . go test ./...", "lint . golangci-lint run", "build . go build ./..."],
      roles: ["Lead Go Architect", "Go Engineer", "Test Lead", "CI/CD Engineer"],
    },
  },
  kubernetes: {
    files: kubernetes,
    facts: {
      languages: "Go Shell Make Dockerfile",
      monorepo: "Go workspace",
      packages: [
        ". go",
        "hack/tools go",
        "staging/src/k8s.io/api go",
        "staging/src/k8s.io/client-go go",
        "staging/src/k8s.io/sample-apiserver go",
      ],
      packageManagers: ["Go modules"],
      frameworks: ["gRPC"],
      testTools: ["Ginkgo", "Testify", "go test"],
      testFiles: 3,
      ci: [],
      containers: ["Docker"],
      commands: ["test . make test", "lint . make vet", "build . make all"],
      roles: ["Lead Go Architect", "Go Backend Engineer", "Test Lead", "DevOps Engineer"],
    },
  },
};

/** Commands that are recognized as tests by what their targets do, not by their names. */
const BY_RECIPE = ["make ci"];

test.each(Object.keys(CASES))("a repository shaped like %s is told as what it is, and nothing more", async (name) => {
  const { files, facts } = CASES[name]!;
  const root = projectOf(files);
  const analysis = await analyzeProject(git, root);
  expect(AnalysisSchema.parse(analysis)).toEqual(analysis);
  expect(factsOf(analysis)).toEqual(facts);
  expect(analysis.problems).toEqual([]);
  for (const { purpose, command, from } of analysis.commands) {
    expect([from, existsSync(join(root, from))]).toEqual([from, true]);
    if (BY_RECIPE.includes(command)) continue;
    expect([command, detectTests(command)]).toMatchObject([
      command,
      { isTest: purpose === "test", exitCodeIsTests: purpose === "test" },
    ]);
  }
  expect(analysis.roster.map(({ reason }) => reason).join()).not.toMatch(/no tests/);
});

test("a Makefile that is a link to one inside the project is read, and one that leads out is not", async () => {
  const { Makefile, ...files } = kubernetes;
  const root = projectOf({ ...files, "build/root/Makefile": Makefile! });
  const testsOf = async () => (await analyzeProject(git, root)).commands.find(({ purpose }) => purpose === "test")?.command;
  symlinkSync("build/root/Makefile", join(root, "Makefile"));
  expect(await testsOf()).toBe("make test");
  rmSync(join(root, "Makefile"));
  symlinkSync(join(projectOf({ Makefile: Makefile! }), "Makefile"), join(root, "Makefile"));
  expect(await testsOf()).toBe("go test ./...");
});

test("style sheets that are made from others of the same name are not counted", async () => {
  const { languages } = await analyzeProject(
    git,
    projectOf({ "src/a.scss": "x\n", "static/a.css": "x\n".repeat(99), "b.css": "x\n" }),
  );
  expect(languages).toEqual([{ name: "CSS", files: 2, lines: 2, share: 1 }]);
});
