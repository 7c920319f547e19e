import { basename, join } from "node:path";
import { build } from "esbuild";
import { packageRoot } from "../../src/lib/package-root.ts";

const REQUIRE = 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);';

/** Where the bundles of one run of the tests stand: beside IO's own, so that they find the same libraries. */
export const BUNDLES = join(packageRoot, "dist", "test");

/** A program of the tests in one file, for those that start it many times: compiling it anew takes longer than what it does. */
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
