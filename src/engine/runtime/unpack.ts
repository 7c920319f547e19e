import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError } from "../../lib/errors.ts";
import { exec } from "../../process/exec.ts";
import { isUnchanged, recordHashes } from "./hashes.ts";

const EXECUTABLE = process.platform === "win32" ? "copilot-runtime.exe" : "copilot-runtime";
/** Files that the executable loads from its own folder. */
export const RUNTIME_LIBRARY = "runtime.node";

/** The executable in a runtime's folder. */
export const runtimeFile = (folder: string): string => join(folder, EXECUTABLE);

export const isRuntimeFolder = (folder: string): boolean =>
  existsSync(join(folder, EXECUTABLE)) && existsSync(join(folder, RUNTIME_LIBRARY));

/**
 * Extracts the runtime from a Copilot CLI package into a folder, atomically, together with the hashes of its files. An
 * existing folder is kept only if its hashes match. The CLI unpacks itself at its first start; this starts it with a scratch
 * folder as its home.
 */
export async function unpackRuntime(packageFolder: string, folder: string): Promise<string> {
  if (await isUnchanged(folder)) return runtimeFile(folder);
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  const scratch = mkdtempSync(join(dirname(folder), ".unpack-"));
  try {
    const result = await exec(cliIn(packageFolder), ["--version"], { env: homeIn(scratch), deadlineMs: 60_000 });
    const unpacked = findRuntimeFolder(scratch);
    if (!unpacked)
      throw new UserError(
        `The Copilot runtime could not be unpacked (exit ${result.code}): ${result.output.trim().slice(0, 300)}. Run "npm install" again, or set COPILOT_CLI_PATH to a Copilot runtime.`,
      );
    const ready = join(scratch, "ready");
    mkdirSync(ready);
    for (const name of [RUNTIME_LIBRARY, EXECUTABLE]) renameSync(join(unpacked, name), join(ready, name));
    await recordHashes(ready);
    await putInPlace(ready, folder);
    return runtimeFile(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function cliIn(packageFolder: string): string {
  const { bin } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as { bin: Record<string, string> };
  return join(packageFolder, Object.values(bin)[0] ?? "copilot");
}

/** An environment in which the CLI takes the scratch folder for the user's home, on every platform. */
function homeIn(scratch: string): NodeJS.ProcessEnv {
  const { PATH, SystemRoot } = process.env;
  const homes = { HOME: scratch, USERPROFILE: scratch, XDG_CACHE_HOME: scratch, LOCALAPPDATA: scratch, APPDATA: scratch };
  return { PATH, ...(SystemRoot !== undefined && { SystemRoot }), ...homes, COPILOT_HOME: join(scratch, "home") };
}

function findRuntimeFolder(root: string): string | undefined {
  if (isRuntimeFolder(root)) return root;
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    const found = entry.isDirectory() && findRuntimeFolder(join(root, entry.name));
    if (found) return found;
  }
  return undefined;
}

/** Another process may have finished first; anything else at that path is replaced. */
async function putInPlace(ready: string, folder: string): Promise<void> {
  if (await isUnchanged(folder)) return;
  rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(ready, folder);
  } catch (error) {
    if (!(await isUnchanged(folder))) throw error;
  }
}
