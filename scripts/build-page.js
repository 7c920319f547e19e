// Builds the web page into dist/web. Each file is also stored compressed, so that the daemon need not compress it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build as bundle } from "esbuild";
import { build } from "vite";

/** Returns the files of other packages that are part of the page. */
export async function buildPage(root) {
  const modules = new Set();
  const collect = { name: "modules", moduleParsed: ({ id }) => void modules.add(id) };
  const frame = await buildFrame(root);
  await build({
    configFile: join(root, "web", "vite.config.ts"),
    plugins: [collect],
    worker: { plugins: () => [collect] },
    define: { __DIAGRAM_SCRIPT__: JSON.stringify(`/assets/${frame.name}`) },
  });
  const folder = join(root, "dist", "web");
  writeFileSync(join(folder, "assets", frame.name), frame.text);
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:js|css|html|svg|json)$/.test(name)) continue;
    const text = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text, { params }));
  }
  const files = [...modules, ...frame.inputs].map((id) => id.replace(/^\0/, "").split("?")[0]);
  // node_modules may itself be a link to somewhere else.
  return files.flatMap((id) => /node_modules\/.*$/.exec(relative(root, id))?.[0] ?? []);
}

/** Bundles what draws diagrams into one script. The frame that runs it has no origin, so it can load nothing itself. */
async function buildFrame(root) {
  const { outputFiles, metafile } = await bundle({
    absWorkingDir: root,
    entryPoints: ["web/src/diagrams/frame.ts"],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    // Use the packages' builds for browsers, not those for Node.
    platform: "browser",
    legalComments: "none",
    write: false,
    metafile: true,
    logLevel: "warning",
  });
  const { text } = outputFiles[0];
  const name = `diagram-${createHash("sha256").update(text).digest("hex").slice(0, 10)}.js`;
  return { name, text, inputs: Object.keys(metafile.inputs).map((path) => join(root, path)) };
}
