import { existsSync } from "node:fs";
import { exec } from "../../src/process/exec.ts";

/** Finds a program that a test needs, or installs it; a test is never left out for want of one. */
export async function ensureProgram(name: string, debianPackage = name): Promise<void> {
  if ((await exec("which", [name])).code !== 0) await install(debianPackage);
}

export const PYTHON = "/usr/bin/python3";

/** The same for a module of Debian's own Python. */
export async function ensurePython(module: string, debianPackage = `python3-${module}`): Promise<void> {
  await ensureProgram(PYTHON, "python3");
  if ((await exec(PYTHON, ["-c", `import ${module}`])).code !== 0) await install(debianPackage);
}

/** The same for a file or folder that packages bring. */
export async function ensureFile(path: string, ...debianPackages: string[]): Promise<void> {
  if (!existsSync(path)) await install(...debianPackages);
}

async function install(...debianPackages: string[]): Promise<void> {
  await exec("apt-get", ["update"], { deadlineMs: 120_000 });
  const installed = await exec("apt-get", ["install", "-y", ...debianPackages], {
    deadlineMs: 300_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  if (installed.code !== 0)
    throw new Error(`${debianPackages.join(", ")} is needed and could not be installed:\n${installed.output}`);
}
