import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";
import { BUNDLES } from "./bundled.ts";
import { measurePace } from "./pace.mjs";
import { ensureProgram } from "./program.ts";

const SOURCES = ["src", "web", "scripts", "package.json", "package-lock.json"];
/** The file that the build writes last. */
const LAST = join(packageRoot, "dist", "bom.cdx.json");

/** Builds the package if needed: tests that start programs run what a user runs, on Linux in the sandbox. */
export default async function setup(): Promise<() => void> {
  if (isStale()) build();
  if (process.platform === "linux") await ensureProgram("bwrap", "bubblewrap");
  process.env.IO_TEST_QUIET_PACE ??= String(measurePace(200, "best"));
  return () => rmSync(BUNDLES, { recursive: true, force: true });
}

function build(): void {
  const result = spawnSync(process.execPath, [join(packageRoot, "scripts", "build.js")], { cwd: packageRoot, encoding: "utf8" });
  if (result.status !== 0 || !existsSync(LAST)) throw new Error(`the build failed:\n${result.stdout}\n${result.stderr}`);
}

/** Whether a source file or folder has changed since the last build. */
function isStale(): boolean {
  const built = statSync(LAST, { throwIfNoEntry: false })?.mtimeMs;
  const isNewer = (path: string) => statSync(path).mtimeMs >= (built ?? 0);
  return SOURCES.map((name) => join(packageRoot, name)).some(
    (path) =>
      isNewer(path) ||
      (statSync(path).isDirectory() && readdirSync(path, { recursive: true }).some((name) => isNewer(join(path, String(name))))),
  );
}
