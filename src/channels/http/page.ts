import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json; charset=utf-8",
};

/** Only what this server sends is run, shown or asked; nobody may put the page into a frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** What the build made of one file, in every form that a browser may take it. */
interface Asset {
  type: string;
  plain: Buffer;
  br: Buffer | undefined;
  gzip: Buffer | undefined;
}

export interface PageDeps {
  /** Where the built page lies. */
  folder: string;
  isSignedIn: (context: Context) => boolean;
}

/** The web page: its files as they were built, and for every other address the page itself, which knows its own routes. */
export function pageRoutes(app: OpenAPIHono, { folder, isSignedIn }: PageDeps): void {
  const read = new Map<string, Asset>();
  let welcome: Asset | undefined;
  const assetAt = (name: string): Asset | undefined => {
    const known = read.get(name);
    if (known) return known;
    const path = join(folder, name);
    const type = TYPES[extname(name)];
    if (type === undefined || !existsSync(path)) return undefined;
    const packed = (suffix: string) => (existsSync(path + suffix) ? readFileSync(path + suffix) : undefined);
    const asset = { type, plain: readFileSync(path), br: packed(".br"), gzip: packed(".gz") };
    read.set(name, asset);
    return asset;
  };

  app.get("/assets/:name", (context, next) => {
    const name = context.req.param("name");
    const asset = /^[\w.-]+$/.test(name) ? assetAt(`assets/${name}`) : undefined;
    return asset ? send(context, asset, "public, max-age=31536000, immutable") : next();
  });
  app.get("/icon.svg", (context, next) => {
    const asset = assetAt("icon.svg");
    return asset ? send(context, asset, "public, max-age=3600") : next();
  });
  app.get("*", (context, next) => {
    if (/^\/(?:api|assets)(?:\/|$)/.test(context.req.path)) return next();
    const asset = assetAt("index.html");
    if (asset && isSignedIn(context)) {
      welcome ??= marked(asset);
      return send(context, welcome, "private, no-cache");
    }
    if (asset) return send(context, asset, "no-cache");
    return context.text('The page is not built. Build it with "npm run build", or talk to IO with "io".\n', 404);
  });
}

/** The page for somebody who is signed in: it need not ask whether they are. */
function marked({ type, plain }: Asset): Asset {
  const text = plain.toString("utf8").replace("<html ", "<html data-signed-in ");
  return { type, plain: Buffer.from(text), br: brotliCompressSync(text), gzip: gzipSync(text) };
}

function send(context: Context, { type, plain, br, gzip }: Asset, cache: string) {
  const taken = context.req.header("accept-encoding") ?? "";
  const [body, encoding] =
    br && /\bbr\b/.test(taken) ? [br, "br"] : gzip && /\bgzip\b/.test(taken) ? [gzip, "gzip"] : [plain, undefined];
  return context.body(new Uint8Array(body), 200, {
    ...HEADERS,
    "content-type": type,
    "cache-control": cache,
    vary: type.startsWith("text/html") ? "accept-encoding, cookie" : "accept-encoding",
    ...(encoding && { "content-encoding": encoding }),
  });
}
