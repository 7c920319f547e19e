import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../src/client/client.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { bring } from "../src/git/dependencies.ts";
import { readDaemonFile } from "../src/home/daemon-file.ts";
import { pathsOf } from "../src/home/paths.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import type { Run } from "../src/protocol/runs.ts";
import { walledGit } from "../test/support/git.ts";
import { answer, CHECK, expectApproved, makeProject } from "./run.ts";
import { type BenchDaemon, build, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";

const MB = 1_000_000;
const STREAMS = 3;
const GOES = 3;
const LATENCY_MS = 1_000;
const PACKAGES = 40;

/**
 * `npm run bench -- repositories [MB installed] [files]` compares the wait for the first model call with the time that git and
 * the installer take alone. It also measures the disk space of a run's trees, and what it costs to look after each check at
 * what the check did to the files.
 */
export async function run(args: string[]): Promise<void> {
  const size = Number(args[0] ?? 500);
  const files = Number(args[1] ?? 60_000);
  build();
  const folder = temporaryFolder();
  const model = await startModelServer((request) => ({ ...answer(request, 1), delayMs: LATENCY_MS }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"));
  const at: Bench = { folder: folder.path, daemon, askedAt: [] };
  model.play((request) => {
    at.askedAt.push(performance.now());
    return { ...answer(request, 1), delayMs: LATENCY_MS };
  });
  try {
    // The first turn of a runtime loads its tokenizer. A daemon has done that long before a run.
    await daemon.ask("hello", "warm-up");
    const installed = join(folder.path, "installed");
    makeInstalled(installed, size);
    await copies(installed, size);
    await firstCall(at, `${size} MB installed`, (project) => {
      writeFileSync(join(project, ".git", "info", "exclude"), "node_modules/\n");
      execFileSync("cp", ["-a", installed, join(project, "node_modules")]);
      return (tree) => void execFileSync("cp", ["-a", join(project, "node_modules"), tree]);
    });
    await firstCall(at, "a lock file alone", (project, go) => {
      lockFile(project, go);
      return (tree) => void execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--offline"], { cwd: tree, stdio: "ignore" });
    });
    const large = makeProject(join(folder.path, "large"), { ...settingsFile(), ...manyFiles(files) });
    await firstCall(at, `${files} files`, () => () => undefined, large);
    await looks(at, "a small project", makeProject(join(folder.path, "small"), settingsFile()));
    await looks(at, `${files} files`, large);
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}

interface Bench {
  folder: string;
  daemon: BenchDaemon;
  /** When the model was asked. */
  askedAt: number[];
}

const clientOf = ({ home }: BenchDaemon) => {
  const paths = pathsOf({ IO_HOME: home });
  return connect({ paths, env: {}, daemon: () => readDaemonFile(paths.daemon) });
};

/** Measures from the request for a run to its first model call, and compares that with a worktree made and filled by hand. */
async function firstCall(
  at: Bench,
  what: string,
  prepare: (project: string, go: number) => (tree: string) => void,
  known?: string,
): Promise<void> {
  const client = clientOf(at.daemon);
  const bare: number[] = [];
  const own: number[] = [];
  for (let go = 0; go < GOES; go += 1) {
    const place = join(at.folder, what.replaceAll(" ", "-"), String(go));
    const project = known ?? makeProject(place, settingsFile());
    const install = prepare(project, go);
    const tree = join(place, "by-hand");
    bare.push(
      await timed(() => {
        execFileSync("git", ["-c", "checkout.workers=0", "worktree", "add", "-q", "-b", `by-hand-${go}`, tree], { cwd: project });
        install(tree);
      }),
    );
    at.askedAt.length = 0;
    const started = performance.now();
    const { id } = await client.request<Run>("POST", "/api/runs", { projectPath: project, issue: "Add a function." });
    while (at.askedAt.length === 0) await sleep(1);
    own.push(at.askedAt[0]! - started);
    await client.request<Run>("POST", `/api/runs/${id}/cancel`);
    await endOf(at, id);
  }
  const shown = (values: number[]) => values.map((ms) => ms.toFixed(0)).join(", ");
  console.log(`${what}: first model call after ${shown(own)} ms; a worktree and the install by hand ${shown(bare)} ms`);
  judge(`first model call with ${what}, times a worktree and the install by hand`, median(own) / median(bare), 1.2);
}

async function endOf({ daemon }: Bench, id: string): Promise<Run> {
  for (;;) {
    const run = await clientOf(daemon).request<Run>("GET", `/api/runs/${id}`);
    if (run.status !== "running") return run;
    await sleep(20);
  }
}

/** Measures a whole run, and the share of it in which git is asked after each check what the check did to the files. */
async function looks(at: Bench, what: string, project: string): Promise<void> {
  const started = performance.now();
  const { id } = await clientOf(at.daemon).request<Run>("POST", "/api/runs", { projectPath: project, issue: "Add a function." });
  const result = await endOf(at, id);
  const wallMs = performance.now() - started;
  expectApproved(result);
  const { git } = walledGit(join(at.folder, "data"), { PATH: process.env.PATH, HOME: at.folder });
  const status = ["status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"];
  const each: number[] = [];
  for (let go = 0; go < GOES; go += 1) each.push(await timed(() => git.must(project, status)));
  const count = result.steps.filter(({ kind }) => kind === "checks").length;
  const lookMs = count * median(each);
  console.log(
    `${what}: a run of ${wallMs.toFixed(0)} ms, ${count} times its check; a look at the tree ${median(each).toFixed(0)} ms`,
  );
  judge(`a run in ${what}, times one that does not look after its checks`, wallMs / (wallMs - lookMs), 1.1);
}

/** Measures the disk space for installed packages of a run and its streams, compared with one `cp -a` of the packages. */
async function copies(installed: string, size: number): Promise<void> {
  const { path, remove } = temporaryFolder();
  try {
    const checkout = join(path, "checkout");
    mkdirSync(checkout);
    execFileSync("cp", ["-a", installed, join(checkout, "node_modules")]);
    const copied = await timed(() => execFileSync("cp", ["-a", checkout, join(path, "copy")]));
    const one = diskOf(join(path, "copy"));
    const trees = ["run", ...Array.from({ length: STREAMS }, (_, index) => `stream-${index + 1}`)].map((name) =>
      join(path, "trees", name),
    );
    for (const tree of trees) mkdirSync(tree, { recursive: true });
    const [first, ...streams] = trees as [string, ...string[]];
    const common = { names: ["node_modules"], scratch: join(path, "scratch"), signal: new AbortController().signal };
    const own = await timed(() => bring({ from: checkout, to: first, share: false, ...common }));
    const shared = await timed(async () => {
      for (const to of streams) await bring({ from: first, to, share: true, ...common });
    });
    console.log(
      `${size} MB: cp -a ${copied.toFixed(0)} ms; the run's own tree ${own.toFixed(0)} ms, ${STREAMS} streams ${shared.toFixed(0)} ms more`,
    );
    judge("disk for all, times one cp -a", diskOf(join(path, "trees")) / one, 1.2);
  } finally {
    remove();
  }
}

/** The default pipeline with one quick check. */
function settingsFile(): Record<string, string> {
  const pipeline = readFileSync(join(packageRoot, "pipelines", "default.yaml"), "utf8");
  return { "swarm.config.yaml": `${pipeline}\nchecks: ["${CHECK}"]\n` };
}

function manyFiles(count: number): Record<string, string> {
  const name = (at: number) => `p${Math.floor(at / 5_000)}/m${Math.floor(at / 100)}/f${at}.txt`;
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), `line ${at}\n`.repeat(30)]));
}

/**
 * Writes a lock file whose packages are in the project, so that no network is measured. They differ each time, so none is
 * cached.
 */
function lockFile(project: string, go: number): void {
  const names = Array.from({ length: PACKAGES }, (_, index) => `bench-${go}-${index}`);
  for (const name of names) {
    const source = join(project, "packed", name, "package");
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
    for (let at = 0; at < 20; at += 1) writeFileSync(join(source, `f${at}.js`), `module.exports = ${at};\n`.repeat(200));
    execFileSync("tar", ["-czf", join(project, "packed", `${name}.tgz`), "-C", dirname(source), "package"]);
  }
  execFileSync("rm", ["-r", ...names.map((name) => join(project, "packed", name))]);
  const dependencies = Object.fromEntries(names.map((name) => [name, `file:packed/${name}.tgz`]));
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: `bench-${go}`, version: "1.0.0", dependencies }));
  writeFileSync(join(project, ".gitignore"), "node_modules/\n");
  const npm = ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--offline"];
  execFileSync("npm", npm, { cwd: project, stdio: "ignore" });
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=B", "-c", "user.email=b@localhost", ...words], { cwd: project });
  git("add", "-A");
  git("commit", "-q", "-m", "with a lock file");
}

/** Creates files as package managers leave them: some large ones, and many small ones in many folders. */
function makeInstalled(folder: string, size: number): void {
  const large = Buffer.alloc(5 * MB, "x");
  for (let at = 0; at < (size * 0.8) / 5; at += 1) put(join(folder, `large-${at}`), "bundle.js", large);
  const small = Buffer.alloc(10_000, "y");
  for (let at = 0; at < (size * 0.2 * MB) / small.length; at += 1)
    put(join(folder, `p${Math.floor(at / 20)}`, "lib"), `f${at}.js`, small);
}

function put(folder: string, name: string, bytes: Buffer): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), bytes);
}

/** The disk usage in bytes. Files that several folders share count once. */
function diskOf(folder: string): number {
  return Number(execFileSync("du", ["-s", "--block-size=1", folder], { encoding: "utf8" }).split("\t", 1)[0]);
}

async function timed(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
