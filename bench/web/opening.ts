import { readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { packageRoot } from "../../src/lib/package-root.ts";
import { type BenchDaemon, describe, judge, median } from "../support.ts";
import { fillConversation } from "./long-lists.ts";

const ROUNDS = 12;
const MESSAGES = 30;
const LAST = `Answer ${MESSAGES - 1}`;
/** A page with the same list and field, and nothing else. */
const BARE = `import { createApp, h } from "vue";
const messages = Array.from({ length: ${MESSAGES} }, (_, at) => [h("p", "Question " + at), h("p", ["Answer " + at + " with some ", h("strong", "words")])]);
createApp({ render: () => [h("div", { role: "log" }, messages), h("textarea", { "aria-label": "Message" })] }).mount("#app");`;

/** Measures how much must load until the chat is usable, and how long that takes compared with a page of nothing but Vue. */
export async function opening(browser: Browser, daemon: BenchDaemon): Promise<void> {
  judge("to a usable chat, gzip", (await weigh(browser, daemon)) / 1024, 250, " KB");

  fillConversation(join(daemon.home, "io.db"), "main", MESSAGES);
  const bare = await barePage();
  const times = { io: [] as number[], whole: [] as number[], bare: [] as number[] };
  await timed(browser, daemon.url, daemon.token);
  await timed(browser, bare.url);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { usable, whole } = await timed(browser, daemon.url, daemon.token);
    times.io.push(usable);
    times.whole.push(whole);
    times.bare.push((await timed(browser, bare.url)).usable);
  }
  bare.close();
  console.log(describe("the chat is read and typed in", times.io));
  console.log(describe("all of it stands, marked up", times.whole));
  console.log(describe("a bare Vue page is typed in", times.bare));
  judge("the chat / a bare Vue page with the same list, medians", median(times.io) / median(times.bare), 1.5);
  judge("all of it, marked up / the same, medians", median(times.whole) / median(times.bare), 1.5);
}

/**
 * Milliseconds from the start of the navigation until a frame with the last answer and the field was drawn, by the page's own
 * clock. The field is filled at once, and must still contain the words when everything has loaded.
 */
async function timed(browser: Browser, url: string, token?: string): Promise<{ usable: number; whole: number }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  if (token) await context.request.post(`${url}/api/login`, { data: { token } });
  const page = await context.newPage();
  const told = { usable: heard(page, "usable"), whole: token ? heard(page, "whole") : 0 };
  await page.addInitScript(`(() => {
    const isThere = {
      usable: () => document.querySelector("textarea") && ${token ? `document.querySelector("[role=log]")?.textContent.includes("${LAST}")` : "true"},
      whole: () => document.querySelector("[role=log] strong") && document.querySelector("nav"),
    };
    const waiting = new Set(Object.keys(isThere));
    new MutationObserver(() => {
      for (const name of waiting) {
        if (!isThere[name]()) continue;
        waiting.delete(name);
        requestAnimationFrame(() => {
          const drawn = new MessageChannel();
          drawn.port1.onmessage = () => console.log(name, performance.now());
          drawn.port2.postMessage(0);
        });
      }
    }).observe(document, { childList: true, subtree: true });
  })()`);
  await page.goto(url, { waitUntil: "commit" });
  const usable = await told.usable;
  const field = page.getByLabel("Message");
  await field.fill("words");
  const times = { usable, whole: await told.whole };
  if ((await field.inputValue()) !== "words") throw new Error("the field does not keep what was typed");
  await context.close();
  return times;
}

/** The time that the page logs to its console. */
async function heard(page: Page, name: string): Promise<number> {
  const line = await page.waitForEvent("console", (said) => said.text().startsWith(`${name} `));
  return Number(line.text().slice(name.length + 1));
}

/** The compressed size of what the page requests when the chat opens, and of what the first answer adds. */
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
