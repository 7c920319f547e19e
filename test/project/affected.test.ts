import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { surveyProject } from "../../src/project/analyze.ts";
import { walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";

const json = (value: object) => JSON.stringify(value);
const npm = (name: string, uses: string[] = [], scripts: object = { test: "node --test", lint: "eslint ." }) =>
  json({ name, scripts, dependencies: Object.fromEntries(uses.map((each) => [each, "*"])) });
const crate = (name: string, uses: string[] = []) =>
  `[package]\nname = "${name}"\nversion = "0.1.0"\n\n[dependencies]\n${uses.map((each) => `${each} = { path = "../${each}" }\n`).join("")}`;
const pom = (name: string, uses: string[] = []) =>
  `<project><parent><artifactId>top</artifactId></parent><artifactId>${name}</artifactId><dependencies>${uses
    .map((each) => `<dependency><artifactId>${each}</artifactId></dependency>`)
    .join("")}</dependencies></project>`;

/** The checks of a project after a change, as "command" or "folder: command". */
async function checksAfter(files: Record<string, string>, ...changed: string[]): Promise<string[]> {
  const root = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { git } = walledGit(temporaryFolder(), process.env);
  const { checks } = await surveyProject(git, root, { changed });
  return checks.map(({ command, cwd }) => (cwd === "." ? command : `${cwd}: ${command}`));
}

const workspace = {
  "package.json": json({ name: "top", private: true, workspaces: ["packages/*", "!packages/old"] }),
  "package-lock.json": "{}",
  "packages/a/package.json": npm("@x/a"),
  "packages/b/package.json": npm("@x/b", ["@x/a"], { test: "node --test" }),
  "packages/c/package.json": npm("@x/c", ["@x/b"]),
  "packages/d/package.json": npm("@x/d"),
  "packages/old/package.json": npm("@x/old", ["@x/a"]),
};

const py = (name: string, uses: string[] = []) =>
  `[project]\nname = "${name}"\nversion = "0.1.0"\ndependencies = [${uses.map((each) => `"${each}"`).join(", ")}]\n\n[tool.uv.sources]\n${uses.map((each) => `${each} = { workspace = true }\n`).join("")}`;
const uv = {
  "pyproject.toml": `[project]\nname = "top"\nversion = "0.1.0"\n\n[dependency-groups]\ndev = ["pytest"]\n\n[tool.uv.workspace]\nmembers = ["libs/*"]\nexclude = ["libs/old"]\n`,
  "uv.lock": "",
  "libs/a/pyproject.toml": py("lib-a"),
  "libs/a/tests/test_a.py": "",
  "libs/b/pyproject.toml": py("lib_b", ["lib-a"]),
  "libs/b/tests/test_b.py": "",
  "libs/c/pyproject.toml": py("lib-c"),
  "libs/c/tests/test_c.py": "",
  "libs/untested/pyproject.toml": py("lib-u", ["lib-b"]),
};

test.each<[what: string, files: Record<string, string>, changed: string[], checks: string[]]>([
  [
    "npm workspaces: the package, what depends on it and what depends on that, by who has the script",
    workspace,
    ["packages/a/index.js"],
    [
      "npm run lint --if-present --workspace=packages/a --workspace=packages/c",
      "npm run test --if-present --workspace=packages/a --workspace=packages/b --workspace=packages/c",
    ],
  ],
  [
    "npm workspaces: nobody depends on it",
    workspace,
    ["packages/d/index.js", "README.md"],
    ["npm run lint --if-present --workspace=packages/d", "npm run test --if-present --workspace=packages/d"],
  ],
  [
    "npm workspaces: a lock file concerns everything",
    workspace,
    ["packages/d/index.js", "package-lock.json"],
    ["npm run lint --workspaces --if-present", "npm run test --workspaces --if-present"],
  ],
  [
    "npm workspaces: so does what belongs to no package, and prose alone",
    workspace,
    ["README.md"],
    ["npm run lint --workspaces --if-present", "npm run test --workspaces --if-present"],
  ],
  [
    "a script of the root that runs the packages' own",
    { ...workspace, "package.json": json({ workspaces: ["packages/*"], scripts: { test: "npm test -ws" } }) },
    ["packages/c/index.js"],
    ["npm run lint --if-present --workspace=packages/c", "npm test --workspace=packages/c"],
  ],
  [
    "a script of the root that does more stays as it is",
    { ...workspace, "package.json": json({ workspaces: ["packages/*"], scripts: { test: "node build.js && npm test -ws" } }) },
    ["packages/c/index.js"],
    ["npm run lint --if-present --workspace=packages/c", "npm test"],
  ],
  [
    "as does one with a script before it",
    { ...workspace, "package.json": json({ workspaces: ["packages/*"], scripts: { pretest: "make", test: "npm test -ws" } }) },
    ["packages/c/index.js"],
    ["npm run lint --if-present --workspace=packages/c", "npm test"],
  ],
  [
    "pnpm, with what its own file lists",
    {
      ...workspace,
      "package.json": json({ name: "top" }),
      "pnpm-workspace.yaml": 'packages:\n  - "packages/**"\n',
      "packages/b/package.json": npm("@x/b", [], { test: "x" }).replace("{}", '{"@x/a":"workspace:*"}'),
    },
    ["packages/b/index.js"],
    [
      "pnpm --filter=./packages/c --if-present run lint",
      "pnpm --filter=./packages/b --filter=./packages/c --if-present run test",
    ],
  ],
  [
    "Turborepo",
    { ...workspace, "turbo.json": json({ tasks: { test: {}, lint: {} } }) },
    ["packages/b/index.js"],
    ["npx turbo run lint --filter=@x/c", "npx turbo run test --filter=@x/b --filter=@x/c"],
  ],
  [
    "Nx, by the names that it knows",
    { ...workspace, "nx.json": "{}", "packages/b/project.json": json({ name: "bee" }) },
    ["packages/b/index.js"],
    ["npx nx run-many -t lint --projects=@x/c", "npx nx run-many -t test --projects=bee,@x/c"],
  ],
  [
    "Nx projects without a package.json: Nx is told what changed, and finds what imports it",
    {
      "package.json": json({ name: "top", private: true, devDependencies: { nx: "*" } }),
      "package-lock.json": "{}",
      "nx.json": "{}",
      "libs/a/project.json": json({ name: "a", targets: { test: {}, lint: {} } }),
      "libs/b/project.json": json({ name: "b", targets: { test: {} }, implicitDependencies: ["a"] }),
      "apps/c/project.json": json({ name: "c", targets: { test: {} } }),
    },
    ["libs/a/src/a.ts"],
    [
      "npx nx affected -t lint --files=libs/a/project.json,libs/b/project.json",
      "npx nx affected -t test --files=libs/a/project.json,libs/b/project.json",
    ],
  ],
  [
    "Nx projects without a package.json beside npm packages: each is told by the file that makes it a project",
    {
      ...workspace,
      "nx.json": "{}",
      "libs/z/project.json": json({ name: "z", targets: { test: {} } }),
    },
    ["packages/b/index.js"],
    [
      "npx nx affected -t lint --files=packages/c/package.json",
      "npx nx affected -t test --files=packages/b/package.json,packages/c/package.json",
    ],
  ],
  [
    "a project.json of another tool is no package",
    { ...workspace, "packages/d/project.json": json({ name: "d", targets: { test: {} } }), "x/project.json": "{}" },
    ["packages/d/index.js", "x/a.txt"],
    ["npm run lint --workspaces --if-present", "npm run test --workspaces --if-present"],
  ],
  [
    "a Cargo workspace under variables of the CI",
    {
      "Cargo.toml": `[workspace]\nmembers = ["a", "b"]\n`,
      "a/Cargo.toml": crate("a"),
      "b/Cargo.toml": crate("b"),
      ".github/workflows/ci.yml":
        "on: push\nenv: {RUSTFLAGS: -D warnings}\njobs:\n  a:\n    steps:\n      - run: cargo test --workspace\n",
    },
    ["a/src/lib.rs"],
    ["RUSTFLAGS='-D warnings' cargo test -p a"],
  ],
  [
    "Lerna through a script",
    { ...workspace, "package.json": json({ workspaces: ["packages/*"], scripts: { test: "lerna run test -- --ci" } }) },
    ["packages/d/index.js"],
    ["npm run lint --if-present --workspace=packages/d", "npx lerna run test --scope=@x/d -- --ci"],
  ],
  [
    "Yarn's newer workspaces",
    { ...workspace, "package-lock.json": "", "yarn.lock": "", ".yarnrc.yml": "" },
    ["packages/b/index.js"],
    [
      "yarn workspaces foreach --all --include @x/c run lint",
      "yarn workspaces foreach --all --include @x/b --include @x/c run test",
    ],
  ],
  [
    "a Cargo workspace: by path, by an alias of the workspace, and not the one that is left out",
    {
      "Cargo.toml": `[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/out"]\n\n[workspace.dependencies]\nshort = { path = "crates/b", package = "b" }\n`,
      "crates/a/Cargo.toml": crate("a"),
      "crates/a/tests/it.rs": "",
      "crates/b/Cargo.toml": crate("b", ["a"]),
      "crates/c/Cargo.toml": `[package]\nname = "c"\n\n[dev-dependencies]\nshort.workspace = true\n`,
      "crates/d/Cargo.toml": crate("d"),
      "crates/out/Cargo.toml": crate("out", ["a"]),
    },
    ["crates/a/src/lib.rs"],
    ["cargo build -p a -p b -p c", "cargo test -p a -p b -p c"],
  ],
  [
    "a Cargo workspace whose root is a crate: its own sources do not concern the others",
    {
      "Cargo.toml": `${crate("top").replace("[dependencies]\n", "")}[dependencies]\na = { path = "a" }\n\n[workspace]\nmembers = ["a", "b"]\n`,
      "tests/it.rs": "",
      "a/Cargo.toml": crate("a"),
      "b/Cargo.toml": crate("b"),
    },
    ["src/main.rs"],
    ["cargo build -p top", "cargo test -p top"],
  ],
  [
    "Go modules: one that is replaced by its folder, another by its name",
    {
      "go.work": "go 1.22\n\nuse (\n\t./a\n\t./b\n\t./c\n)\n",
      "a/go.mod": "module corp/a\n",
      "a/a_test.go": "",
      "b/go.mod": "module corp/b\n\nrequire corp/a v0.0.0\n\nreplace corp/a => ../a\n",
      "b/b_test.go": "",
      "c/go.mod": "module corp/c\n",
      "c/c_test.go": "",
    },
    ["a/a.go"],
    ["a: go vet ./...", "b: go vet ./...", "a: go build ./...", "b: go build ./...", "a: go test ./...", "b: go test ./..."],
  ],
  [
    "Maven modules: what they need is built, too",
    {
      "pom.xml": `<project><artifactId>top</artifactId><modules><module>a</module><module>b</module><module>c</module></modules></project>`,
      "a/pom.xml": pom("a"),
      "b/pom.xml": pom("b", ["a"]),
      "b/src/test/java/BTest.java": "",
      "c/pom.xml": pom("c"),
    },
    ["a/src/main/java/A.java"],
    ["mvn -B package -DskipTests -pl a,b -am", "mvn -B test -pl a,b -am"],
  ],
  [
    "Gradle projects that have tests",
    {
      "settings.gradle": "include 'a', 'b', 'libs:c'\n",
      gradlew: "",
      "build.gradle": "",
      "a/build.gradle": "",
      "a/src/test/java/ATest.java": "",
      "b/build.gradle": "dependencies {\n  implementation project(':a')\n}\n",
      "b/src/test/java/BTest.java": "",
      "libs/c/build.gradle": "dependencies {\n  implementation projects.b\n}\n",
      "libs/c/src/test/java/CTest.java": "",
    },
    ["b/src/main/java/B.java"],
    ["./gradlew assemble", "./gradlew :b:test :libs:c:test"],
  ],
  [
    "Python packages side by side, by a name with other separators",
    {
      "one/pyproject.toml": `[project]\nname = "my_one"\ndependencies = []\n[tool.pytest.ini_options]\n`,
      "two/pyproject.toml": `[project]\nname = "two"\ndependencies = ["my-one>=1"]\n[tool.pytest.ini_options]\n`,
      "three/pyproject.toml": `[project]\nname = "three"\n[tool.pytest.ini_options]\n`,
    },
    ["one/src/x.py"],
    ["one: python3 -m pytest", "two: python3 -m pytest"],
  ],
  [
    "the CI's commands in folders of packages",
    {
      ".github/workflows/ci.yml":
        "on: push\njobs:\n  a:\n    steps:\n      - run: cd web && npm test\n      - run: cd api && npm test\n      - run: ./scripts/test.sh\n",
      "web/package.json": npm("web"),
      "api/package.json": npm("api"),
      "scripts/test.sh": "",
    },
    ["web/x.js"],
    ["web: npm run lint", "web: npm test", "./scripts/test.sh"],
  ],
  [
    "a uv workspace: pytest is given the tests of the package and of what depends on it",
    uv,
    ["libs/a/src/a.py"],
    ["uv run python -m pytest libs/a libs/b"],
  ],
  ["a uv workspace: nobody depends on it", uv, ["libs/c/src/c.py"], ["uv run python -m pytest libs/c"]],
  ["a uv workspace: the root's own project concerns everything", uv, ["pyproject.toml"], ["uv run python -m pytest"]],
  [
    "a uv workspace with tests of the root: those may test any package",
    { ...uv, "tests/test_all.py": "" },
    ["libs/a/src/a.py"],
    ["uv run python -m pytest"],
  ],
])("%s", async (_, files, changed, expected) => {
  expect(await checksAfter(files, ...changed)).toEqual(expected);
});

test("a name that a shell would read otherwise keeps the whole command, and endless patterns cost nothing", async () => {
  const odd = { ...workspace, "packages/a;reboot/package.json": npm("@x/odd") };
  expect(await checksAfter(odd, "packages/d/index.js")).toContain("npm run test --workspaces --if-present");
  const endless = { ...workspace, "package.json": json({ workspaces: [`${"**/".repeat(200)}x`, "packages/*"] }) };
  expect(await checksAfter(endless, "packages/d/index.js")).toContain("npm run test --if-present --workspace=packages/d");
});

test("where more packages are concerned than there is room for, their tests go before the rest, the changed one's first", async () => {
  const module = (name: string) => ({
    [`${name}/go.mod`]: `module example.test/${name}\n\nrequire example.test/core v1.0.0\n`,
    [`${name}/x_test.go`]: "",
  });
  const files = Object.assign({}, ...["a", "b", "c", "core", "d", "e", "f", "g"].map(module));
  const tests = await checksAfter(files, "core/x.go");
  expect(tests).toEqual(["a", "b", "c", "core", "d", "e"].map((name) => `${name}: go test ./...`));
});

test("of many packages, those that are concerned are checked, not the first ones", async () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`p${index}/package.json`, npm(`p${index}`)]));
  expect(await checksAfter(many, "p57/x.js")).toEqual(["p57: npm run lint", "p57: npm test"]);
});
