// Compiles src into dist, and makes sure that the agents' runtime for this machine can be found.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
rmSync(join(root, "dist"), { recursive: true, force: true });
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
const built = spawnSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json")], { cwd: root, stdio: "inherit" });
if (built.status !== 0) process.exit(built.status ?? 1);

const { prepareRuntime } = await import("../dist/engine/runtime-path.js");
try {
  await prepareRuntime(join(root, ".runtime"));
} catch (error) {
  console.warn(`warning: ${error.message}`);
}
