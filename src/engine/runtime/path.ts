import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathsOf } from "../../home/paths.ts";
import { UserError } from "../../lib/errors.ts";
import { dependencyOf } from "../../lib/own-packages.ts";
import { packageRoot } from "../../lib/package-root.ts";
import { isUnchanged } from "./hashes.ts";
import { DEFAULT_RUNTIME } from "./tested-versions.ts";
import { isRuntimeFolder, RUNTIME_LIBRARY, runtimeFile, unpackRuntime } from "./unpack.ts";

/**
 * Finds the Copilot runtime's executable. A Copilot CLI package, which contains it compressed, comes first; else a package
 * of the SDK, which contains it as a file. An unpacked runtime is used only if its files still have the hashes that were
 * recorded when IO unpacked it; otherwise it is unpacked again.
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
    const beside = unpackedFolder(join(packageRoot, ".runtime"), cli);
    if (await isUnchanged(beside)) return runtimeFile(beside);
    return unpackRuntime(cli.folder, unpackedFolder(pathsOf(env).runtime, cli));
  }
  const sdk = installed("copilot-sdk-");
  const ready = sdk && join(sdk.folder, "prebuilds", sdk.platform);
  if (ready && isRuntimeFolder(ready)) return runtimeFile(ready);
  throw new UserError(missing());
}

/** The files of a runtime that the user named, which commands must not change. Others are in IO's own folders. */
export function namedRuntime({ COPILOT_CLI_PATH: path }: NodeJS.ProcessEnv): string[] {
  return path ? [path, join(dirname(path), RUNTIME_LIBRARY)].filter((file) => existsSync(file)) : [];
}

/** The Copilot CLI in this platform's package, for logging in. */
export function findCopilotProgram(env: NodeJS.ProcessEnv): string | undefined {
  const named = env.IO_COPILOT_PROGRAM;
  if (named) return named;
  const cli = installed("copilot-");
  const file = cli && join(cli.folder, process.platform === "win32" ? "copilot.exe" : "copilot");
  return file && existsSync(file) ? file : undefined;
}

/** Unpacks the runtime at install time, so that the first start need not. */
export async function prepareRuntime(folder: string): Promise<void> {
  const cli = installed("copilot-");
  if (cli) await unpackRuntime(cli.folder, unpackedFolder(folder, cli));
  else if (!installed("copilot-sdk-")) throw new UserError(missing());
}

/** The platform suffix of package names. */
export function platformName(): string {
  const { platform, arch } = process;
  return `${platform === "linux" && usesMusl() ? "linuxmusl" : platform}-${arch}`;
}

/** Whether Node uses the C library musl. A report is slow, so it is requested only where musl is installed. */
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

/** This platform's package with the given prefix, if npm installed it for IO. */
function installed(prefix: string): Installed | undefined {
  const platform = platformName();
  const folder = dependencyOf(packageRoot, `@github/${prefix}${platform}`);
  return folder === undefined ? undefined : { folder, platform };
}

function missing(): string {
  const platform = platformName();
  if (!/^(linux|linuxmusl|darwin|win32)-(x64|arm64)$/.test(platform))
    return `There is no Copilot runtime for ${platform}. Run IO on Linux, macOS or Windows with an x64 or arm64 processor, or set COPILOT_CLI_PATH to a Copilot runtime that works here.`;
  const wanted = `${DEFAULT_RUNTIME.packagePrefix}${platform}@${DEFAULT_RUNTIME.packageVersion}`;
  return `The Copilot runtime for ${platform} is not installed. Run "npm install --no-save ${wanted}" in IO's folder ("npm install -g ${wanted}" if IO was installed with -g), or set COPILOT_CLI_PATH to a Copilot runtime.`;
}
