import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { afterAll, expect, test } from "vitest";
import { platformName } from "../../src/engine/runtime/path.ts";
import { DEFAULT_RUNTIME } from "../../src/engine/runtime/tested-versions.ts";
import { pathsOf } from "../../src/home/paths.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createPathGuard } from "../../src/tools/guard.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { attack, EVERYONE, give, makeGround } from "../support/wall.ts";

const desk = realpathSync(temporaryFolder(afterAll));
const marks = join(desk, "ran");
const ran = () => (existsSync(marks) ? readFileSync(marks, "utf8") : "");
const platform = platformName();
const version = DEFAULT_RUNTIME.packageVersion;

/** A package that leaves a mark when it is loaded or started. */
function plantPackage(modules: string, name: string): void {
  const folder = join(modules, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version, main: "index.js", bin: { copilot: "index.js" } }));
  const script = `#!/usr/bin/env node\nrequire("node:fs").appendFileSync(${JSON.stringify(marks)}, ${JSON.stringify(`${folder}\n`)});\n`;
  writeFileSync(join(folder, "index.js"), script, { mode: 0o755 });
}

/** A runtime that leaves a mark and does nothing else. */
function plantRuntime(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "copilot-runtime"), `#!/bin/sh\necho ${folder} >> ${marks}\n`, { mode: 0o755 });
  writeFileSync(join(folder, "runtime.node"), "");
}

/** A copy of IO, without an unpacked runtime, in a folder that has others above it. */
function copyOfIo({ withRuntime }: { withRuntime: boolean }): { above: string[]; root: string } {
  const outer = join(realpathSync(temporaryFolder()), "outer");
  const root = join(outer, "inner", "io");
  for (const name of ["bin", "dist", "rehearsal", "agents", "pipelines", "package.json"])
    cpSync(join(packageRoot, name), join(root, name), { recursive: true });
  for (const name of ["@photostructure", ...(withRuntime ? [`@github/copilot-${platform}`] : [])]) {
    mkdirSync(dirname(join(root, "node_modules", name)), { recursive: true });
    symlinkSync(join(packageRoot, "node_modules", name), join(root, "node_modules", name));
  }
  return { above: [outer, dirname(root)], root };
}

/** Every package that code in dist requests, in any way. */
async function askedFor(): Promise<Set<string>> {
  const dist = join(packageRoot, "dist");
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".js") && !/^(?:web|test)\//.test(name),
  );
  const names = new Set<string>();
  for (const name of files)
    for (const [, asked = ""] of readFileSync(join(dist, name), "utf8").matchAll(/\b__require\(\s*["']([^"']+)["']\s*\)/g))
      names.add(asked);
  await build({
    entryPoints: files.map((name) => join(dist, name)),
    ...{ bundle: true, write: false, outdir: desk, format: "esm", platform: "node", logLevel: "silent" },
    plugins: [
      {
        name: "collect",
        setup: ({ onResolve }) =>
          onResolve({ filter: /.*/ }, ({ path, kind }) => {
            if (kind === "entry-point") return undefined;
            if (!path.startsWith(".")) names.add(path);
            return { path, external: true };
          }),
      },
    ],
  });
  return names;
}

test("the built code asks for nothing but Node's own modules and the one package that IO depends on", async () => {
  const names = await askedFor();
  expect(names).toContain("node:fs");
  expect([...names].filter((name) => !isBuiltin(name))).toEqual(["@photostructure/sqlite"]);
  const { dependencies } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  expect(Object.keys(dependencies)).toEqual(["@photostructure/sqlite"]);
  const found = createRequire(join(packageRoot, "dist", "cli", "io.js")).resolve("@photostructure/sqlite");
  expect(found.startsWith(join(realpathSync(packageRoot), "node_modules"))).toBe(true);
});

test("packages planted above IO's folder, in the home or on NODE_PATH are loaded by no part of IO", () => {
  const { above, root } = copyOfIo({ withRuntime: false });
  const home = realpathSync(temporaryFolder());
  const named = join(home, "named");
  const optional = ["supports-color", "encoding", "koffi", "bufferutil", "utf-8-validate", "node-gyp-build", "canvas"];
  const runtimes = [`@github/copilot-${platform}`, `@github/copilot-sdk-${platform}`];
  const places = [
    ...above.map((folder) => join(folder, "node_modules")),
    join(home, ".node_modules"),
    join(home, ".node_libraries"),
    named,
  ];
  for (const modules of places) for (const name of [...optional, ...runtimes]) plantPackage(modules, name);
  plantRuntime(join(above[1]!, "node_modules", `@github/copilot-sdk-${platform}`, "prebuilds", platform));
  const env = { ...cleanEnvironment(home), IO_HOME: join(home, "io"), IO_ENGINE: "rehearsal", NODE_PATH: named };
  const everything = `import { readdirSync } from "node:fs";
    for (const name of readdirSync("dist", { recursive: true })) if (/^(?!web|test).*\\.js$/.test(name)) await import(process.cwd() + "/dist/" + name).catch((error) => console.log(name, error.message));
    console.log("all loaded");
    process.exit();`;
  const loaded = spawnSync(process.execPath, ["--input-type=module", "-e", everything], { cwd: root, env, encoding: "utf8" });
  expect(loaded.stdout).toContain("all loaded");
  expect(ran()).toBe("");

  const doctor = spawnSync(process.execPath, [join(root, "bin", "io.js"), "doctor"], { cwd: home, env, encoding: "utf8" });
  expect(doctor.stdout).toContain(`The Copilot runtime for ${platform} is not installed.`);
  expect(ran()).toBe("");
}, 60_000);

test("a runtime planted where a command can write is never started, and one that was changed is unpacked again", async () => {
  const { root } = copyOfIo({ withRuntime: true });
  const user = realpathSync(temporaryFolder());
  const home = join(user, ".io");
  const own = join(home, "runtime", `${version}-${platform}`);
  const cached = join(user, ".cache", "io-orchestrator", "runtime", `${version}-${platform}`);
  const compiled = join(user, "compiled");
  plantRuntime(cached);
  const model = await scriptedModel(obedient);
  const start = () =>
    startDaemonProcess(home, { ...providerEnvironment(model.url), HOME: user, NODE_COMPILE_CACHE: compiled }, undefined, [
      join(root, "bin", "io.js"),
      "--daemon",
    ]);
  const first = await start();
  expect((await first.ask({ text: "hello" })).status).toBe("done");
  expect(existsSync(join(own, "hashes.json"))).toBe(true);
  const targets = [
    own,
    join(root, ".runtime", `${version}-${platform}`),
    join(root, "node_modules", "koffi"),
    join(compiled, "v22"),
    join(root, "dist", "node_modules", "koffi"),
  ];
  const { read } = await modelCalls(first, model, "shell", {
    command: targets
      .map((folder) => `(mkdir -p ${folder}; cp -r ${cached}/. ${folder}) 2>/dev/null && echo planted ${folder}`)
      .join("\n"),
  });
  expect(read).toContain("exit code: 1");
  expect(read).not.toContain("planted");
  await first.kill("SIGTERM");
  // Not by a command, because the check has to notice it by itself.
  const file = join(own, "copilot-runtime");
  const { length } = readFileSync(file);
  writeFileSync(join(user, "longer"), Buffer.concat([readFileSync(file), Buffer.from("changed")]), { mode: 0o755 });
  renameSync(join(user, "longer"), file);
  const second = await start();
  expect((await second.ask({ text: "hello" })).status).toBe("done");
  expect(readFileSync(file)).toHaveLength(length);
  expect(ran()).toBe("");
}, 120_000);

test("a runtime in IO's own folder that was planted or changed is not used", () => {
  const { root } = copyOfIo({ withRuntime: true });
  const beside = join(root, ".runtime", `${version}-${platform}`);
  const home = realpathSync(temporaryFolder());
  const module = join(root, "dist", "engine", "runtime", "path.js");
  const found = () => {
    const script = `console.log(await (await import(${JSON.stringify(module)})).findRuntime({ IO_HOME: ${JSON.stringify(home)} }))`;
    return spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).stdout.trim();
  };
  plantRuntime(beside);
  expect(found()).toBe(join(home, "runtime", `${version}-${platform}`, "copilot-runtime"));
  rmSync(beside, { recursive: true });
  cpSync(join(packageRoot, ".runtime", `${version}-${platform}`), beside, { recursive: true, preserveTimestamps: true });
  expect(found()).toBe(join(beside, "copilot-runtime"));
  appendFileSync(join(beside, "runtime.node"), "changed");
  expect(found()).toBe(join(home, "runtime", `${version}-${platform}`, "copilot-runtime"));
  expect(ran()).toBe("");
}, 60_000);

test("a runtime that is exchanged while IO runs is not started when the one before it ends", async () => {
  const user = realpathSync(temporaryFolder());
  const runtime = join(user, "own");
  cpSync(join(packageRoot, ".runtime", `${version}-${platform}`), runtime, { recursive: true });
  const file = join(runtime, "copilot-runtime");
  const model = await scriptedModel(obedient);
  const daemon = await startDaemonProcess(temporaryHome(), {
    ...providerEnvironment(model.url),
    HOME: user,
    COPILOT_CLI_PATH: file,
  });
  const { read } = await modelCalls(daemon, model, "shell", {
    command: `rm -f ${file} ${runtime}/runtime.node; mv ${runtime} ${runtime}.old; echo x >> ${runtime}/runtime.node; echo tried`,
    working_dir: user,
  });
  expect(read).toContain("tried");
  expect(readdirSync(runtime).sort()).toEqual(["copilot-runtime", "hashes.json", "runtime.node"]);
  expect(
    readFileSync(join(runtime, "runtime.node")).equals(
      readFileSync(join(packageRoot, ".runtime", `${version}-${platform}`, "runtime.node")),
    ),
  ).toBe(true);

  writeFileSync(join(user, "new"), `#!/bin/sh\necho exchanged >> ${marks}\n`, { mode: 0o755 });
  spawnSync("mv", [join(user, "new"), file]);
  process.kill(daemon.runtimePid(), "SIGKILL");
  const answer = await daemon.ask({ text: "hello" });
  expect(answer).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("is not the file that it was when IO started") },
  });
  expect(ran()).toBe("");
}, 120_000);

test.each(EVERYONE)(
  "what is to stay as it is cannot be made by a command while it is not there (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const checkout = join(ground.userHome, "src", "io");
    mkdirSync(checkout, { recursive: true });
    writeFileSync(join(checkout, "package.json"), "{}");
    give(join(ground.userHome, "src"), user);
    const guard = createPathGuard({ paths: pathsOf({ IO_HOME: ground.home }), packageRoot: checkout, selfEdit: () => false });
    const { stdout } = await attack({
      ...{ height, user, ground, cwd: checkout, readOnly: guard.readOnly() },
      script: [
        `for name in .runtime node_modules dist bin; do mkdir -p ${checkout}/$name/planted 2>/dev/null && echo BREACH $name; done`,
        `mv ${checkout} ${checkout}.old 2>/dev/null && echo BREACH; [ -w ${process.execPath} ] && echo BREACH node; echo tried`,
      ].join("\n"),
    });
    expect(stdout.trim()).toBe("tried");
    expect(readdirSync(checkout, { recursive: true })).not.toContainEqual(expect.stringContaining("planted"));
  },
);

test("compiled code is remembered in the data folder alone, and only in one that is there", () => {
  const home = temporaryFolder();
  const watch = `data:text/javascript,import module from "node:module"; module.enableCompileCache = (folder) => console.log("compiled code in", folder);`;
  const version = () =>
    spawnSync(process.execPath, ["--import", watch, join(packageRoot, "bin", "io.js"), "--version"], {
      ...{ env: { PATH: process.env.PATH, HOME: home }, encoding: "utf8" as const },
    }).stdout;
  expect(version()).not.toContain("compiled");
  expect(existsSync(join(home, ".io"))).toBe(false);
  mkdirSync(join(home, ".io"));
  writeFileSync(join(home, ".io", "io.db"), "");
  expect(version()).toContain(`compiled code in ${join(home, ".io", "compiled")}\n`);
});
