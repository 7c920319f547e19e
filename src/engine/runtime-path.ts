import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { packageRoot } from "../lib/paths.ts";
import { isRuntimeFolder, runtimeFile, unpackRuntime } from "./runtime-unpack.ts";
import { DEFAULT_RUNTIME } from "./tested-runtimes.ts";

const require = createRequire(import.meta.url);

/**
 * Where the Copilot runtime's executable is. The package of the Copilot CLI carries it packed and comes first; a
 * package of the SDK, which carries it as it is, serves where that is the one installed.
 */
export async function findRuntime(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const named = env.COPILOT_CLI_PATH;
  if (named) {
    if (existsSync(named)) return named;
    throw new UserError(
      `COPILOT_CLI_PATH names ${named}, which is not there. Set it to a Copilot runtime, or unset it to use the one that came with IO.`,
    );
  }
  const cli = installed("copilot-");
  if (cli) {
    const beside = runtimeFile(unpackedFolder(join(packageRoot, ".runtime"), cli));
    return existsSync(beside) ? beside : unpackRuntime(cli.folder, unpackedFolder(runtimeCache(env), cli));
  }
  const sdk = installed("copilot-sdk-");
  const ready = sdk && join(sdk.folder, "prebuilds", sdk.platform);
  if (ready && isRuntimeFolder(ready)) return runtimeFile(ready);
  throw new UserError(missing());
}

/** The Copilot CLI that the package of this platform carries, for a person to log in with. */
export function findCopilotProgram(env: NodeJS.ProcessEnv): string | undefined {
  const named = env.IO_COPILOT_PROGRAM;
  if (named) return named;
  const cli = installed("copilot-");
  const file = cli && join(cli.folder, process.platform === "win32" ? "copilot.exe" : "copilot");
  return file && existsSync(file) ? file : undefined;
}

/** Where the runtime is unpacked when the package's own folder does not hold it. */
export function runtimeCache(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "io-orchestrator", "runtime");
}

/** Unpacks the runtime into a folder at install time, so that the first start need not. */
export async function prepareRuntime(folder: string): Promise<void> {
  const cli = installed("copilot-");
  if (cli) await unpackRuntime(cli.folder, unpackedFolder(folder, cli));
  else if (!installed("copilot-sdk-")) throw new UserError(missing());
}

/** What the names of packages for this machine end with. */
export function platformName(): string {
  const { platform, arch } = process;
  return `${platform === "linux" && usesMusl() ? "linuxmusl" : platform}-${arch}`;
}

/** Whether Node itself runs on the C library musl; a report is costly and only asked for where musl is there at all. */
function usesMusl(): boolean {
  const loader = `/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`;
  if (!existsSync(loader)) return false;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined;
}

interface Installed {
  folder: string;
  platform: string;
}

function unpackedFolder(folder: string, cli: Installed): string {
  const { version } = JSON.parse(readFileSync(join(cli.folder, "package.json"), "utf8")) as { version: string };
  return join(folder, `${version}-${cli.platform}`);
}

/** The package of this platform with the given prefix, if npm put it here. */
function installed(prefix: string): Installed | undefined {
  const platform = platformName();
  const name = `@github/${prefix}${platform}`;
  const base = require.resolve.paths(name)?.find((path) => existsSync(join(path, name, "package.json")));
  return base === undefined ? undefined : { folder: join(base, name), platform };
}

function missing(): string {
  const platform = platformName();
  if (!/^(linux|linuxmusl|darwin|win32)-(x64|arm64)$/.test(platform))
    return `There is no Copilot runtime for ${platform}. Run IO on Linux, macOS or Windows with an x64 or arm64 processor, or set COPILOT_CLI_PATH to a Copilot runtime that works here.`;
  const wanted = `${DEFAULT_RUNTIME.packagePrefix}${platform}@${DEFAULT_RUNTIME.packageVersion}`;
  return `The Copilot runtime for ${platform} is not installed. Run "npm install --no-save ${wanted}" in IO's folder ("npm install -g ${wanted}" if IO was installed with -g), or set COPILOT_CLI_PATH to a Copilot runtime.`;
}
