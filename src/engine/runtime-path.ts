import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { exec } from "../lib/exec.ts";
import { packageRoot } from "../lib/paths.ts";

const require = createRequire(import.meta.url);

/**
 * Where the Copilot runtime's executable is; undefined means: the one the SDK brings, which it finds by itself.
 * The SDK's own package is not published for every platform; there the Copilot CLI's package, which carries the
 * same runtime inside, is unpacked once.
 */
export async function findRuntime(env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  if (env.COPILOT_CLI_PATH) return env.COPILOT_CLI_PATH;
  if (installed("copilot-sdk-")) return undefined;
  const cli = installed("copilot-");
  const beside = cli && runtimeIn(join(packageRoot, ".runtime"), cli);
  if (beside && existsSync(beside)) return beside;
  return unpack(runtimeCache(env));
}

/** Where the runtime is unpacked when the package's own folder does not hold it. */
export function runtimeCache(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "io-orchestrator", "runtime");
}

/** Unpacks the runtime into a folder at install time, if this platform needs that. */
export async function prepareRuntime(folder: string): Promise<void> {
  if (!installed("copilot-sdk-")) await unpack(folder);
}

async function unpack(folder: string): Promise<string> {
  const cli = installed("copilot-");
  if (!cli) {
    const name = platforms()[0];
    throw new UserError(
      `The Copilot runtime for ${name} is not installed. Run "npm install --no-save @github/copilot-sdk-${name}@1.0.14", or set COPILOT_CLI_PATH to a Copilot runtime.`,
    );
  }
  const target = runtimeIn(folder, cli);
  if (existsSync(target)) return target;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const scratch = mkdtempSync(join(folder, ".unpack-"));
  try {
    const env = { PATH: process.env.PATH, HOME: scratch, XDG_CACHE_HOME: scratch, COPILOT_HOME: join(scratch, "home") };
    const result = await exec(join(cli.folder, "copilot"), ["--version"], { env, deadlineMs: 60_000 });
    const unpacked = join(scratch, "copilot", "pkg", cli.platform, versionOf(cli.folder), "prebuilds", cli.platform);
    if (!existsSync(join(unpacked, "copilot-runtime"))) {
      throw new UserError(
        `The Copilot runtime could not be unpacked (exit ${result.code}): ${result.output.trim().slice(0, 300)}`,
      );
    }
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(unpacked, "runtime.node"), join(dirname(target), "runtime.node"));
    renameSync(join(unpacked, "copilot-runtime"), target);
    return target;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

interface Installed {
  folder: string;
  platform: string;
}

function runtimeIn(folder: string, cli: Installed): string {
  return join(folder, `${versionOf(cli.folder)}-${cli.platform}`, "copilot-runtime");
}

function versionOf(folder: string): string {
  return (require(join(folder, "package.json")) as { version: string }).version;
}

/** The package of this platform with the given prefix, if npm put it here. */
function installed(prefix: string): Installed | undefined {
  for (const platform of platforms()) {
    const name = `@github/${prefix}${platform}`;
    for (const base of require.resolve.paths(name) ?? []) {
      if (existsSync(join(base, name, "package.json"))) return { folder: join(base, name), platform };
    }
  }
  return undefined;
}

/** On Linux npm installs the package of the C library that is there, so the first one found is the right one. */
function platforms(): [string, ...string[]] {
  const { platform, arch } = process;
  return platform === "linux" ? [`linux-${arch}`, `linuxmusl-${arch}`] : [`${platform}-${arch}`];
}
