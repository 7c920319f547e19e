import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram, ensurePython, ensureUv, PYTHON, UV } from "../support/program.ts";
import { type RealProject, runOn, run as sh, writeFiles } from "../support/swarm/real-project.ts";
import { makeWheel } from "../support/wheel.ts";

type Files = Record<string, string>;
const BIN = join(packageRoot, "node_modules", ".bin");
/** Where the tools keep their files, so that the user's caches are not used. */
const home = temporaryFolder(afterAll);
const env = { PATH: `${BIN}${delimiter}${process.env.PATH}`, HOME: home };

beforeAll(async () => {
  await ensureProgram("go", "golang-go");
  await ensureProgram("cargo");
  await ensurePython("ensurepip", "python3-venv");
  await ensureUv();
}, 600_000);

/** Adds the lock file that the package manager generates, without the network. */
function locked(files: Files, lock: string, program: string, args: string[], more: NodeJS.ProcessEnv = {}): Files {
  const folder = temporaryFolder();
  writeFiles(folder, files);
  sh(folder, "env", ...Object.entries({ ...env, ...more }).map(([name, value]) => `${name}=${value}`), program, ...args);
  return { ...files, [lock]: readFileSync(join(folder, lock), "utf8") };
}

/**
 * For a project with a lock file only: expects that the package manager installs its dependencies, and that its checks run and
 * notice the change.
 */
async function expectPrepared(project: Omit<RealProject, "parts">, command: string, more: NodeJS.ProcessEnv = {}): Promise<void> {
  const { run, project: folder } = await runOn({ ...project, parts: { env: { ...env, ...more } } });
  expect(run.preparation).toMatchObject([{ command, verdict: "passed", exitCode: 0 }]);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.at(-1)).toMatchObject({ verdict: "passed", bound: true });
  for (const name of ["node_modules", ".venv", "target"]) expect(existsSync(join(folder, name))).toBe(false);
}

const tested = (command: string) => [{ name: "test", command, cwd: "." }];

test.each([
  ["pnpm", "pnpm-lock.yaml", ["install", "--lockfile-only", "--offline"], "pnpm install --frozen-lockfile"],
  ["yarn", "yarn.lock", ["install", "--offline", "--silent"], "yarn install --frozen-lockfile --non-interactive"],
])("%s installs what its lock file asks for", async (manager, lock, args, command) => {
  const files = {
    ".gitignore": "node_modules/\n",
    "words/package.json": JSON.stringify({ name: "words", version: "1.0.0", main: "index.js" }),
    "words/index.js": "module.exports = () => 'hello';\n",
    "package.json": JSON.stringify({ name: "app", version: "1.0.0", dependencies: { words: "file:./words" } }),
    "src/index.js": "module.exports = require('words');\n",
    "app.test.js":
      "const { test } = require('node:test');\nconst assert = require('node:assert');\ntest('greets', () => assert.equal(require('./src/index.js')(), 'hello'));\n",
  };
  const writes: RealProject["writes"] = ["src/index.js", `${files["src/index.js"]}module.exports.more = 1;\n`];
  const project = { files: locked(files, lock, join(BIN, manager), args), checks: tested("node --test app.test.js"), writes };
  await expectPrepared(project, command);
});

test("pnpm installs in the version that is here if the one that the project asks for cannot be had, and Yarn is told of", async () => {
  const offline = { npm_config_registry: "http://127.0.0.1:9", npm_config_fetch_retries: "0" };
  const files = (packageManager?: string) => ({
    ".gitignore": "node_modules/\n",
    "words/package.json": JSON.stringify({ name: "words", version: "1.0.0", main: "index.js" }),
    "words/index.js": "module.exports = () => 'hello';\n",
    "package.json": JSON.stringify({ name: "app", version: "1.0.0", packageManager, dependencies: { words: "file:./words" } }),
    "src/index.js": "module.exports = require('words');\n",
    "app.test.js":
      "const { test } = require('node:test');\nconst assert = require('node:assert');\ntest('greets', () => assert.equal(require('./src/index.js')(), 'hello'));\n",
  });
  const writes: RealProject["writes"] = ["src/index.js", `${files()["src/index.js"]}module.exports.more = 1;\n`];
  const lock = locked(files(), "pnpm-lock.yaml", join(BIN, "pnpm"), ["install", "--lockfile-only", "--offline"]);
  const checks = tested("node --test app.test.js");
  await expectPrepared({ files: { ...lock, ...files("pnpm@9.1.0") }, checks, writes }, "pnpm install --frozen-lockfile", offline);
  const modern = { ...files("yarn@4.1.0"), "yarn.lock": "__metadata:\n  version: 8\n" };
  const more = { ...env, ...offline, COREPACK_NPM_REGISTRY: "http://127.0.0.1:9" };
  const { run } = await runOn({ files: modern, checks, writes, parts: { env: more } });
  expect(run.preparation).toMatchObject([{ verdict: "failed" }]);
  expect(run.notes.join("\n")).toContain("Install it in the project: npx --yes @yarnpkg/cli-dist@4.1.0 install --immutable");
});

test("uv makes the environment that its lock file asks for", async () => {
  const wheels = temporaryFolder();
  sh(wheels, PYTHON, "-c", makeWheel("words"));
  const wheel = join(wheels, readdirSync(wheels)[0]!);
  const more = { PATH: `${UV}${delimiter}${env.PATH}`, UV_PYTHON: PYTHON, UV_PYTHON_DOWNLOADS: "never", UV_OFFLINE: "1" };
  const files = {
    ".gitignore": "__pycache__/\n.venv/\n",
    "pyproject.toml": `[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["words"]\n\n[tool.uv]\npackage = false\n\n[tool.uv.sources]\nwords = { path = "${wheel}" }\n`,
    "src/pack.py": "import words\n\n\ndef greet():\n    return words.hello()\n",
    "test_pack.py":
      'import sys, unittest\nsys.path.insert(0, "src")\nimport pack\n\n\nclass Greeting(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(pack.greet(), "hello")\n',
  };
  const project: Omit<RealProject, "parts"> = {
    files: locked(files, "uv.lock", "uv", ["lock"], more),
    checks: tested("uv run --frozen python -B -m unittest test_pack"),
    writes: ["src/pack.py", `${files["src/pack.py"]}\n\ndef more():\n    return 1\n`],
  };
  await expectPrepared(project, "uv sync --frozen", more);
});

/** Go's compiled standard library, which takes a minute to rebuild. */
const GO_CACHE = join(process.env.HOME!, ".cache", "go-build");

/** A Python program that packs one version of a module as a module proxy serves it, in its working directory. */
const GO_PROXY = `import os, zipfile
os.makedirs("example.test/words/@v")
mod = "module example.test/words\\n\\ngo 1.19\\n"
open("example.test/words/@v/list", "w").write("v1.0.0\\n")
open("example.test/words/@v/v1.0.0.info", "w").write('{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}')
open("example.test/words/@v/v1.0.0.mod", "w").write(mod)
with zipfile.ZipFile("example.test/words/@v/v1.0.0.zip", "w") as archive:
    archive.writestr("example.test/words@v1.0.0/go.mod", mod)
    archive.writestr("example.test/words@v1.0.0/words.go", 'package words\\n\\nfunc Hello() string { return "hello" }\\n')
`;

test("go downloads what go.sum asks for, and the checks need no proxy any more", async () => {
  const proxy = temporaryFolder();
  sh(proxy, PYTHON, "-c", GO_PROXY);
  const more = { GOPROXY: `file://${proxy}`, GONOSUMDB: "*", GOFLAGS: "-modcacherw", GOTOOLCHAIN: "local", GOCACHE: GO_CACHE };
  const files = {
    "go.mod": "module example.test/greet\n\ngo 1.19\n\nrequire example.test/words v1.0.0\n",
    "greet/greet.go": 'package greet\n\nimport "example.test/words"\n\nfunc Greet() string { return words.Hello() }\n',
    "greet_test.go":
      'package main\n\nimport (\n\t"testing"\n\n\t"example.test/greet/greet"\n)\n\nfunc TestHello(t *testing.T) {\n\tif greet.Greet() != "hello" {\n\t\tt.Fatal("no")\n\t}\n}\n',
  };
  // The checks must not find modules that were downloaded to make the lock file.
  const elsewhere = { ...more, GOMODCACHE: temporaryFolder() };
  const project: Omit<RealProject, "parts"> = {
    files: locked(files, "go.sum", "go", ["mod", "tidy"], elsewhere),
    checks: tested("GOPROXY=off go test ./..."),
    writes: ["greet/greet.go", `${files["greet/greet.go"]}\nfunc More() int { return 1 }\n`],
  };
  await expectPrepared(project, "go mod download", more);
});

test("cargo fetches what Cargo.lock asks for, and one that does not fit is told before anybody is asked", async () => {
  const files = {
    ".gitignore": "target/\n",
    ".cargo/config.toml": '[source.crates-io]\nreplace-with = "vendored"\n\n[source.vendored]\ndirectory = "vendored"\n',
    "vendored/words/Cargo.toml": '[package]\nname = "words"\nversion = "1.0.0"\nedition = "2021"\n',
    "vendored/words/src/lib.rs": 'pub fn hello() -> &\'static str { "hello" }\n',
    "vendored/words/.cargo-checksum.json": '{"files":{}}',
    "Cargo.toml": '[package]\nname = "greet"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nwords = "1"\n',
    "src/lib.rs": "pub fn greet() -> &'static str { words::hello() }\n",
    "tests/greet.rs": '#[test]\nfn greets() { assert_eq!(greet::greet(), "hello"); }\n',
  };
  // Rustup's cargo needs these to find its toolchain.
  const { CARGO_HOME = join(process.env.HOME!, ".cargo"), RUSTUP_HOME = join(process.env.HOME!, ".rustup") } = process.env;
  const more = { CARGO_HOME, RUSTUP_HOME };
  const project: Omit<RealProject, "parts"> = {
    files: locked(files, "Cargo.lock", "cargo", ["generate-lockfile", "--offline"], more),
    checks: tested("cargo test --offline --locked"),
    writes: ["src/lib.rs", `${files["src/lib.rs"]}pub fn more() -> u8 { 1 }\n`],
  };
  await expectPrepared(project, "cargo fetch --locked", more);
  const unfit = { ...project.files, "Cargo.lock": project.files["Cargo.lock"]!.replaceAll("words", "verbs") };
  const { run } = await runOn({ ...project, files: unfit, parts: { env: { ...env, ...more } } });
  expect(run.preparation).toMatchObject([{ command: "cargo fetch --locked", verdict: "failed" }]);
  expect(run.notes.join("\n")).toMatch(/"cargo fetch --locked" failed .*Install it in the project: cargo fetch --locked/);
  expect(run.outcome).not.toBe("approved");
});
