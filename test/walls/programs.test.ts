import { spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { startRegistry } from "../support/npm-registry.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { ensureProgram } from "../support/program.ts";
import { project } from "../support/squads.ts";

/** Requires git, tar, and a bubblewrap that works for the user who runs the tests. */
await Promise.all([ensureProgram("bwrap", "bubblewrap"), ensureProgram("git"), ensureProgram("tar")]);

const desk = realpathSync(temporaryFolder(afterAll));
const marks = join(desk, "marks");
mkdirSync(marks);
/** A program that leaves a mark and then runs the real one, if there is one. */
function plant(folder: string, name: string, real = "true"): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\necho "$0 $*" >> ${marks}/ran\nexec ${real} "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}
const ran = () => (existsSync(join(marks, "ran")) ? readFileSync(join(marks, "ran"), "utf8") : "");
const newest = {
  name: "io-orchestrator",
  version: "99.1.2",
  bin: { io: "bin/io.js" },
  scripts: { postinstall: `touch ${marks}/script` },
};
const registry = await startRegistry(newest, { "bin/io.js": "#!/usr/bin/env node\nconsole.log('new');\n" }, afterAll);
const strange = await startRegistry({ ...newest, version: "666.0.0" }, {}, afterAll);

test("a git that lies early on PATH where others put files is never started, and one that is exchanged later is refused", async () => {
  const home = realpathSync(temporaryHome({}));
  const user = realpathSync(temporaryFolder());
  const open = join(desk, "open");
  plant(open, "git");
  chmodSync(open, 0o777);
  const early = [plant(join(home, "wiki", "bin"), "git"), plant(join(desk, "node_modules", ".bin"), "git")];
  // Like version managers: a folder of the user's, which commands can also write.
  const own = join(user, "bin");
  mkdirSync(own);
  writeFileSync(join(own, "git"), '#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin exec git "$@"\n', { mode: 0o755 });
  const PATH = ["", "bin", open, ...early.map((file) => join(file, "..")), own, process.env.PATH].join(":");
  const model = await scriptedModel(obedient);
  const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), HOME: user, PATH });
  const analyze = () =>
    modelCalls(daemon, model, "squad_analyze", { project_path: project({ "a.ts": "1\n", ".gitignore": "x\n" }) });
  expect((await analyze()).read).toContain("a git repository");
  expect(ran()).toBe("");
  const { read } = await modelCalls(daemon, model, "shell", {
    command: `printf '#!/bin/sh\\necho exchanged >> ${marks}/ran\\n' > ${own}/git`,
  });
  expect(read).toContain("exit code: 0");
  expect((await analyze()).read).toMatch(/git could not be asked.*not the file that it was when IO started.*io restart/);
  expect(ran()).toBe("");
  await daemon.kill("SIGTERM");
}, 60_000);

/** An installation of this code as npm creates one. */
function installed(): { prefix: string; io: string } {
  const prefix = realpathSync(temporaryFolder());
  const root = join(prefix, "lib", "node_modules", "io-orchestrator");
  mkdirSync(root, { recursive: true });
  for (const name of ["bin", "dist", "agents", "pipelines", "package.json"])
    cpSync(join(packageRoot, name), join(root, name), { recursive: true });
  symlinkSync(join(packageRoot, "node_modules", "@photostructure"), join(prefix, "lib", "node_modules", "@photostructure"));
  return { prefix, io: join(root, "bin", "io.js") };
}

/** Runs `io` without a terminal, as a user with poisoned npm settings would. */
function run(io: string, args: string[], home: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const cwd = realpathSync(temporaryFolder());
  const poisoned = `registry=${strange.url}\nprefix=${desk}/elsewhere\nignore-scripts=false\nproxy=${strange.url}\nbefore=2001-01-01\nscript-shell=${plant(join(desk, "sh"), "sh", "/bin/sh")}\n`;
  for (const folder of [cwd, home]) writeFileSync(join(folder, ".npmrc"), poisoned);
  const env = cleanEnvironment(home, {
    npm_config_registry: strange.url,
    NPM_CONFIG_REGISTRY: strange.url,
    npm_config_prefix: desk,
  });
  return new Promise((done) => {
    const child = spawn(process.execPath, [io, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const said = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk) => (said.stdout += chunk));
    child.stderr.on("data", (chunk) => (said.stderr += chunk));
    child.once("close", (code) => done({ code, ...said }));
  });
}

test("io update asks and installs from the config's registry alone, into its own place, and runs no package's scripts", async () => {
  const { prefix, io } = installed();
  const home = realpathSync(temporaryHome({ updateRegistry: registry.url }));
  const asked = await run(io, ["update"], home);
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringMatching(/99\.1\.2 is published.*--yes/s) });
  expect(registry.asked).toEqual(["/io-orchestrator/latest"]);

  const done = await run(io, ["update", "--yes", "--json"], home);
  expect(done).toMatchObject({ code: 0 });
  expect(JSON.parse(done.stdout)).toMatchObject({ newest: "99.1.2", updated: true, restarted: false });
  const manifest = join(prefix, "lib", "node_modules", "io-orchestrator", "package.json");
  expect(JSON.parse(readFileSync(manifest, "utf8"))).toMatchObject({ version: "99.1.2" });
  expect(existsSync(join(prefix, "bin", "io"))).toBe(true);
  expect(strange.asked).toEqual([]);
  expect(existsSync(join(marks, "script"))).toBe(false);
  expect(ran()).toBe("");
}, 60_000);

test("io update in a checkout, with nothing newer, or with a registry out of reach says so and changes nothing", async () => {
  const home = realpathSync(temporaryHome({ updateRegistry: registry.url }));
  const here = await run(join(packageRoot, "bin", "io.js"), ["update", "--yes"], home);
  expect(here).toMatchObject({ code: 1, stderr: expect.stringMatching(/no global installation by npm.*git pull/) });
  const old = await startRegistry({ ...newest, version: "0.0.1" }, {}, onTestFinished);
  writeFileSync(join(home, "config.json"), JSON.stringify({ updateRegistry: old.url }));
  expect(await run(join(packageRoot, "bin", "io.js"), ["update"], home)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("is up to date (published: 0.0.1)"),
  });
  writeFileSync(join(home, "config.json"), JSON.stringify({ updateRegistry: "http://127.0.0.1:1" }));
  expect(await run(join(packageRoot, "bin", "io.js"), ["update"], home)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("could not be asked"),
  });
});

test("check_update asks the config's registry whatever npm's settings say, and never installs", async () => {
  const home = realpathSync(temporaryHome({ updateRegistry: registry.url }));
  writeFileSync(join(home, ".npmrc"), `registry=${strange.url}\n`);
  const model = await scriptedModel(obedient);
  const PATH = `${join(plant(join(desk, "npm-bin"), "npm"), "..")}:${process.env.PATH}`;
  const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), PATH, npm_config_registry: strange.url });
  expect((await modelCalls(daemon, model, "check_update", {})).read).toContain("IO 99.1.2 is published");
  expect((await modelCalls(daemon, model, "check_update", { apply: true })).read).toContain('"io update"');
  expect([strange.asked, ran()]).toEqual([[], ""]);
  await daemon.kill("SIGTERM");
});
