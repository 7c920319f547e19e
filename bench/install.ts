import { lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { packageRoot } from "../src/lib/package-root.ts";
import { exec } from "../src/process/exec.ts";
import { build, temporaryFolder } from "./support.ts";

/** Measures what a user gets who installs the packed package without development dependencies. */
export async function run(): Promise<void> {
  build();
  const folder = temporaryFolder();
  try {
    await npm(packageRoot, "pack", "--ignore-scripts", "--pack-destination", folder.path);
    const tarball = readdirSync(folder.path).find((name) => name.endsWith(".tgz"))!;
    const project = join(folder.path, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{"name":"empty","private":true}\n');
    const started = performance.now();
    await npm(project, "install", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund", join("..", tarball));
    const seconds = (performance.now() - started) / 1000;

    const packages = findPackages(join(project, "node_modules"));
    const runtime = packages.filter(({ name }) => name.startsWith("@github/copilot"));
    const ours = packages.filter((entry) => !runtime.includes(entry));
    console.log(`tarball                    ${mb(lstatSync(join(folder.path, tarball)).size)}`);
    console.log(
      `all                        ${packages.length} packages, ${mb(sum(packages))}, installed in ${seconds.toFixed(1)} s`,
    );
    console.log(`the runtime's share        ${runtime.length} packages, ${mb(sum(runtime))} (@github/copilot*)`);
    console.log(`without it                 ${ours.length} packages, ${mb(sum(ours))}`);
    for (const { name, bytes } of ours.sort((a, b) => b.bytes - a.bytes).slice(0, 8))
      console.log(`  ${mb(bytes).padStart(9)}  ${name}`);
    const home = join(folder.path, "home");
    mkdirSync(home);
    const first = await doctor(project, home);
    const second = await doctor(project, home);
    const unpacked = sizeOf(join(home, "io", "runtime"));
    console.log(`unpacked at the first use  ${mb(unpacked)}, in ${((first - second) / 1000).toFixed(1)} s`);
  } finally {
    folder.remove();
  }
}

/** How long the installed `io doctor` takes, which starts the runtime and asks it once. */
async function doctor(project: string, home: string): Promise<number> {
  const env = { PATH: process.env.PATH, HOME: home, IO_HOME: join(home, "io"), IO_PORT: "0", IO_ENGINE: "rehearsal" };
  const { code, output, durationMs } = await exec(join(project, "node_modules", ".bin", "io"), ["doctor"], { env });
  if (code !== 0) throw new Error(`io doctor failed (${code}):\n${output}`);
  return durationMs;
}

async function npm(cwd: string, ...args: string[]): Promise<void> {
  const { code, output } = await exec("npm", args, { cwd, deadlineMs: 600_000 });
  if (code !== 0) throw new Error(`npm ${args[0]} failed (${code}):\n${output}`);
}

interface Installed {
  name: string;
  bytes: number;
}

/** Every package below a node_modules folder, each with the size of its own files only. */
function findPackages(modules: string, root = modules): Installed[] {
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith("@")
      ? readdirSync(join(modules, name)).map((inner) => join(name, inner))
      : name.startsWith(".")
        ? []
        : [name],
  );
  return names.flatMap((name) => {
    const folder = join(modules, name);
    const nested = readdirSync(folder).includes("node_modules") ? findPackages(join(folder, "node_modules"), root) : [];
    return [{ name: relative(root, folder), bytes: sizeOf(folder) }, ...nested];
  });
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += entry.name === "node_modules" ? 0 : sizeOf(path);
    else bytes += lstatSync(path).size;
  }
  return bytes;
}

const sum = (packages: readonly Installed[]): number => packages.reduce((total, { bytes }) => total + bytes, 0);
const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
