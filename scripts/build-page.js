// Builds the web page into dist/web, each file also compressed, so that the daemon only has to hand it out.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";

/** Answers with the files of other packages that are part of it. */
export async function buildPage(root) {
  const modules = new Set();
  const collect = { name: "modules", moduleParsed: ({ id }) => void modules.add(id) };
  await build({
    configFile: join(root, "web", "vite.config.ts"),
    plugins: [collect],
    worker: { plugins: () => [collect] },
  });
  const folder = join(root, "dist", "web");
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:js|css|html|svg|json)$/.test(name)) continue;
    const text = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text, { params }));
  }
  const files = [...modules].map((id) => id.replace(/^\0/, "").split("?")[0]);
  // node_modules may itself be a link to somewhere else.
  return files.flatMap((id) => /node_modules\/.*$/.exec(relative(root, id))?.[0] ?? []);
}
