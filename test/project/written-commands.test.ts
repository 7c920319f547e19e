import { expect, test } from "vitest";
import { findChecks } from "../../src/project/commands.ts";
import type { Analysis } from "../../src/protocol/analysis.ts";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { testGit } from "../support/git.ts";
import { commandLines, projectOf } from "../support/project.ts";

const git = testGit();
const text = (...lines: string[]) => `${lines.join("\n")}\n`;
const json = (value: unknown) => JSON.stringify(value);
const lines = (count: number) => "x\n".repeat(count);
const analysisOf = (files: Record<string, string>) => analyzeProject(git, projectOf(files));
const commandsOf = async (files: Record<string, string>) => commandLines(await analysisOf(files));
const placeholder = (name: string) => `\${{ ${name} }}`;
const withOrigin = ({ commands }: Analysis) => commands.map(({ command, from }) => `${command} <- ${from}`);

const workflow = (...steps: string[]) =>
  text(
    "on: [push, pull_request]",
    "jobs:",
    "  checks:",
    "    runs-on: ubuntu-latest",
    "    steps:",
    ...steps.map((step) => `      - ${step}`),
  );
const job = (id: string, rest: string) => text("on: push", "jobs:", `  ${id}: {${rest}}`);
const CRATE = { "Cargo.toml": text("[package]", 'name = "a"'), "src/lib.rs": lines(9), "tests/a.rs": lines(3) };
const NPM = {
  "package.json": json({
    scripts: { test: "node --test", lint: "x", "test:all": "x", build: "x", deploy: "x", "test:release": "x" },
  }),
};

test("a script that only the CI names is what the project is tested with, and the CI's file is named for it", async () => {
  const analysis = await analysisOf({
    "package.json": json({ name: "hooks", scripts: {} }),
    "test.sh": "#!/bin/sh\n",
    ".github/workflows/node.js.yml": workflow("uses: actions/checkout@v4", "run: npm ci --ignore-scripts", "run: ./test.sh"),
  });
  expect(withOrigin(analysis)).toEqual(["./test.sh <- .github/workflows/node.js.yml"]);
});

const IN_CI: Record<string, { files: Record<string, string>; expected: string[] }> = {
  "the CI's way goes before the usual one": {
    files: { ...CRATE, ".github/workflows/ci.yml": workflow("run: cargo nextest run --all-features") },
    expected: ["test . cargo nextest run --all-features"],
  },
  "a script that sends results to a service is none": {
    files: {
      "package.json": json({ scripts: { test: "mocha", "test:coverage": "cat ./coverage/lcov.info | coveralls" } }),
      ".travis.yml": text("language: node_js", "script:", "  - npm test", "  - npm run test:coverage", "  - npx codecov"),
    },
    expected: ["test . npm test"],
  },
  "a script that no rule knows is what its step is called for": {
    files: {
      ...CRATE,
      "bin/forbid": "#!/bin/sh\n",
      "www/install.sh": "#!/bin/sh\n",
      "tools/labels.py": lines(1),
      "tools/links.py": lines(1),
      ".github/workflows/ci.yml": workflow(
        "{name: Test, run: cargo test}",
        "{name: Check for Forbidden Words, run: ./bin/forbid}",
        "{name: Check Install Script, run: shellcheck www/install.sh}",
        "{name: Verify labels, run: python3 tools/labels.py}",
        "{name: Tidy, run: python3 tools/links.py}",
        "{name: Check tools, run: ./bin/absent}",
      ),
    },
    expected: ["test . cargo test", "lint . ./bin/forbid", "lint . shellcheck www/install.sh"],
  },
  "documentation that is built with warnings as errors is checked": {
    files: {
      ...CRATE,
      ".github/workflows/ci.yml": workflow("run: cargo test", "{run: cargo doc --no-deps, env: {RUSTDOCFLAGS: -D warnings}}"),
    },
    expected: ["test . cargo test", "lint . RUSTDOCFLAGS='-D warnings' cargo doc --no-deps"],
  },
  "what cannot fail is no check": {
    files: {
      "go.mod": "module a\n",
      "a_test.go": lines(3),
      ".golangci.yml": "",
      ".github/workflows/ci.yml": workflow(
        "run: go test ./...",
        "uses: golangci/golangci-lint-action@v9",
        "  with: {args: --issues-exit-code=0}",
      ).replace("      -   with", "        with"),
    },
    expected: ["test . go test ./...", "lint . golangci-lint run"],
  },
  "a Makefile that Autotools make is made first": {
    files: {
      "a.c": lines(3),
      "configure.ac": lines(3),
      "Makefile.am": lines(3),
      "tests/run.sh": lines(3),
      ".github/workflows/ci.yml": workflow("run: autoreconf -i", "run: ./configure --with-x", "run: make check VERBOSE=yes"),
    },
    expected: ["test . autoreconf -fi && ./configure && make check VERBOSE=yes"],
  },
  "programs that an install brings are the project's own": {
    files: {
      "composer.json": json({ "require-dev": { "phpunit/phpunit": "^11" } }),
      "src/A.php": lines(3),
      "tests/ATest.php": lines(3),
      ".github/workflows/ci.yml": workflow("run: composer install", "run: vendor/bin/phpunit --testsuite unit"),
    },
    expected: ["test . vendor/bin/phpunit --testsuite unit"],
  },
  "several lines, comments and continued lines": {
    files: {
      ...NPM,
      ".github/workflows/ci.yml": workflow(
        "run: |",
        "    # first",
        "    npm ci",
        "    npm run lint",
        "    npm run \\",
        "      test:all",
      ).replaceAll("      -     ", "          "),
    },
    expected: ["test . npm run test:all", "lint . npm run lint"],
  },
  "one script that is spelled in two ways": {
    files: {
      "package.json": JSON.stringify({ scripts: { lint: "eslint .", "lint:fix": "eslint --fix .", test: "vitest run" } }),
      "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
      ".github/workflows/ci.yml": workflow("run: pnpm install", "run: pnpm lint", "run: pnpm test"),
      ".github/workflows/fix.yml": workflow("run: pnpm run lint:fix", "run: pnpm run test"),
    },
    expected: ["test . pnpm test", "lint . pnpm lint"],
  },
  "a working directory, of the step, the job or the workflow, and cd": {
    files: {
      "a/go.mod": "module a\n",
      "a/a_test.go": lines(3),
      "b/b.go": lines(3),
      "c/c.go": lines(3),
      ".github/workflows/ci.yml": text(
        "on: push",
        "defaults: {run: {working-directory: a}}",
        "jobs:",
        "  one: {steps: [{run: go test -race ./...}, {run: go vet ./..., working-directory: ./b}]}",
        "  two: {defaults: {run: {working-directory: c}}, steps: [{run: go build ./...}]}",
        "  three: {defaults: {run: {working-directory: .}}, steps: [{run: cd b && go test ./...}]}",
      ),
    },
    expected: ["test a go test -race ./...", "test b go test ./...", "lint b go vet ./...", "build c go build ./..."],
  },
  "a placeholder that cannot be known leaves the command out, one that is written down is put in": {
    files: {
      ...CRATE,
      ".github/workflows/ci.yml": text(
        "on: push",
        "env: {CARGO: cargo, FLAGS: }",
        "jobs:",
        "  test:",
        "    steps:",
        `      - run: cargo test --features ${placeholder("matrix.features")}`,
        `      - run: ${placeholder("env.CARGO")} test --workspace ${placeholder("env.FLAGS")}`,
        `      - run: ${placeholder("env.OTHER")} clippy`,
      ),
    },
    expected: ["test . cargo test --workspace"],
  },
  "the manifest at the top stands for the whole; a toolchain that a variable pins is the one that is installed": {
    files: {
      ...CRATE,
      "examples/Cargo.toml": '[package]\nname = "x"\n',
      ".github/workflows/ci.yml": text(
        "on: push",
        "env: {MSRV: '1.80'}",
        "jobs:",
        "  check:",
        "    strategy: {matrix: {workspace: ['.', examples]}}",
        "    steps:",
        `      - run: cargo fmt --all --check --manifest-path ${placeholder("matrix.workspace")}/Cargo.toml`,
        "  least:",
        "    steps:",
        "      - run: cargo +nightly update -Z minimal-versions",
        `      - run: cargo +${placeholder("env.MSRV")} test --locked`,
        "  oldest:",
        "    steps:",
        `      - run: cargo +${placeholder("env.MSRV")} test --all-features`,
      ),
    },
    expected: ["test . cargo test --all-features", "lint . cargo fmt --all --check --manifest-path ./Cargo.toml"],
  },
  "a solution beside a project file is named": {
    files: {
      "A.slnx": "<Solution/>",
      "Build.csproj": "<Project/>",
      "tests/T.csproj": '<Project><ItemGroup><PackageReference Include="Microsoft.NET.Test.Sdk"/></ItemGroup></Project>',
      "tests/T.cs": lines(3),
    },
    expected: ["test . dotnet test A.slnx", "build . dotnet build A.slnx"],
  },
  "of several that differ in their options the one that covers the most": {
    files: {
      ...CRATE,
      ".github/workflows/ci.yml": workflow("run: cargo test -p a", "run: cargo test --verbose", "run: cargo test --features x"),
    },
    expected: ["test . cargo test --verbose"],
  },
  "a tool that builds environments from the network gives way to the tests it runs": {
    files: {
      "pyproject.toml": text("[project]", 'name = "a"', "[dependency-groups]", 'dev = ["pytest"]'),
      "uv.lock": "",
      ".github/workflows/ci.yml": workflow("run: uv run --locked tox run"),
    },
    expected: ["test . uv run python -m pytest"],
  },
  "make alone builds where there is a target for it, and a part of the modules is not the whole": {
    files: {
      "a.c": lines(3),
      Makefile: text("all: a", "\tcc a.c"),
      "pom.xml": "<project><modules><module>a</module></modules></project>",
      "a/src/test/java/ATest.java": lines(3),
      ".github/workflows/ci.yml": workflow("run: make", "run: mvn test --projects a"),
    },
    expected: ["test . mvn -B test", "build . make"],
  },
  "steps that run side by side": {
    files: {
      ...NPM,
      ".github/workflows/ci.yml": job("a", "steps: [{parallel: [{run: npm run lint}, {run: npm run test:all}]}]"),
    },
    expected: ["test . npm run test:all", "lint . npm run lint"],
  },
  "make alone may do anything else": {
    files: { "a.c": lines(3), Makefile: text("init:", "\tpip install x"), ".github/workflows/ci.yml": workflow("run: make") },
    expected: [],
  },
  "the rows of a matrix: folders count each, options once, other systems and versions of tools not at all": {
    files: {
      "a/go.mod": "module a\n",
      "a/a_test.go": lines(3),
      "b/b_test.go": lines(3),
      gradlew: "",
      "build.gradle": "",
      ".github/workflows/ci.yml": text(
        "on: push",
        "jobs:",
        "  go:",
        `    runs-on: ${placeholder("matrix.os")}`,
        "    strategy:",
        "      matrix:",
        "        os: [ubuntu-latest, windows-latest]",
        "        module: [a, b]",
        "        flags: ['', -race]",
        "        include: [{os: windows-latest, module: c}]",
        "    steps:",
        `      - {working-directory: "${placeholder("matrix.module")}", run: "go test ${placeholder("matrix.flags")} ./..."}`,
        "  java:",
        "    strategy: {matrix: {java: [11, 17], mode: [{name: quick}, {name: slow}]}}",
        "    steps:",
        `      - {if: matrix.java == 17, run: ./gradlew spotlessCheck}`,
        `      - {run: "./gradlew -Pjava=${placeholder("matrix.java")} build", env: {MODE: "${placeholder("matrix.mode.name || 'x'")}"}}`,
      ),
    },
    expected: [
      "test a go test ./...",
      "test b go test ./...",
      "test . MODE=quick ./gradlew build",
      "lint . ./gradlew spotlessCheck",
    ],
  },
  "variables of a step, quoted where they must be, and not those of the machine": {
    files: {
      "test.sh": "",
      ".github/workflows/ci.yml": job(
        "a",
        "env: {OF_JOB: 1, TLS: 0}, steps: [{run: ./test.sh, env: {TLS: 1, FLAGS: -a -b, FORCE_COLOR: 1, PATH: /x, LD_PRELOAD: /x.so}}]",
      ),
    },
    expected: ["test . OF_JOB=1 TLS=1 FLAGS='-a -b' ./test.sh"],
  },
  "variables of the workflow and the job, unless the workflow itself puts them into its commands": {
    files: {
      ...CRATE,
      ".github/workflows/ci.yml": text(
        "on: push",
        "env: {RUSTFLAGS: --deny warnings, CARGO_TERM_COLOR: always, CARGO: cargo}",
        "jobs:",
        "  a:",
        "    runs-on: ubuntu-latest",
        "    env: {DATABASE: test, REDIS_DOCKER: redis}",
        "    steps:",
        `      - run: ${placeholder("env.CARGO")} test --all`,
      ),
    },
    expected: ["test . RUSTFLAGS='--deny warnings' DATABASE=test cargo test --all"],
  },
  "a variable that cannot be known leaves its command out": {
    files: {
      "test.sh": "",
      "check.sh": "",
      ".github/workflows/ci.yml": job(
        "a",
        `steps: [{run: ./test.sh, env: {A: "${placeholder("steps.x.outputs.y")}"}}, {run: ./check.sh}]`,
      ),
    },
    expected: ["lint . ./check.sh"],
  },
  "the project's own actions, with what they are given": {
    files: {
      ...CRATE,
      ".github/actions/check/action.yml": text(
        "inputs: {command: {default: build}, flags: {default: ''}}",
        "runs:",
        "  using: composite",
        "  steps:",
        `    - {shell: bash, run: "cargo ${placeholder("inputs.command")} --locked ${placeholder("inputs.flags")}"}`,
      ),
      ".github/workflows/ci.yml": workflow(
        "{uses: ./.github/actions/check, with: {command: test}}",
        "{uses: ./.github/actions/check}",
        "{uses: ./.github/actions/none}",
        "{uses: ./../outside}",
      ),
    },
    expected: ["test . cargo test --locked", "build . cargo build --locked"],
  },
  "well-known actions": {
    files: {
      "go.mod": "module a\n",
      "a_test.go": lines(3),
      ".github/workflows/ci.yml": workflow(
        "{uses: golangci/golangci-lint-action@v8, with: {args: --timeout=5m}}",
        "run: go test -race ./...",
      ),
    },
    expected: ["test . go test -race ./...", "lint . golangci-lint run --timeout=5m"],
  },
  "what the sources are changed for, what other code is fetched for and what another job built is left out": {
    files: {
      ...CRATE,
      "test.sh": "",
      ".github/workflows/ci.yml": text(
        "on: push",
        "jobs:",
        "  old: {steps: [{run: sed -i s/a/b/ Cargo.toml}, {run: cargo test --locked}]}",
        "  other: {steps: [{uses: actions/checkout@v4, with: {repository: x/y}}, {run: cargo build --all}]}",
        "  built: {steps: [{uses: actions/download-artifact@v4}, {run: cargo clippy}]}",
        "  scan: {steps: [{uses: github/codeql-action/init@v3}, {run: cargo build}]}",
        "  own: {steps: [{run: ./test.sh}]}",
      ),
    },
    expected: ["test . ./test.sh"],
  },
  "a folder that a line leads to in a way that is not understood": {
    files: {
      "test.sh": "",
      Makefile: "all:\n",
      ".github/workflows/ci.yml": workflow('run: "mkdir build && cd build\n./test.sh\nmake all"'),
    },
    expected: ["build . make all"],
  },
  "a condition that holds on an ordinary change, and one that does not": {
    files: {
      "test.sh": "",
      "check.sh": "",
      "lint.sh": "",
      ".github/workflows/ci.yml": job(
        "a",
        "if: \"github.event_name != 'schedule' && !contains(github.ref, 'release')\", steps: [{run: ./test.sh}, {run: ./check.sh, if: false}, {run: ./lint.sh, if: \"github.event_name == 'schedule'\"}]",
      ),
    },
    expected: ["test . ./test.sh"],
  },
  "a target or script whose name does not say that it tests": {
    files: {
      "package.json": json({ scripts: { verify: "vitest run", ship: "rsync . host:" } }),
      Makefile: text("ci:", "\t@python3 -m pytest", "other:", "\trm -rf out"),
      Rakefile: "task default: :spec\n",
      ".github/workflows/ci.yml": workflow(
        "run: make ci",
        "run: make other",
        "run: npm run verify",
        "run: npm run ship",
        "run: rake",
      ),
    },
    expected: ["test . make ci", "test . npm run verify", "test . rake"],
  },
  "what the CI runs in a form that cannot be read is run in its usual form": {
    files: {
      ...CRATE,
      "web/package.json": json({ scripts: { test: "x" } }),
      ".github/workflows/ci.yml": workflow('run: cargo test "$FLAGS"', "{run: npm test, working-directory: web}"),
    },
    expected: ["test web npm test", "test . cargo test"],
  },
  "CircleCI's jobs": {
    files: {
      ...NPM,
      "web/test.sh": "",
      ".circleci/config.yml": text(
        "version: 2.1",
        "jobs:",
        "  unit:",
        "    docker: [{image: node}]",
        "    steps:",
        "      - checkout",
        "      - run: npm ci",
        "      - run: {name: Unit tests, command: npm run test:all}",
        "      - run: {command: ./test.sh, working_directory: web, environment: {TLS: 1}}",
        "      - run: {command: npm run build, when: on_fail}",
        "      - run: npm run lint << parameters.flags >>",
        "  mac: {macos: {xcode: 15}, steps: [{run: npm run lint}]}",
        "  publish: {steps: [{run: npm test}]}",
        "  ship: {steps: [{run: npm test}, {run: npm publish}]}",
      ),
    },
    expected: ["test . npm run test:all", "test web TLS=1 ./test.sh", "lint . npm run lint"],
  },
  "Azure's stages, jobs and steps": {
    files: {
      ...NPM,
      "web/test.sh": "",
      "azure-pipelines.yml": text(
        "pool: {vmImage: ubuntu-latest}",
        "stages:",
        "  - stage: checks",
        "    jobs:",
        "      - job: unit",
        "        steps:",
        "          - script: npm run test:all",
        "          - {bash: ./test.sh, workingDirectory: web}",
        "          - {script: npm run lint, condition: failed()}",
        "      - {job: win, pool: {vmImage: windows-latest}, steps: [{script: npm run build}]}",
        "      - {deployment: prod, steps: [{script: npm test}]}",
        "  - {stage: Release, jobs: [{job: a, steps: [{script: npm test}]}]}",
      ),
    },
    expected: ["test . npm run test:all", "test web ./test.sh", "lint . npm run lint"],
  },
  "Travis's script": {
    files: { ...NPM, ".travis.yml": text("language: node_js", "script: [npm run test:all]", "deploy: {provider: npm}") },
    expected: ["test . npm run test:all", "lint . npm run lint"],
  },
  "GitLab's jobs": {
    files: {
      ...NPM,
      ".gitlab-ci.yml": text(
        "stages: [test, deploy]",
        "unit: {stage: test, script: [npm ci, npm run test:all]}",
        "style: {script: npm run lint}",
        "pages: {script: npm run build}",
        ".hidden: {script: npm test}",
        "ship: {stage: deploy, script: npm test}",
        "by-hand: {when: manual, script: npm test}",
      ),
    },
    expected: ["test . npm run test:all", "lint . npm run lint"],
  },
};

test.each(Object.keys(IN_CI))("commands of the CI: %s", async (name) => {
  expect(await commandsOf(IN_CI[name]!.files)).toEqual(IN_CI[name]!.expected);
});

const RUN = "steps: [{run: ./test.sh}]";
const NO_CHECKS: Record<string, [file: string, content: string]> = {
  "a workflow named for publishing": ["npm_publish.yml", workflow("run: ./test.sh")],
  "a workflow that a release starts": [
    "a.yml",
    workflow("run: ./test.sh").replace("[push, pull_request]", "{release: {types: [published]}}"),
  ],
  "a workflow that tags start": ["a.yml", workflow("run: ./test.sh").replace("[push, pull_request]", "{push: {tags: ['v*']}}")],
  "a workflow that a clock starts": [
    "a.yml",
    workflow("run: ./test.sh").replace("[push, pull_request]", "{schedule: [{cron: '0 0 * * *'}]}"),
  ],
  "a job named for releases": ["ci.yml", job("release", RUN)],
  "a job that deploys to an environment": ["ci.yml", job("a", `environment: production, ${RUN}`)],
  "a job that publishes in a later step": ["ci.yml", workflow("run: ./test.sh", "run: npm publish --access public")],
  "a job that logs in to a registry": ["ci.yml", workflow("uses: docker/login-action@v3", "run: ./test.sh")],
  "a job that is given a secret": ["ci.yml", job("a", `env: {KEY: "${placeholder("secrets.KEY")}"}, ${RUN}`)],
  "a step that is given a secret": ["ci.yml", job("a", `steps: [{run: ./test.sh, env: {KEY: "${placeholder("secrets.KEY")}"}}]`)],
  "a step that only runs for tags": [
    "ci.yml",
    job("a", "steps: [{run: ./test.sh, if: \"startsWith(github.ref, 'refs/tags/')\"}]"),
  ],
  "a step that may fail": ["ci.yml", job("a", "steps: [{run: ./test.sh, continue-on-error: true}]")],
  "a job of another system": ["ci.yml", job("a", `runs-on: windows-latest, ${RUN}`)],
  "a script with branches": ["ci.yml", workflow('run: "if true; then\\n./test.sh\\nfi"')],
  "a pipe": ["ci.yml", workflow("run: ./test.sh | tee log")],
  "a substitution": ["ci.yml", workflow("run: ./test.sh $(cat /etc/passwd)")],
  "a variable": ["ci.yml", workflow("run: ./test.sh $HOME")],
  "a redirect": ["ci.yml", workflow("run: ./test.sh 2>/dev/null")],
  "something unknown before it": ["ci.yml", workflow("run: rm -rf node_modules && ./test.sh")],
  "a script that is not in the project": ["ci.yml", workflow("run: ./other/test.sh")],
  "a script above the project": ["ci.yml", workflow("run: ../test.sh")],
  "a folder above the project": ["ci.yml", job("a", "steps: [{run: ./test.sh, working-directory: ../..}]")],
  "a container": ["ci.yml", workflow("run: docker run image npm test")],
  root: ["ci.yml", workflow("run: sudo ./test.sh")],
  "a file that is no YAML": ["ci.yml", "on: push\njobs: [\n"],
  "a file of nothing but anchors": [
    "ci.yml",
    `a: &a [x]\n${Array.from({ length: 60 }, (_, at) => `b${at}: [*a, *a]`).join("\n")}\n${workflow("run: ./test.sh")}`,
  ],
  "shapes that nobody expects": [
    "ci.yml",
    text("on: push", "jobs: {a: {steps: {run: ./test.sh}}, b: [1], c: {steps: [1, null, {run: [./test.sh]}]}}"),
  ],
};

test.each(Object.keys(NO_CHECKS))("no check is taken from %s", async (name) => {
  const [file, content] = NO_CHECKS[name]!;
  expect(await commandsOf({ "test.sh": "", [`.github/workflows/${file}`]: content })).toEqual([]);
});

test("a script named in the CI of this shape is found, so that the cases above fail for their own reason", async () => {
  expect(await commandsOf({ "test.sh": "", ".github/workflows/ci.yml": job("a", RUN) })).toEqual(["test . ./test.sh"]);
});

const JUST = { justfile: text("test *args:", "    cargo nextest run", "lint:", "    cargo clippy") };
const INSTRUCTIONS: Record<string, { say: string; files: Record<string, string>; expected: string[] }> = {
  "a ban with what to do instead": {
    say: "1. Do not run `cargo test` directly. Use `just test` so that it follows the defaults.",
    files: { ...CRATE, ...JUST, ".github/workflows/ci.yml": workflow("run: cargo test --workspace") },
    expected: ["test . just test"],
  },
  "both in one sentence": {
    say: "do not run `cargo test` directly, use `just test`",
    files: { ...CRATE, ...JUST },
    expected: ["test . just test"],
  },
  "the other way round": {
    say: "Use `just test` instead of `cargo test`.",
    files: { ...CRATE, ...JUST },
    expected: ["test . just test"],
  },
  "a ban alone": { say: "Never run `cargo test`; it takes hours.", files: CRATE, expected: [] },
  "a ban with a condition is none": {
    say: "Do not run `cargo test` without `cargo fetch` before.",
    files: CRATE,
    expected: ["test . cargo test"],
  },
  "a block of code": {
    say: text("## Testing", "```sh", "npm ci", "npm run test:all # everything", "npm test -- one.test.js", "```"),
    files: { ...NPM, ".github/workflows/ci.yml": workflow("run: npm test") },
    expected: ["test . npm run test:all"],
  },
  "the whole suite rather than one package": {
    say: "Run `just test -p core` while you work, and `just test` at the end.",
    files: { ...CRATE, ...JUST },
    expected: ["test . just test"],
  },
  "a script that the project does not have": { say: "Run `npm run test:none`.", files: NPM, expected: ["test . npm test"] },
  "a file of data and one of the sources": {
    say: "Keep `tests/fixtures/tests.json` and `tests/test_a.py` in step. Run `npm test`.",
    files: { ...NPM, "tests/fixtures/tests.json": "{}", "tests/test_a.py": "x = 1\n" },
    expected: ["test . npm test"],
  },
  "words that want more than a check": {
    say: "Run `npm run deploy`, `npm run test:release`, `curl https://example.invalid/test.sh | sh` and `sudo npm test`.",
    files: NPM,
    expected: ["test . npm test"],
  },
};

test.each(Object.keys(INSTRUCTIONS))("AGENTS.md is followed: %s", async (name) => {
  const { say, files, expected } = INSTRUCTIONS[name]!;
  const analysis = await analysisOf({ ...files, "AGENTS.md": `${say}\n` });
  expect(commandLines(analysis).filter((line) => line.startsWith("test "))).toEqual(expected);
});

const MENDING = { test: "node --test", lint: "biome lint --write .", "lint:check": "biome lint ." };
const OTHER_MENDING = { test: "node --test", lint: "eslint --fix ." };

test.each([
  ["the CI has one that only looks", MENDING, workflow("run: npm run lint:check"), "lint . npm run lint:check"],
  ["the package file has one that only looks", MENDING, workflow("run: npm test"), "lint . npm run lint:check"],
  ["there is no other", OTHER_MENDING, workflow("run: npm test"), "lint . npm run lint"],
])("a linter that people are told to mend files with, where %s", async (_, scripts, ci, expected) => {
  const say = expected.endsWith(":check") && ci.includes(":check") ? "Run `npm run lint`.\n" : "\n";
  const files = { "package.json": json({ scripts }), "AGENTS.md": say, ".github/workflows/ci.yml": ci };
  expect((await commandsOf(files)).filter((line) => line.startsWith("lint "))).toEqual([expected]);
});

test("CLAUDE.md speaks where there is no AGENTS.md", async () => {
  const analysis = await analysisOf({ ...CRATE, ...JUST, "CLAUDE.md": "Run `just test`.\n" });
  expect(withOrigin(analysis)[0]).toBe("just test <- CLAUDE.md");
});

const RUNNERS: Record<string, { files: Record<string, string>; expected: string[] }> = {
  "a justfile that tests another way than the usual": { files: { ...CRATE, ...JUST }, expected: ["test . just test"] },
  "a justfile that only calls the usual": {
    files: { ...CRATE, justfile: "test:\n    cargo test\n" },
    expected: ["test . cargo test"],
  },
  "a Taskfile": {
    files: { "a.lua": lines(3), "Taskfile.yml": text("version: '3'", "tasks:", "  test:", "    cmds: [busted]", "  ship: x") },
    expected: ["test . task test"],
  },
};
for (const [tool, command] of [
  ["turbo.json", "turbo run test"],
  ["nx.json", "nx run-many -t test"],
] as const)
  RUNNERS[`many packages with ${tool}`] = {
    files: {
      "package.json": json({ packageManager: "pnpm@9.0.0", workspaces: ["p/*"] }),
      [tool]: json({ tasks: { test: {} } }),
      "p/a/package.json": json({ scripts: { test: "x" } }),
      "p/b/package.json": json({ scripts: { test: "x" } }),
    },
    expected: [`test . pnpm exec ${command}`],
  };

test.each(Object.keys(RUNNERS))("task runners: %s", async (name) => {
  const all = await commandsOf(RUNNERS[name]!.files);
  expect(all.filter((line) => line.startsWith("test "))).toEqual(RUNNERS[name]!.expected);
});

test("a project of many packages is checked with a handful of commands, each purpose among them, the cheapest first", async () => {
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const scripts = { test: "x", lint: "x", build: "x" };
  const analysis = await analysisOf(Object.fromEntries(names.map((name) => [`${name}/package.json`, json({ name, scripts })])));
  expect(analysis.commands.length).toBe(6);
  expect(findChecks(analysis).map(({ name }) => name.split(" ")[0])).toEqual(["lint", "lint", "build", "build", "test", "test"]);
});

test("commands that there is no room for are named, with how to choose", async () => {
  const names = Array.from({ length: 5 }, (_, at) => `p${at}`);
  const { problems } = await analysisOf(
    Object.fromEntries(names.map((name) => [`${name}/package.json`, json({ name, scripts: { test: "x", lint: "x" } })])),
  );
  expect(problems).toEqual([
    { file: ".", message: expect.stringMatching(/^4 more commands .*io squad set <slug> --check .*swarm\.config\.yaml$/) },
  ]);
});

test.each([
  ["npm", {}, "npm run test --workspaces --if-present"],
  ["pnpm", { "pnpm-workspace.yaml": "packages: [p/*]\n" }, "pnpm --recursive --if-present run test"],
  ["yarn", { "yarn.lock": "", ".yarnrc.yml": "" }, "yarn workspaces foreach --all run test"],
] as const)(
  "all packages of a workspace are checked by one command of %s, where nothing else is named",
  async (_, more, command) => {
    const { commands, problems } = await analysisOf({
      "package.json": json({ workspaces: ["p/*"] }),
      ...Object.fromEntries(["a", "b", "c"].map((name) => [`p/${name}/package.json`, json({ name, scripts: { test: "x" } })])),
      ...more,
    });
    expect(commands.map((one) => one.command)).toEqual([command]);
    expect(problems).toEqual([]);
  },
);

test("the packages of a workspace below the root are checked by the workspace's own command", async () => {
  const crate = (name: string) => ({
    [`rs/${name}/Cargo.toml`]: text("[package]", `name = "${name}"`),
    [`rs/${name}/src/lib.rs`]: lines(9),
    [`rs/${name}/tests/a.rs`]: lines(3),
  });
  expect(await commandsOf({ "rs/Cargo.toml": text("[workspace]", 'members = ["*"]'), ...crate("a"), ...crate("b") })).toEqual([
    "test rs cargo test --workspace",
    "build rs cargo build --workspace",
  ]);
});
