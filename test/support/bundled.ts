import { basename, join } from "node:path";
import { build } from "esbuild";
import { packageRoot } from "../../src/lib/package-root.ts";

const REQUIRE = 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);';

/**
 * The folder for the bundles of a test run. It is inside `dist` so that they resolve the same libraries as IO's own bundles.
 */
export const BUNDLES = join(packageRoot, "dist", "test");

/** Bundles a test program into one file. For programs that are started often: compiling them takes longer than running them. */
export async function bundled(program: string): Promise<string> {
  const outfile = join(BUNDLES, `${basename(program, ".ts")}-${process.pid}.js`);
  await build({
    entryPoints: [program],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    external: ["@photostructure/sqlite", "koffi"],
    banner: { js: REQUIRE },
    sourcemap: "linked",
    logLevel: "warning",
  });
  return outfile;
}
