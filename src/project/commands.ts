import type { Analysis, ProjectCommand } from "../protocol/analysis.ts";
import type { PackageManifest } from "./manifests.ts";

type Purpose = ProjectCommand["purpose"];

/** What the search for commands may look at. */
export interface ProjectView {
  manifests: readonly PackageManifest[];
  has(file: string): boolean;
  some(pattern: RegExp): boolean;
  read(file: string): string | undefined;
}

const PURPOSES = ["test", "lint", "build"] as const;
const MAX_NESTED = 20;

/** A command that tells whether work is sound, to be run by a shell in `cwd`, a folder relative to the project. */
export interface Check {
  name: string;
  command: string;
  cwd: string;
}

/** The project's own checks, tests first. */
export function findChecks(analysis: Pick<Analysis, "commands">): Check[] {
  return PURPOSES.flatMap((purpose) =>
    analysis.commands
      .filter((one) => one.purpose === purpose)
      .map(({ command, cwd }) => ({ name: cwd === "." ? purpose : `${purpose} (${cwd})`, command, cwd })),
  );
}

/** The commands that test, lint and build: the root's own where it has them, else those of the packages below. */
export function commandsOf(view: ProjectView): ProjectCommand[] {
  const all = view.manifests.flatMap((manifest) => ofPackage(manifest, view));
  const perEcosystem = PURPOSES.flatMap((purpose) =>
    [...new Set(all.map(({ kind }) => kind))].flatMap((kind) => {
      const mine = all.filter((one) => one.purpose === purpose && one.kind === kind);
      const rooted = mine.filter(({ cwd }) => cwd === ".");
      return rooted.length > 0 ? rooted : mine.slice(0, MAX_NESTED);
    }),
  );
  const found = unique(perEcosystem.map(({ purpose, command, cwd, from }) => ({ purpose, command, cwd, from })));
  const missing = PURPOSES.filter((purpose) => !found.some((one) => one.purpose === purpose));
  return [...found, ...fromTaskFiles(view, missing)].sort((a, b) => PURPOSES.indexOf(a.purpose) - PURPOSES.indexOf(b.purpose));
}

type Found = ProjectCommand & { kind: string };

function ofPackage(manifest: PackageManifest, view: ProjectView): Found[] {
  const make = COMMANDS[manifest.kind];
  if (!make) return [];
  const at = (name: string) => (manifest.folder === "." ? name : `${manifest.folder}/${name}`);
  const scope: Scope = { manifest, view, has: (name) => view.has(at(name)) };
  return make(scope).map(([purpose, command]) => ({
    purpose,
    command,
    cwd: manifest.folder,
    from: manifest.file,
    kind: manifest.kind,
  }));
}

interface Scope {
  manifest: PackageManifest;
  view: ProjectView;
  /** Whether the package's own folder has a file. */
  has(name: string): boolean;
}
type Commands = [purpose: Purpose, command: string][];

const COMMANDS: Readonly<Record<string, (scope: Scope) => Commands>> = {
  npm: ofScripts,
  deno: () => [
    ["test", "deno test"],
    ["lint", "deno lint"],
  ],
  cargo: ({ manifest, view }) => {
    const all = manifest.workspace ? " --workspace" : "";
    const clippy = view.some(/(?:^|\/)\.?clippy\.toml$/) || mentionedInCi(view, /\bclippy\b/);
    return [["test", `cargo test${all}`], ...when(clippy, "lint", `cargo clippy${all}`), ["build", `cargo build${all}`]];
  },
  go: ({ view }) => [
    ["test", "go test ./..."],
    ["lint", view.some(/(?:^|\/)\.golangci\.(?:ya?ml|toml|json)$/) ? "golangci-lint run" : "go vet ./..."],
    ["build", "go build ./..."],
  ],
  python: ofPython,
  maven: ({ view }) => {
    const mvn = view.has("mvnw") ? "./mvnw" : "mvn";
    return [
      ["test", `${mvn} -B test`],
      ["build", `${mvn} -B package -DskipTests`],
    ];
  },
  gradle: ({ manifest, view }) => {
    const gradle = view.has("gradlew") && manifest.folder === "." ? "./gradlew" : "gradle";
    const spotless = manifest.dependencies.has("com.diffplug.spotless");
    return [["test", `${gradle} test`], ...when(spotless, "lint", `${gradle} spotlessCheck`), ["build", `${gradle} assemble`]];
  },
  sbt: () => [
    ["test", "sbt test"],
    ["build", "sbt compile"],
  ],
  dotnet: ({ manifest, view }) => {
    const solutions = view.manifests.filter(({ kind, workspace }) => kind === "dotnet" && workspace !== undefined);
    if (manifest.workspace === undefined && solutions.some(({ folder }) => isWithin(manifest.folder, folder))) return [];
    const tests = view.manifests.some(
      ({ kind, dependencies }) => kind === "dotnet" && dependencies.has("Microsoft.NET.Test.Sdk"),
    );
    return [...when(tests, "test", "dotnet test"), ["build", "dotnet build"]];
  },
  ruby: ({ manifest, view, has }) => {
    const { dependencies } = manifest;
    const rails = has("bin/rails");
    const rspec = has(".rspec") || dependencies.has("rspec") || dependencies.has("rspec-rails");
    const rake = /\b(?:TestTask|task\s+:?["']?test)\b/.test(
      view.read(manifest.folder === "." ? "Rakefile" : `${manifest.folder}/Rakefile`) ?? "",
    );
    return [
      ...when(rspec, "test", "bundle exec rspec"),
      ...when(!rspec && rails, "test", "bin/rails test"),
      ...when(!rspec && !rails && rake, "test", "bundle exec rake test"),
      ...when(dependencies.has("rubocop") || has(".rubocop.yml"), "lint", "bundle exec rubocop"),
    ];
  },
  php: ({ manifest, has }) => {
    const { scripts, dependencies } = manifest;
    return [
      ...(scripts.has("test")
        ? when(true, "test", "composer run test")
        : when(has("phpunit.xml") || has("phpunit.xml.dist"), "test", "vendor/bin/phpunit")),
      ...(scripts.has("lint")
        ? when(true, "lint", "composer run lint")
        : when(dependencies.has("phpstan/phpstan"), "lint", "vendor/bin/phpstan analyse")),
    ];
  },
  elixir: () => [
    ["test", "mix test"],
    ["lint", "mix format --check-formatted"],
    ["build", "mix compile"],
  ],
  dart: ({ manifest }) => {
    const dart = manifest.dependencies.has("flutter") ? "flutter" : "dart";
    return [
      ["test", `${dart} test`],
      ["lint", `${dart} analyze`],
    ];
  },
  swift: () => [
    ["test", "swift test"],
    ["build", "swift build"],
  ],
};

/** Only well-known names of scripts are run, so that a package file can put no words of its own into a command. */
function ofScripts({ manifest, view }: Scope): Commands {
  const manager = manifest.manager ?? managerByLock(manifest.folder, view);
  const run = (script: string) => (manager === "npm" && script === "test" ? "npm test" : `${manager} run ${script}`);
  const pick = (purpose: Purpose, names: readonly string[]): Commands => {
    const script = names.find((name) => manifest.scripts.has(name));
    const placeholder = script !== undefined && /no test specified/.test(manifest.scripts.get(script) ?? "");
    return script === undefined || placeholder ? [] : [[purpose, run(script)]];
  };
  return [
    ...pick("test", ["test", "test:unit", "test:ci", "tests"]),
    ...pick("lint", ["lint", "lint:check", "check", "format:check"]),
    ...pick("lint", ["typecheck", "type-check", "types", "tsc"]),
    ...pick("build", ["build", "compile"]),
  ];
}

function managerByLock(folder: string, view: ProjectView): string {
  const parts = folder === "." ? [] : folder.split("/");
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    const at = (name: string) => [...parts.slice(0, depth), name].join("/");
    if (view.has(at("pnpm-lock.yaml")) || view.has(at("pnpm-workspace.yaml"))) return "pnpm";
    if (view.has(at("yarn.lock"))) return "yarn";
    if (view.has(at("bun.lock")) || view.has(at("bun.lockb"))) return "bun";
    if (view.has(at("package-lock.json")) || view.has(at("npm-shrinkwrap.json"))) return "npm";
  }
  return "npm";
}

function ofPython({ manifest, view, has }: Scope): Commands {
  const dependencies = new Set(
    view.manifests
      .filter(({ kind, folder }) => kind === "python" && folder === manifest.folder)
      .flatMap((one) => [...one.dependencies]),
  );
  const runner = has("uv.lock") ? "uv run " : has("poetry.lock") ? "poetry run " : has("Pipfile") ? "pipenv run " : "";
  const python = `${runner}${runner === "" ? "python3" : "python"}`;
  const inside = manifest.folder === "." ? "" : `${manifest.folder.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}/`;
  const tested = view.some(new RegExp(`^${inside}(?:.*/)?(?:test_[^/]+|[^/]+_test)\\.py$`));
  const pytest = dependencies.has("pytest") || has("pytest.ini") || has("conftest.py") || has("tests/conftest.py");
  const test = pytest
    ? `${python} -m pytest`
    : has("manage.py")
      ? `${python} manage.py test`
      : has("tox.ini")
        ? `${runner}tox`
        : tested
          ? `${python} -m unittest discover`
          : "";
  return [
    ...when(test !== "", "test", test),
    ...when(dependencies.has("ruff") || has("ruff.toml") || has(".ruff.toml"), "lint", `${runner}ruff check .`),
    ...when(!dependencies.has("ruff") && (dependencies.has("flake8") || has(".flake8")), "lint", `${runner}flake8`),
    ...when(dependencies.has("mypy") || has("mypy.ini"), "lint", `${runner}mypy .`),
  ];
}

/** Make, just and CMake stand in where no package tool names a command. */
function fromTaskFiles(view: ProjectView, missing: readonly Purpose[]): ProjectCommand[] {
  const targets: Record<Purpose, string[]> = { test: ["test", "tests", "check"], lint: ["lint", "vet"], build: ["build", "all"] };
  const files = [
    { tool: "make", names: ["Makefile", "makefile", "GNUmakefile"] },
    { tool: "just", names: ["justfile", "Justfile", ".justfile"] },
  ].flatMap(({ tool, names }) =>
    names
      .filter(view.has)
      .slice(0, 1)
      .map((file) => ({ tool, file, text: view.read(file) ?? "" })),
  );
  const found = missing.flatMap((purpose): ProjectCommand[] => {
    for (const { tool, file, text } of files) {
      const target = targets[purpose].find((name) =>
        new RegExp(`^${name}(?:[ \\t][^:=\\n\\r\\u2028\\u2029]*)?:(?!=)`, "m").test(text),
      );
      if (target) return [{ purpose, command: `${tool} ${target}`, cwd: ".", from: file }];
    }
    return [];
  });
  const left = missing.filter((purpose) => !found.some((one) => one.purpose === purpose));
  return [...found, ...fromCmake(view, left)];
}

function fromCmake(view: ProjectView, missing: readonly Purpose[]): ProjectCommand[] {
  const from = "CMakeLists.txt";
  if (!view.has(from)) return [];
  const build = "cmake -B build && cmake --build build";
  const tested = /\b(?:enable_testing|include\s*\(\s*CTest)\b/i.test(view.read(from) ?? "");
  return [
    ...(missing.includes("test") && tested
      ? [{ purpose: "test" as const, command: `${build} && ctest --test-dir build`, cwd: ".", from }]
      : []),
    ...(missing.includes("build") ? [{ purpose: "build" as const, command: build, cwd: ".", from }] : []),
  ];
}

function mentionedInCi(view: ProjectView, words: RegExp): boolean {
  const files = [
    ".github/workflows/ci.yml",
    ".github/workflows/ci.yaml",
    ".github/workflows/test.yml",
    ".github/workflows/rust.yml",
    ".gitlab-ci.yml",
  ];
  return files.some((file) => view.has(file) && words.test(view.read(file) ?? ""));
}

const isWithin = (folder: string, outer: string) => outer === "." || folder === outer || folder.startsWith(`${outer}/`);
const when = (condition: boolean, purpose: Purpose, command: string): Commands => (condition ? [[purpose, command]] : []);

function unique(commands: readonly ProjectCommand[]): ProjectCommand[] {
  return [...new Map(commands.map((one) => [`${one.purpose}\0${one.cwd}\0${one.command}`, one])).values()];
}
