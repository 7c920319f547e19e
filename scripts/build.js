// Bundles src into dist, so that a start loads a few files instead of hundreds, and makes sure that the agents'
// runtime for this machine can be found.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { buildPage } from "./build-page.js";
import { billOfMaterials, licencesOf, packagesIn } from "./bundled-packages.js";

/** Zod brings its sentences in fifty languages, half of its size; IO speaks one. */
const oneLanguage = {
  name: "one-language",
  setup({ onLoad }) {
    onLoad({ filter: /node_modules[/\\]zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, ({ path }) => ({
      contents: 'export { default as en } from "./en.js";',
      resolveDir: dirname(path),
    }));
  },
};

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
rmSync(join(root, "dist"), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ["src/cli/terminal.ts", "src/cli/io.ts", "src/engine/runtime-path.ts", "src/lib/yaml-worker.ts"],
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
  plugins: [oneLanguage],
  // What is not there need not be read at each start: a tenth of its time is reading.
  minifyWhitespace: true,
  lineLimit: 200,
  logLevel: "warning",
  metafile: true,
  // Stack traces name files of src; the texts themselves are not shipped.
  sourcemap: "linked",
  sourcesContent: false,
});
const page = await buildPage(root);
const packages = packagesIn(root, { inputs: { ...metafile.inputs, ...Object.fromEntries(page.map((path) => [path, {}])) } });
writeFileSync(join(root, "dist", "third-party-licences.txt"), licencesOf(packages));
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
writeFileSync(join(root, "dist", "bom.cdx.json"), billOfMaterials(own, packages));

const { prepareRuntime } = await import("../dist/engine/runtime-path.js");
try {
  await prepareRuntime(join(root, ".runtime"));
} catch (error) {
  console.warn(`warning: ${error.message}`);
}
