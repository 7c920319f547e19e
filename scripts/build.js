// Bundles src into dist, so that a start loads a few files instead of hundreds, and makes sure that the Copilot runtime for
// this machine can be found.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { buildPage } from "./build-page.js";
import { billOfMaterials, licencesOf, packagesIn } from "./bundled-packages.js";

/** Zod contains its messages in fifty languages, which are half of its size. IO uses one. */
const oneLanguage = {
  name: "one-language",
  setup({ onLoad }) {
    onLoad({ filter: /node_modules[/\\]zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, ({ path }) => ({
      contents: 'export { default as en } from "./en.js";',
      resolveDir: dirname(path),
    }));
  },
};

/** The web server's library loads Node's HTTP/2, a tenth of a start, only to ask whether a request is one of its. IO's never are. */
const noHttp2 = {
  name: "no-http2",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http2$/ }, ({ importer, path }) =>
      /node_modules[/\\]@hono[/\\]node-server[/\\]/.test(importer) ? { path, namespace: "no-http2" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "no-http2" }, () => ({
      contents: "export class Http2ServerRequest {} export const constants = {};",
    }));
  },
};

/** The database looks for its own files beside it. */
const EXTERNAL = ["@photostructure/sqlite"];
/** Needed only for a way of running the SDK that IO does not use. */
const UNUSED = ["koffi"];

/**
 * Some libraries use other packages if they are installed. IO is built without those that it does not bundle: to look for them,
 * Node would search every folder above IO's and the user's home, where a command could have put a package by that name.
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

/**
 * Escapes the non-ASCII characters that esbuild leaves in patterns and comments. One of them is enough for Node to keep the
 * whole file in memory with two bytes per character.
 */
function spellOut(path) {
  const text = readFileSync(path, "utf8");
  const spelled = text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (spelled !== text) writeFileSync(path, spelled);
}

/** Bundled CommonJS code may require Node's own modules, and nothing else. */
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
    "src/store/integrity-worker.ts",
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
  plugins: [oneLanguage, noHttp2, nothingFromOutside],
  // Reading code takes a tenth of each start, so less code starts faster.
  minifyWhitespace: true,
  lineLimit: 200,
  logLevel: "warning",
  metafile: true,
  // Stack traces name files of src. The sources themselves are not shipped.
  sourcemap: "linked",
  sourcesContent: false,
});
const outside = Object.values(metafile.outputs).flatMap(({ imports }) =>
  imports.filter(({ path, external }) => external && !isBuiltin(path) && !EXTERNAL.includes(path)).map(({ path }) => path),
);
if (outside.length > 0) throw new Error(`the bundle would load what it does not hold: ${[...new Set(outside)].join(", ")}`);
for (const path of Object.keys(metafile.outputs)) if (path.endsWith(".js")) spellOut(join(root, path));
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

/** Returns openapi.json. Describing a hundred routes takes a tenth of a second, for which a daemon would be blocked. */
function apiDescription(version) {
  const args = ["--import", "tsx", join(root, "scripts", "describe-api.ts"), version];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8", maxBuffer: 10_000_000 });
  if (status !== 0) throw new Error(`the API could not be described:\n${stderr}`);
  return stdout;
}
