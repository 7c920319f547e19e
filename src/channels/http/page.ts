import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import { FRAME_HEADERS, FRAME_PAGE } from "./diagram-frame.ts";
import { firstView } from "./first-view.ts";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json",
};

/** The page may only load and contact this server, and nobody may embed it in a frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  // For the frame that draws diagrams, which has no origin and its own policy.
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
};
/** One built file, in every encoding that browsers accept. */
interface Asset {
  type: string;
  plain: Buffer;
  br: Buffer | undefined;
  gzip: Buffer | undefined;
}

export interface PageDeps {
  /** The folder of the built page. */
  folder: string;
  /** Whether the browser has one of our cookies. It is sent to other ports too, so nothing private may depend on it. */
  isKnown: (context: Context) => boolean;
}

/** The web page: its built files, and the page itself for every other address, because it routes by itself. */
export function pageRoutes(app: OpenAPIHono, { folder, isKnown }: PageDeps): void {
  const read = new Map<string, Asset>();
  const assetAt = (name: string): Asset | undefined => {
    const known = read.get(name);
    if (known) return known;
    const asset = readAsset(folder, name);
    if (asset) read.set(name, asset);
    return asset;
  };

  app.get("/assets/:name", (context, next) => {
    const name = context.req.param("name");
    const asset = /^[\w.-]+$/.test(name) ? assetAt(`assets/${name}`) : undefined;
    return asset ? send(context, asset, "public, max-age=31536000, immutable") : next();
  });
  for (const name of ["icon.svg", "manifest.webmanifest"])
    app.get(`/${name}`, (context, next) => {
      const asset = assetAt(name);
      return asset ? send(context, asset, "public, max-age=3600") : next();
    });
  app.get("/diagram", (context) => context.body(FRAME_PAGE, 200, FRAME_HEADERS));
  app.get("*", (context, next) => {
    if (/^\/(?:api|assets|v1|mcp|\.well-known)(?:\/|$)/.test(context.req.path)) return next();
    // Read anew each time: it names the other files, which are others once the package was replaced below a running daemon.
    const asset = readAsset(folder, "index.html");
    if (asset) {
      const known = isKnown(context);
      const chat = known ? /^\/(?:chat(?:\/([\w.-]+))?)?\/?$/.exec(context.req.path) : null;
      const page = marked(asset, known, getCookie(context, "io_theme"), chat && firstView(chat[1] ?? "main"));
      // Isolates the page from a page that opened it. If a person opened it, isolation would only cost the browser another
      // process.
      if (context.req.header("sec-fetch-site") !== "none") context.header("cross-origin-opener-policy", "same-origin");
      return send(context, page, "private, no-cache");
    }
    return context.text('The page is not built. Build it with "npm run build", or talk to IO with "io".\n', 404);
  });
}

function readAsset(folder: string, name: string): Asset | undefined {
  const path = join(folder, name);
  const type = TYPES[extname(name)];
  if (type === undefined || !existsSync(path)) return undefined;
  const packed = (suffix: string) => (existsSync(path + suffix) ? readFileSync(path + suffix) : undefined);
  return { type, plain: readFileSync(path), br: packed(".br"), gzip: packed(".gz") };
}

/** Adds to the page whether the browser seems signed in, its theme, and its first view, so that it need not ask. */
function marked(asset: Asset, isKnown: boolean, theme: string | undefined, view: string | null): Asset {
  const chosen = theme === "light" || theme === "dark" ? `data-theme="${theme}" ` : "";
  const marks = `${isKnown ? "data-signed-in " : ""}${chosen}`;
  if (marks === "") return asset;
  const text = asset.plain
    .toString("utf8")
    .replace("<html ", (tag) => tag + marks)
    .replace('<div id="app">', (tag) => tag + (view ?? ""));
  return { type: asset.type, plain: Buffer.from(text), br: undefined, gzip: gzipSync(text, { level: 1 }) };
}

function send(context: Context, { type, plain, br, gzip }: Asset, cache: string) {
  const taken = context.req.header("accept-encoding") ?? "";
  const [body, encoding] =
    br && /\bbr\b/.test(taken) ? [br, "br"] : gzip && /\bgzip\b/.test(taken) ? [gzip, "gzip"] : [plain, undefined];
  return context.body(new Uint8Array(body), 200, {
    ...HEADERS,
    "content-type": type,
    "cache-control": cache,
    vary: type.startsWith("text/html") ? "accept-encoding, cookie, sec-fetch-site" : "accept-encoding",
    ...(encoding && { "content-encoding": encoding }),
  });
}
