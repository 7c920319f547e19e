import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { approvalsOf } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { stepwise } from "../support/orchestrator.ts";
import {
  ensureFile,
  ensureNodeManagers,
  ensureProgram,
  ensurePython,
  ensureUv,
  MANAGERS,
  PYTHON,
  UV,
} from "../support/program.ts";
import { until } from "../support/until.ts";

await ensureProgram("bwrap", "bubblewrap");

/** Where Debian keeps the Maven plugins. */
const MAVEN = "/usr/share/maven-repo";

const model = await scriptedModel(stepwise, undefined, afterAll);

/** A new project and a daemon in mode "auto", with an empty home that has no caches yet. */
async function freshProject(
  files: Record<string, string> = {},
  programs = "",
  more: (userHome: string) => Record<string, string> = () => ({}),
) {
  const root = realpathSync(temporaryFolder());
  const userHome = join(root, "user");
  const project = join(userHome, "project");
  for (const [name, text] of Object.entries({ "project/.keep": "", ...Object.fromEntries(inProject(files)) })) {
    mkdirSync(join(userHome, name, ".."), { recursive: true });
    writeFileSync(join(userHome, name), text);
  }
  // Toolchains that a version manager keeps in the real home are found there.
  const path = [...(programs ? [programs] : []), process.env.PATH].join(delimiter);
  const env = {
    ...{ PATH: path, HOME: userHome, PYENV_ROOT: join(homedir(), ".pyenv"), RUSTUP_HOME: join(homedir(), ".rustup") },
    ...more(userHome),
  };
  const daemon = await startDaemonProcess(temporaryHome({ mode: "auto" }), { ...providerEnvironment(model.url), ...env });
  /** Lets the model run a command, and expects that nobody is asked. */
  const run = async (args: { command: string; background?: boolean; timeout_secs?: number }) => {
    const { id } = await daemon.json<Message>("POST", "/api/messages", {
      ...{ text: `calls ${JSON.stringify([["shell", args]])}`, conversation: "fresh", folder: project },
    });
    return until(
      "an answer, or a question",
      async () => {
        expect(await approvalsOf(daemon)).toEqual([]);
        const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
        return message.finishedAt === null ? undefined : (message.reply ?? "");
      },
      300_000,
    );
  };
  return { project, daemon, run };
}

/** Lets a model run a command in a new project. Returns its output. */
async function inFreshProject(command: string, ...where: Parameters<typeof freshProject>): Promise<string> {
  const { daemon, run } = await freshProject(...where);
  const reply = await run({ command: `set -e; ${command}`, timeout_secs: 240 });
  await daemon.kill("SIGTERM");
  const [, code, output = ""] = /^exit code: (\S+)\n([\s\S]*)$/.exec(unmarked(reply)) ?? [];
  if (code !== "0") throw new Error(`exit ${code}: ${reply}`);
  return `${output}\n`;
}

/** A PATH with only these programs. */
function onlyWith(...names: string[]): string {
  const folder = temporaryFolder();
  for (const name of names) symlinkSync(`/bin/${name}`, join(folder, name));
  return folder;
}

const inProject = (files: Record<string, string>): [string, string][] =>
  Object.entries(files).map(([name, text]) => [`project/${name}`, text]);
/** A wheel without dependencies and with a command, written by Python itself. */
const WHEEL = `import zipfile
with zipfile.ZipFile("dep-1-py3-none-any.whl", "w") as z:
  z.writestr("dep.py", "WORDS = 'a wheel works'\\ndef main(): print(WORDS)")
  z.writestr("dep-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: dep\\nVersion: 1\\n")
  z.writestr("dep-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
  z.writestr("dep-1.dist-info/entry_points.txt", "[console_scripts]\\ndep = dep:main\\n")
  z.writestr("dep-1.dist-info/RECORD", "")
`;
const npmPackage = (name: string, more: object = {}) => JSON.stringify({ name, version: "1.0.0", ...more });

test("npm installs and runs", async () => {
  const files = {
    "package.json": npmPackage("app", { dependencies: { dep: "file:./dep" }, scripts: { test: "node -p 'require(\"dep\")'" } }),
    "dep/package.json": npmPackage("dep", { main: "index.js" }),
    "dep/index.js": "module.exports = 'npm works';",
  };
  expect(await inFreshProject("npm install --offline --no-audit --no-fund && npm cache verify && npm test", files)).toContain(
    "npm works",
  );
});

test("pnpm and yarn install and run", async () => {
  await ensureNodeManagers();
  const files = {
    "package.json": npmPackage("app", { dependencies: { dep: "file:./dep" }, scripts: { words: "node -p 'require(\"dep\")'" } }),
    "dep/package.json": npmPackage("dep", { main: "index.js" }),
    "dep/index.js": "module.exports = 'it works';",
  };
  const pnpm = await inFreshProject("pnpm install --offline && pnpm run words && pnpm store path", files, MANAGERS);
  expect(pnpm).toContain("it works\n");
  expect(pnpm).toMatch(/\/user\/\.local\/share\/pnpm\/store\/v\d+\s*$/);
  expect(await inFreshProject("yarn install --offline && yarn run words", files, MANAGERS)).toContain("it works");
});

test("uv makes an environment, installs into it, and runs a tool that the user does not have", async () => {
  await ensureUv();
  const wheel = "--no-index ./dep-1-py3-none-any.whl";
  const install = `uv venv -q -p ${PYTHON} && uv pip install -q ${wheel} && .venv/bin/dep`;
  const run = `uvx -q -p ${PYTHON} --no-index --from ./dep-1-py3-none-any.whl dep`;
  const tool = `uv tool install -q -p ${PYTHON} ${wheel} || echo refused`;
  const script = `export UV_PYTHON_DOWNLOADS=never UV_OFFLINE=1; ${PYTHON} wheel.py; ${install}; ${run}; ${tool}`;
  const said = await inFreshProject(script, { "wheel.py": WHEEL }, UV);
  expect(said).toMatch(/^a wheel works\na wheel works\n/);
  // It would put a command on the user's own PATH.
  expect(said).toContain("refused");
});

test("maven compiles", async () => {
  await ensureProgram("javac", "default-jdk-headless");
  await ensureProgram("mvn", "maven");
  await ensureFile(`${MAVEN}/org/apache/maven/plugins/maven-compiler-plugin`, "libmaven-compiler-plugin-java");
  await ensureFile(`${MAVEN}/org/apache/maven/plugins/maven-resources-plugin`, "libmaven-resources-plugin-java");
  const files = {
    "pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>a</groupId>
      <artifactId>app</artifactId><version>1</version><properties><maven.compiler.source>8</maven.compiler.source>
      <maven.compiler.target>8</maven.compiler.target></properties></project>`,
    "src/main/java/App.java": 'class App { public static void main(String[] all) { System.out.println("maven works"); } }',
  };
  const compile = `mvn -o -B -q -Dmaven.repo.local=${MAVEN} compile && java -cp target/classes App`;
  expect(await inFreshProject(compile, files)).toContain("maven works");
});

test("gradle builds and runs", async () => {
  await ensureProgram("javac", "default-jdk-headless");
  await ensureProgram("gradle", "gradle");
  const files = {
    "build.gradle":
      "apply plugin: 'java'\ntask run(type: JavaExec, dependsOn: classes) { main = 'App'; classpath = sourceSets.main.runtimeClasspath }",
    "src/main/java/App.java": 'class App { public static void main(String[] all) { System.out.println("gradle works"); } }',
  };
  // Java uses the account's home, not HOME.
  const moved = (userHome: string) => ({ GRADLE_USER_HOME: join(userHome, ".gradle") });
  expect(await inFreshProject("gradle --offline --no-daemon -q run", files, "", moved)).toContain("gradle works");
});

test("wrappers that fetch their own program, and caches that were moved, have a place to write", async () => {
  // With only these programs, neither Gradle nor Maven is installed.
  const PATH = onlyWith("sh", "mkdir", "bwrap");
  const made = (...folders: string[]) => `mkdir -p ${folders.map((name) => `$HOME/${name}/made`).join(" ")} && echo written`;
  const wrappers = { gradlew: "", mvnw: "" };
  const into = made(".gradle/wrapper", ".gradle/caches", ".m2/wrapper", ".m2/repository");
  expect(await inFreshProject(into, wrappers, "", () => ({ PATH }))).toBe("written\n");
  await expect(inFreshProject(into, {}, "", () => ({ PATH }))).rejects.toThrow("Read-only file system");
  const moved = (userHome: string) => ({ GOCACHE: join(userHome, "moved/go") });
  expect(await inFreshProject(made("moved/go"), {}, "", moved)).toBe("written\n");
});

test("git commits", async () => {
  const commit = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -q -m first && git log --format=%s";
  expect(await inFreshProject(commit)).toContain("first");
});

test("where there is no docker nobody is asked about it, and the model is told to do without", async () => {
  const PATH = onlyWith("sh", "bwrap");
  await expect(inFreshProject("docker ps", {}, "", () => ({ PATH }))).rejects.toThrow(
    /docker: command not found[\s\S]*Containers cannot be reached from inside the sandbox: do without them/,
  );
});

test("a dev server on loopback answers, inside and to the user's own browser", async () => {
  const serve = (then: string) =>
    `node -e "require('http').createServer((_, r) => r.end('served')).listen(0, '127.0.0.1', function () { ${then} })"`;
  const get =
    "require('http').get({ port: this.address().port, host: '127.0.0.1' }, (r) => r.on('data', (d) => { console.log(String(d)); process.exit(); }));";
  const { project, run } = await freshProject();
  expect(await run({ command: serve(get) })).toContain("served");
  const file = join(project, "port");
  await run({ command: serve("require('fs').writeFileSync('port', String(this.address().port));"), background: true });
  const port = await until("the server", () => existsSync(file) && readFileSync(file, "utf8"));
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("served");
});

test("python makes an environment and pip installs a package into it", async () => {
  await ensurePython("ensurepip", "python3-venv");
  const install = `${PYTHON} wheel.py && ${PYTHON} -m venv .venv && .venv/bin/pip install --no-index ./dep-1-py3-none-any.whl`;
  expect(
    await inFreshProject(`${install} && .venv/bin/python -c 'import dep; print(dep.WORDS)'`, { "wheel.py": WHEEL }),
  ).toContain("a wheel works");
});

test("cargo builds with a dependency, and go builds and keeps what it built", async () => {
  await ensureProgram("cargo");
  const crate = {
    "Cargo.toml": '[package]\nname = "app"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\ndep = { path = "dep" }\n',
    "src/main.rs": 'fn main() { println!("{}", dep::words()); }\n',
    "dep/Cargo.toml": '[package]\nname = "dep"\nversion = "1.0.0"\nedition = "2021"\n',
    "dep/src/lib.rs": 'pub fn words() -> &\'static str { "cargo works" }\n',
  };
  expect(await inFreshProject("cargo run --offline", crate)).toContain("cargo works");
  await ensureProgram("go", "golang-go");
  const module = { "go.mod": "module app\n\ngo 1.20\n", "main.go": 'package main\n\nfunc main() { println("go works") }\n' };
  expect(await inFreshProject("GOFLAGS=-mod=mod GOPROXY=off go run . && go env GOCACHE", module)).toContain("go works");
});

test("cmake configures and builds", async () => {
  await ensureProgram("cmake");
  const files = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app main.c)\n",
    "main.c": '#include <stdio.h>\nint main(void) { puts("cmake works"); return 0; }\n',
  };
  expect(await inFreshProject("cmake -S . -B build && cmake --build build && build/app", files)).toContain("cmake works");
});
