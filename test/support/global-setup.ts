import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/paths.ts";
import { BUNDLES } from "./bundled.ts";

/** Tests that start programs run what a user runs: the built package. */
export default function setup(): () => void {
  const result = spawnSync(process.execPath, [join(packageRoot, "scripts", "build.js")], { cwd: packageRoot, encoding: "utf8" });
  if (result.status !== 0 || !existsSync(join(packageRoot, "dist", "cli", "io.js"))) {
    throw new Error(`the build failed:\n${result.stdout}\n${result.stderr}`);
  }
  return () => rmSync(BUNDLES, { recursive: true, force: true });
}
