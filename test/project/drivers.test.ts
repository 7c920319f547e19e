import { expect, test } from "vitest";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { testGit } from "../support/git.ts";
import { projectOf } from "../support/project.ts";

const git = testGit();
const text = (...lines: string[]) => `${lines.join("\n")}\n`;
const workflow = (...steps: string[]) =>
  text("on: push", "jobs:", "  checks:", "    steps:", ...steps.map((step) => `      - ${step}`));
const PYTHON = { "pyproject.toml": text("[project]", 'name = "a"', 'dependencies = ["pytest"]'), "a.py": "x\n" };
const CRATE = { "Cargo.toml": text("[package]", 'name = "a"'), "src/lib.rs": "x\n" };
const POM = (goal: string, more = "") =>
  `<project><artifactId>a</artifactId>${more}<build><defaultGoal>${goal}</defaultGoal></build></project>`;

test.each<[what: string, files: Record<string, string>, expected: string[]]>([
  [
    "tox.ini: what the environments run that the CI names, without what only tox knows",
    {
      ...PYTHON,
      "tox.ini": text(
        "[tox]",
        "envlist = py312,style,docs",
        "[testenv]",
        "commands =",
        "    pytest -v --basetemp={envtmpdir} \\",
        "        {posargs:tests}",
        "    extra: pytest extra",
        "[testenv:style]",
        "commands = flake8 {toxinidir}/src",
        "[testenv:typing]",
        "commands =",
        "    - mypy --ignored",
        "    mypy src",
        "[testenv:publish]",
        "commands = twine upload dist",
      ),
      ".github/workflows/ci.yml": workflow("run: tox -e py312", "run: tox run -e typing,publish"),
    },
    ["test: python3 -m pytest -v tests <- tox.ini", "lint: mypy src <- tox.ini"],
  ],
  [
    "tox.ini: the lines for factors of the environments that the CI names, the broadest first, and no benchmarks",
    {
      ...PYTHON,
      "tox.ini": text(
        "[tox]",
        "env_list = lint, py31{0-5}-{tests,typing}, docs",
        "[testenv]",
        "commands =",
        "    typing: pytest -k test_typing",
        "    typing: mypy src",
        "    tests: pytest {posargs:-n auto}",
        "    docs,!tests-typing: pytest docs",
        "    !tests: pytest elsewhere",
        "[testenv:codspeed]",
        "commands = pytest --codspeed bench",
      ),
      ".github/workflows/ci.yml": workflow(
        "run: >\n          uv run\n          tox run\n          -e $PYTHON-typing",
        "run: >\n          tox run\n          --installpkg dist/*.whl\n          -e $PYTHON-tests",
      ),
      ".github/workflows/speed.yml": workflow("run: tox run -e codspeed"),
    },
    ["test: python3 -m pytest -n auto <- tox.ini", "lint: mypy src <- tox.ini"],
  ],
  [
    "tox.ini: with no names in the CI, those of its own list",
    {
      ...PYTHON,
      "tox.ini": text(
        "[tox]",
        "envlist =",
        "    py312",
        "    style",
        "[testenv]",
        "commands = {env:TEST_COMMAND:pytest -q} {posargs}",
        "[testenv:style]",
        "commands =",
        "    flake8 src",
        "    pre-commit run -a",
        "[testenv:other]",
        "commands = mypy .",
      ),
      ".github/workflows/ci.yml": workflow("run: pip install tox", "run: tox"),
    },
    ["test: python3 -m pytest -q <- tox.ini", "lint: flake8 src <- tox.ini"],
  ],
  [
    "pyproject.toml: lists of words, in the project's own environment",
    {
      ...PYTHON,
      "uv.lock": "",
      "pyproject.toml": text(
        "[project]",
        'name = "a"',
        "[dependency-groups]",
        'dev = ["ruff", "mypy", "pytest"]',
        "[tool.tox]",
        'env_list = ["py3.14", "typing"]',
        "[tool.tox.env_run_base]",
        "commands = [[",
        '    "pytest", "-v", "--basetemp={env_tmp_dir}",',
        '    {replace = "posargs", default = ["tests"], extend = true},',
        "]]",
        "[tool.tox.env.typing]",
        'commands = [["mypy", "--strict"], ["pyright", {replace = "env", name = "X"}]]',
      ),
      ".github/workflows/ci.yml": workflow("run: uv run tox run -e typing", "run: uv run tox run"),
    },
    [
      "test: uv run pytest -v tests <- pyproject.toml",
      "lint: uv run mypy --strict <- pyproject.toml",
      "lint: uv run ruff check . <- pyproject.toml",
    ],
  ],
  [
    "setup.cfg: nothing that a shell would read otherwise",
    {
      ...PYTHON,
      "setup.cfg": text(
        "[tox:tox]",
        "[testenv]",
        "commands =",
        "    pytest; reboot",
        "    pytest $HOME",
        "    python -m unittest",
      ),
      ".gitlab-ci.yml": text("test:", "  script: [tox]"),
    },
    ["test: python3 -m unittest <- setup.cfg"],
  ],
  [
    "tox that the CI does not run decides nothing",
    { ...PYTHON, "tox.ini": text("[testenv]", "commands = trial a") },
    ["test: python3 -m pytest <- pyproject.toml"],
  ],
  [
    "Maven without a goal does what the project says",
    {
      "pom.xml": POM(
        "clean verify checkstyle:check",
        "<profiles><profile><build><defaultGoal>site</defaultGoal></build></profile></profiles>",
      ),
      ".github/workflows/maven.yml": workflow("run: mvn --batch-mode -Ddoclint=all"),
    },
    ["test: mvn --batch-mode -Ddoclint=all clean verify checkstyle:check <- .github/workflows/maven.yml"],
  ],
  [
    "Maven without a goal that tests nothing, or is told not to, is no test",
    { "pom.xml": POM("site"), ".github/workflows/maven.yml": workflow("run: mvn -B", "run: mvn -B -DskipTests") },
    ["test: mvn -B test <- GUESS", "build: mvn -B package -DskipTests <- pom.xml"],
  ],
  [
    "two sets of features that the CI tests are both tested, a third is not",
    {
      ...CRATE,
      ".github/workflows/ci.yml": workflow(
        "run: cargo test --features fast",
        "run: cargo test --verbose --features fast",
        "run: cargo test --features=slow",
        "run: cargo test --features other",
      ),
    },
    [
      "test: cargo test --features fast <- .github/workflows/ci.yml",
      "test: cargo test --features=slow <- .github/workflows/ci.yml",
    ],
  ],
  [
    "pre-commit beside another linter: the linters that the project names itself, or else pre-commit",
    {
      ...PYTHON,
      "pyproject.toml": text("[project]", 'name = "a"', "[tool.ruff]", "[tool.pyright]", "[tool.pytest.ini_options]"),
      ".github/workflows/ci.yml": workflow("run: pytest", "run: python -m pyright src", "run: pre-commit run --all-files"),
    },
    [
      "test: pytest <- .github/workflows/ci.yml",
      "lint: python3 -m pyright src <- .github/workflows/ci.yml",
      "lint: ruff check . <- pyproject.toml",
    ],
  ],
  [
    "pre-commit alone",
    {
      "setup.py": "",
      ".github/workflows/ci.yml": workflow("run: ./test.sh", "run: python -m pyright src", "run: pre-commit run --all-files"),
      "test.sh": "",
    },
    [
      "test: ./test.sh <- .github/workflows/ci.yml",
      "lint: python3 -m pyright src <- .github/workflows/ci.yml",
      "lint: pre-commit run --all-files <- .github/workflows/ci.yml",
    ],
  ],
  [
    "a target of Make with other words for it is the same target",
    {
      Makefile: text("test-full:", "\tcargo test"),
      ...CRATE,
      ".github/workflows/ci.yml": workflow("run: make test-full", "run: make test-full ARGS='--manifest-path Cargo.toml'"),
    },
    ["test: make test-full <- .github/workflows/ci.yml"],
  ],
])("%s", async (_, files, expected) => {
  const { commands } = await analyzeProject(git, projectOf(files));
  expect(commands.map(({ purpose, command, from, isGuess }) => `${purpose}: ${command} <- ${isGuess ? "GUESS" : from}`)).toEqual(
    expected,
  );
});
