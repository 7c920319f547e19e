import { readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { packageRoot } from "../../src/lib/paths.ts";
import { type BenchDaemon, describe, judge, median } from "../support.ts";

const ROUNDS = 12;
const BARE =
  'import { createApp, h } from "vue"; createApp({ render: () => h("textarea", { "aria-label": "Message" }) }).mount("#app");';

/** What has to arrive until one can type into the chat, and how long that takes beside a page that is Vue and nothing else. */
export async function opening(browser: Browser, daemon: BenchDaemon): Promise<void> {
  judge("to a usable chat, gzip", (await weigh(browser, daemon)) / 1024, 250, " KB");

  const bare = await barePage();
  const times = { io: [] as number[], bare: [] as number[] };
  const open = async (url: string) => {
    const context = await browser.newContext();
    if (url === daemon.url) await context.request.post(`${url}/api/login`, { data: { token: daemon.token } });
    const page = await context.newPage();
    const started = performance.now();
    await page.goto(url, { waitUntil: "commit" });
    await page.getByLabel("Message").waitFor();
    const took = performance.now() - started;
    await context.close();
    return took;
  };
  await open(daemon.url);
  await open(bare.url);
  for (let round = 0; round < ROUNDS; round += 1) {
    times.io.push(await open(daemon.url));
    times.bare.push(await open(bare.url));
  }
  bare.close();
  console.log(describe("the chat can be typed in", times.io));
  console.log(describe("a bare Vue page", times.bare));
  judge("the chat / a bare Vue page, medians", median(times.io) / median(times.bare), 2);
}

/** What the page asks for by itself when the chat opens, and what the first answer brings along, as it is sent. */
async function weigh(browser: Browser, daemon: BenchDaemon): Promise<number> {
  const assets = join(packageRoot, "dist", "web", "assets");
  const asked = new Set(readdirSync(assets).filter((name) => /^(?:markdown-worker|safe-html)-.*\.js$/.test(name)));
  const context = await browser.newContext();
  await context.request.post(`${daemon.url}/api/login`, { data: { token: daemon.token } });
  const page = await context.newPage();
  page.on("request", (request) => {
    const name = /\/assets\/([\w.-]+)$/.exec(request.url())?.[1];
    if (name !== undefined) asked.add(name);
  });
  await page.goto(daemon.url);
  await page.getByText("Conversations").waitFor();
  await context.close();
  return [...asked].reduce((sum, name) => sum + statSync(join(assets, `${name}.gz`)).size, 0);
}

async function barePage(): Promise<{ url: string; close(): void }> {
  const { outputFiles } = await build({
    stdin: { contents: BARE, resolveDir: packageRoot },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    define: {
      "process.env.NODE_ENV": '"production"',
      __VUE_OPTIONS_API__: "false",
      __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
  });
  const script = gzipSync(outputFiles[0]!.contents);
  const server = createServer((request, response) => {
    const isScript = request.url === "/x.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    if (isScript) response.setHeader("content-encoding", "gzip");
    response.end(isScript ? script : '<!doctype html><div id="app"></div><script type="module" src="/x.js"></script>');
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}
