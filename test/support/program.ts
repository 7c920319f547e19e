import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";

/** Installs a program that a test needs if it is missing; tests are never skipped for lack of one. */
export async function ensureProgram(name: string, debianPackage = name): Promise<void> {
  if (!(await isThere(name))) await install(debianPackage);
}

export const PYTHON = "/usr/bin/python3";

/** Installs a module for Debian's own Python if it is missing. */
export async function ensurePython(module: string, debianPackage = `python3-${module}`): Promise<void> {
  await ensureProgram(PYTHON, "python3");
  if ((await exec(PYTHON, ["-c", `import ${module}`])).code !== 0) await install(debianPackage);
}

const UV_VERSION = "0.13.8";
/** The folder that contains uv, which Debian does not package. */
export const UV = join(packageRoot, "node_modules", ".cache", `uv-${UV_VERSION}`, "bin");

/** Installs uv from PyPI if it is missing. */
export async function ensureUv(): Promise<void> {
  if (existsSync(join(UV, "uv"))) return;
  await ensurePython("ensurepip", "python3-venv");
  const made = dirname(UV);
  const script = `test -x ${UV}/uv || { ${PYTHON} -m venv ${made} && ${made}/bin/pip install -q uv==${UV_VERSION}; }`;
  const lock = join(packageRoot, "package.json");
  const { code, output } = await exec("flock", [lock, "/bin/sh", "-c", script], { deadlineMs: 300_000 });
  if (code !== 0) throw new Error(`uv is needed and could not be installed:\n${output}`);
}

const NODE_MANAGERS = { pnpm: "10.34.9", yarn: "1.22.22" } as const;
/** The folder that contains pnpm and yarn. */
export const MANAGERS = join(packageRoot, "node_modules", ".cache", "managers", "node_modules", ".bin");

/** Installs pnpm and yarn from npm if they are missing. */
export async function ensureNodeManagers(): Promise<void> {
  const names = Object.entries(NODE_MANAGERS);
  if (names.every(([name]) => existsSync(join(MANAGERS, name)))) return;
  const to = dirname(dirname(MANAGERS));
  const wanted = names.map(([name, version]) => `${name}@${version}`);
  const install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", to, ...wanted];
  const { code, output } = await exec("flock", [join(packageRoot, "package.json"), ...install], { deadlineMs: 300_000 });
  if (code !== 0) throw new Error(`${wanted.join(", ")} are needed and could not be installed:\n${output}`);
}

/** Installs these packages if a file or folder of theirs is missing. */
export async function ensureFile(path: string, ...debianPackages: string[]): Promise<void> {
  if (!existsSync(path)) await install(...debianPackages);
}

/** Installs everything missing at once. Maps each program, file or folder to the packages that contain it. */
export async function ensureAll(needed: Readonly<Record<string, readonly string[]>>): Promise<void> {
  const missing: string[] = [];
  for (const [name, packages] of Object.entries(needed)) if (!(await isThere(name))) missing.push(...packages);
  if (missing.length > 0) await install(...missing);
}

async function isThere(name: string): Promise<boolean> {
  return name.startsWith("/") ? existsSync(name) : (await exec("which", [name])).code === 0;
}

/** Only one test worker installs at a time, because apt-get does not wait for the lock of another one. */
async function install(...debianPackages: string[]): Promise<void> {
  const lock = join(packageRoot, "package.json");
  const apt = (...args: string[]) =>
    exec("flock", [lock, "apt-get", "-o", "DPkg::Lock::Timeout=300", ...args], {
      deadlineMs: 900_000,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  await apt("update");
  const installed = await apt("install", "-y", "--no-install-recommends", ...debianPackages);
  if (installed.code !== 0)
    throw new Error(`${debianPackages.join(", ")} is needed and could not be installed:\n${installed.output}`);
}
