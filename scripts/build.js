// Bundles src into dist, so that a start loads a few files instead of hundreds, and makes sure that the agents'
// runtime for this machine can be found.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
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

/** The database finds files of its own beside it. */
const EXTERNAL = ["@photostructure/sqlite"];
/** For a way of running the SDK that IO does not use. */
const UNUSED = ["koffi"];

/**
 * Some libraries use other packages if they are there. IO is built without those that it does not bring: looking for them,
 * Node would search every folder above IO's and the user's home, where a command could have put a package of that name.
 */
const nothingFromOutside = {
  name: "nothing-from-outside",
  setup({ onResolve, onLoad, resolve: find }) {
    onResolve({ filter: /^[^./]/ }, async ({ path, pluginData, ...from }) => {
      if (pluginData === "asked" || isBuiltin(path) || EXTERNAL.includes(path) || from.kind === "entry-point") return undefined;
      const found = UNUSED.includes(path) ? undefined : await find(path, { ...from, pluginData: "asked" });
      if (found?.errors.length === 0 && found.path.startsWith(join(root, "node_modules"))) return undefined;
      return from.kind === "require-call" || UNUSED.includes(path) ? { path, namespace: "absent" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "absent" }, ({ path }) => ({
      contents: `throw Object.assign(new Error(${JSON.stringify(`Cannot find module '${path}'`)}), { code: "MODULE_NOT_FOUND" }); module.exports = {};`,
    }));
  },
};

/** Bundled CommonJS asks for Node's own modules with require, and for nothing else. */
const requireBuiltin = `const require = (name) => { const found = process.getBuiltinModule(name); if (found) return found; throw Object.assign(new Error("Cannot find module '" + name + "'"), { code: "MODULE_NOT_FOUND" }); };`;

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
rmSync(join(root, "dist"), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: [
    "src/cli/terminal.ts",
    "src/cli/io.ts",
    "src/engine/runtime/path.ts",
    "src/lib/yaml-worker.ts",
    "src/lib/json-worker.ts",
    "src/tools/search/worker.ts",
    "src/tools/edit-worker.ts",
    "src/store/digest-worker.ts",
  ],
  outbase: "src",
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: EXTERNAL,
  banner: { js: requireBuiltin },
  plugins: [oneLanguage, nothingFromOutside],
  // What is not there need not be read at each start: a tenth of its time is reading.
  minifyWhitespace: true,
  lineLimit: 200,
  logLevel: "warning",
  metafile: true,
  // Stack traces name files of src; the texts themselves are not shipped.
  sourcemap: "linked",
  sourcesContent: false,
});
const outside = Object.values(metafile.outputs).flatMap(({ imports }) =>
  imports.filter(({ path, external }) => external && !isBuiltin(path) && !EXTERNAL.includes(path)).map(({ path }) => path),
);
if (outside.length > 0) throw new Error(`the bundle would load what it does not hold: ${[...new Set(outside)].join(", ")}`);
const page = await buildPage(root);
const packages = packagesIn(root, { inputs: { ...metafile.inputs, ...Object.fromEntries(page.map((path) => [path, {}])) } });
writeFileSync(join(root, "dist", "third-party-licences.txt"), licencesOf(packages));
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
writeFileSync(join(root, "dist", "openapi.json"), apiDescription(own.version));
writeFileSync(join(root, "dist", "bom.cdx.json"), billOfMaterials(own, packages));

const { prepareRuntime } = await import("../dist/engine/runtime/path.js");
try {
  await prepareRuntime(join(root, ".runtime"));
} catch (error) {
  console.warn(`warning: ${error.message}`);
}

/** openapi.json. Describing a hundred routes takes a tenth of a second, for which a daemon would stand still. */
function apiDescription(version) {
  const args = ["--import", "tsx", join(root, "scripts", "describe-api.ts"), version];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8", maxBuffer: 10_000_000 });
  if (status !== 0) throw new Error(`the API could not be described:\n${stderr}`);
  return stdout;
}
