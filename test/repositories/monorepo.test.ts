import { expect, test } from "vitest";
import { findChecksWith } from "../../src/swarm/checks/planned-checks.ts";
import { walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureFile, ensureProgram } from "../support/program.ts";
import { type RealProject, runOn, run as sh } from "../support/swarm/real-project.ts";

/** Uses the checks that the analysis finds in each tree of the run. */
function analysed(env?: NodeJS.ProcessEnv): RealProject["parts"] {
  const { git } = walledGit(temporaryFolder(), process.env);
  return {
    findChecks: findChecksWith(git),
    ...(env && { env }),
  };
}

const npm = (project: string) => sh(project, "npm", "install", "--offline", "--no-audit", "--no-fund", "--no-package-lock");
const pack = (name: string, uses: object = {}) =>
  JSON.stringify({
    name,
    version: "1.0.0",
    type: "module",
    main: "index.js",
    scripts: { test: "node --test" },
    dependencies: uses,
  });
const says = (name: string, what: string, from = `@x/${name}`) =>
  `import test from 'node:test';\nimport assert from 'node:assert';\nimport { word } from '${from}';\ntest('${name} says it', () => assert.equal(word(), '${what}'));\n`;
const A = "export const word = () => 'hello';\n";
/** b depends on a; c, which fails, depends on neither. */
const packages = {
  ".gitignore": "node_modules/\n",
  "package.json": JSON.stringify({ name: "top", private: true, workspaces: ["packages/*"] }),
  "packages/a/package.json": pack("@x/a"),
  "packages/a/index.js": A,
  "packages/a/a.test.js": "import test from 'node:test';\nimport { word } from './index.js';\ntest('a speaks', () => word());\n",
  "packages/b/package.json": pack("@x/b", { "@x/a": "1.0.0" }),
  "packages/b/index.js": "export { word } from '@x/a';\n",
  "packages/b/b.test.js": says("b", "hello", "./index.js"),
  "packages/c/package.json": pack("@x/c"),
  "packages/c/index.js": "export const word = () => 'no';\n",
  "packages/c/c.test.js": says("c", "yes", "./index.js"),
};
const project = (text: string, path = "packages/a/index.js"): RealProject => ({
  files: packages,
  prepare: npm,
  checks: [],
  writes: [path, text],
  parts: analysed(),
});
const BOTH = {
  name: "test (packages/a, packages/b)",
  command: "npm run test --if-present --workspace=packages/a --workspace=packages/b",
};

test("npm workspaces: a change is checked in its package and in what depends on it, and nothing else is run before or after", async () => {
  const { run } = await runOn(project(`${A}export const more = 1;\n`));
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence).toEqual([expect.objectContaining({ ...BOTH, verdict: "passed", bound: true })]);
  expect(run.baseline).toEqual([]);
  expect(JSON.stringify([run.steps, run.notes])).not.toContain("packages/c");
});

test("npm workspaces: a dependant that the change breaks is found, though the package itself passes", async () => {
  const { run } = await runOn(project("export const word = () => 'bye';\n"));
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain(`the check "${BOTH.name}" fails`);
  expect(run.reason).toContain("b says it");
  expect(run.baseline).toEqual([expect.objectContaining({ ...BOTH, verdict: "passed" })]);
});

test("npm workspaces: what failed in a dependant before the run is found out only then, and is not held against it", async () => {
  const files = { ...packages, "packages/b/more.test.js": says("other", "never", "./index.js") };
  const { run } = await runOn({ ...project(`${A}export const more = 1;\n`), files });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.at(-1)).toMatchObject({ ...BOTH, verdict: "as before", bound: true });
  expect(run.baseline).toEqual([expect.objectContaining({ ...BOTH, verdict: "failed" })]);
  expect(run.notes.join("\n")).toContain(`the check "${BOTH.name}" failed before the run began`);
});

test("npm workspaces: a change beside the packages is checked everywhere, and what was red before stays excused", async () => {
  const { run } = await runOn(project("export default {};\n", "tools.config.js"));
  expect(run.evidence.at(-1)).toMatchObject({
    command: "npm run test --workspaces --if-present",
    verdict: "as before",
  });
});

test("npm workspaces: with checks required, those of every package are tried before anybody is asked", async () => {
  const { run } = await runOn({ ...project(`${A}export const more = 1;\n`), requireChecks: true });
  const tried = { name: "test", command: "npm run test --workspaces --if-present", verdict: "failed" };
  expect(run.baseline).toEqual([expect.objectContaining(tried)]);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence).toEqual([expect.objectContaining({ ...BOTH, verdict: "passed", bound: true })]);
});

test("packages side by side: more than there is room for are told of, and the changed one is checked", async () => {
  const names = ["a", "b", "c", "core", "d", "e", "f", "g"];
  const packages = names.map((name) => ({
    [`${name}/package.json`]: pack(name, name === "core" ? {} : { core: "1" }),
    [`${name}/index.js`]: A,
    [`${name}/x.test.js`]: says(name, "hello", "./index.js"),
  }));
  const { run } = await runOn({
    ...project(`${A}export const more = 1;\n`, "core/index.js"),
    files: Object.assign({}, ...packages),
    prepare: () => {},
  });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.map(({ name }) => name)).toEqual(["a", "b", "c", "core", "d", "e"].map((name) => `test (${name})`));
  expect(run.notes.join("\n")).toContain("2 more commands of its packages are not run");
});

/**
 * Compilers keep files in the user's home. Debian's programs come first in the PATH, because those installed in a home only
 * work there.
 */
const compilers = { PATH: `/usr/bin:${process.env.PATH}`, HOME: process.env.HOME, CARGO_NET_OFFLINE: "true" };

test("a Cargo workspace: a dependant that no longer compiles is found, and what does not compile elsewhere is not looked at", async () => {
  await ensureFile("/usr/bin/cargo", "cargo");
  const crate = (name: string, uses = "") => `[package]\nname = "${name}"\nversion = "0.1.0"\nedition = "2021"\n${uses}`;
  const files = {
    ".gitignore": "target/\nCargo.lock\n",
    "Cargo.toml": '[workspace]\nmembers = ["words", "app", "other"]\n',
    "words/Cargo.toml": crate("words"),
    "words/src/lib.rs": 'pub fn hello() -> &\'static str { "hello" }\n',
    "app/Cargo.toml": crate("app", '\n[dependencies]\nwords = { path = "../words" }\n'),
    "app/src/lib.rs": "pub fn greet() -> String { words::hello().to_string() }\n",
    "app/tests/greet.rs": '#[test]\nfn greets() { assert_eq!(app::greet(), "hello"); }\n',
    "other/Cargo.toml": crate("other"),
    "other/src/lib.rs": "pub fn broken( {}\n",
  };
  const { run } = await runOn({
    files,
    checks: [],
    writes: ["words/src/lib.rs", "pub fn bye() {}\n"],
    parts: analysed(compilers),
  });
  expect(run.outcome).toBe("unapproved");
  expect(run.evidence.map(({ command }) => command)).toEqual(["cargo build -p app -p words", "cargo test -p app -p words"]);
  expect(run.reason).toContain('the check "test (app, words)" fails');
  expect(run.baseline.map(({ verdict }) => verdict)).toEqual(["passed", "passed"]);
});

test("Go modules: those that need the changed one are checked, each in its folder", async () => {
  await ensureProgram("go", "golang-go");
  const module = (name: string, more = "") => `module example.test/${name}\n\ngo 1.19\n${more}`;
  const tested = (name: string, body: string, imports = "") =>
    `package ${name}\n\nimport (\n\t"testing"\n${imports})\n\nfunc TestIt(t *testing.T) {\n\t${body}\n}\n`;
  const files = {
    "a/go.mod": module("a"),
    "a/a.go": 'package a\n\nfunc Hello() string { return "hello" }\n',
    "a/a_test.go": tested("a", "Hello()"),
    "b/go.mod": module("b", "\nrequire example.test/a v0.0.0\n\nreplace example.test/a => ../a\n"),
    "b/b.go": 'package b\n\nimport "example.test/a"\n\nfunc Greet() string { return a.Hello() }\n',
    "b/b_test.go": tested("b", 'if Greet() != "hello" {\n\t\tt.Fatal("no")\n\t}'),
    "c/go.mod": module("c"),
    "c/c_test.go": tested("c", 't.Fatal("red")'),
  };
  const { run } = await runOn({
    files,
    checks: [],
    writes: ["a/a.go", 'package a\n\nfunc Hello() string { return "bye" }\n'],
    parts: analysed({ ...compilers, GOFLAGS: "-mod=mod", GOPROXY: "off" }),
  });
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain('the check "test (b)" fails');
  expect(run.evidence.filter(({ name }) => name.startsWith("test")).map(({ name, verdict }) => [name, verdict])).toEqual([
    ["test (a)", "passed"],
    ["test (b)", "failed"],
  ]);
});
