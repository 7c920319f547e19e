// Bundles src into dist, so that a start loads a few files instead of hundreds, and makes sure that the agents'
// runtime for this machine can be found.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
rmSync(join(root, "dist"), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ["src/cli/io.ts", "src/engine/runtime-path.ts"],
  outbase: "src",
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // The database finds files of its own beside it; koffi is for a way of running the SDK that IO does not use.
  external: ["@photostructure/sqlite", "koffi"],
  // Bundled CommonJS asks for Node's own modules with require.
  banner: { js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);' },
  logLevel: "warning",
  metafile: true,
});
writeLicences(Object.keys(metafile.inputs));

const { prepareRuntime } = await import("../dist/engine/runtime-path.js");
try {
  await prepareRuntime(join(root, ".runtime"));
} catch (error) {
  console.warn(`warning: ${error.message}`);
}

/** What is bundled keeps its authors' terms: they are put beside it. */
function writeLicences(inputs) {
  const packages = new Set(inputs.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
  const texts = [...packages].sort().map((name) => {
    const folder = join(root, "node_modules", name);
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : `Licence: ${license}`;
    return `${name} ${version}\n\n${text}`;
  });
  writeFileSync(join(root, "dist", "third-party-licences.txt"), `${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`);
}
