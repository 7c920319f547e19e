import type { HttpBindings } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { readJsonInput } from "../../lib/input-json.ts";
import { fail, HttpError } from "./errors.ts";

const MAX_BODY = 1_000_000;
/** A page of 10 MB whose characters all need escapes in JSON, and the JSON around it; the wiki enforces the page's own limit. */
const MAX_PAGE_BODY = 21_000_000;
/** A file of 10 MB, and the form around it. */
const MAX_FILE_BODY = 10_100_000;
/** A token or ticket, and the JSON around it: the most that is read from an unknown client. */
const MAX_LOGIN_BODY = 4_000;
/** No valid request has more parts; validating them takes longer than reading them. */
const MAX_PARTS = 1_000;
/** How long a client may keep sending a body that is no longer read. */
const LINGER_MS = 2_000;

/** The body of a route, as declared in openapi.json. */
interface BodyRule {
  method: string;
  path: string;
  required: boolean;
  types: string[];
}

const limited = (maxSize: number, message: string) => bodyLimit({ maxSize, onError: (context) => fail(context, 413, message) });

/**
 * Checks a request's body before its route runs: its size, its type, and the structure of its JSON. A rejected body is not read
 * to its end.
 */
export function bodyReader(app: OpenAPIHono): MiddlewareHandler {
  const small = limited(MAX_BODY, "The body is larger than 1 MB.");
  const large = limited(MAX_PAGE_BODY, "A page is at most 10 MB.");
  const file = limited(MAX_FILE_BODY, "A file is at most 10 MB.");
  let rules: BodyRule[] | undefined;
  return async (context, next) => {
    rules ??= rulesOf(app);
    const rule = rules.find(({ method, path }) => method === context.req.method && fits(path, context.req.path));
    if (rule && hasBody(context)) refuseEncoded(context);
    // The file's content, not its header, determines its type.
    if (rule?.types.includes("*/*")) return file(context, next);
    const reader = /^\/api\/wiki\/(?:pages|sources)\//.test(context.req.path) ? large : small;
    if (rule && hasBody(context)) refuseOtherTypes(context, rule);
    return reader(context, async () => {
      // The route reads a page itself, so that it is read only once.
      if (rule && reader === small) await check(rule, hasBody(context) ? await context.req.text() : "");
      await next();
    });
  };
}

/** The same for signing in, where the client is still unknown: it reads no more than a token. */
export const loginReader: MiddlewareHandler = async (context, next) => {
  if (context.req.method !== "POST") return next();
  const rule = { method: "POST", path: "/api/login", required: true, types: ["application/json"] };
  if (hasBody(context)) {
    refuseEncoded(context);
    refuseOtherTypes(context, rule);
  }
  return limited(MAX_LOGIN_BODY, "This is longer than any token.")(context, async () => {
    await check(rule, hasBody(context) ? await context.req.text() : "");
    await next();
  });
};

/** The same for other programs, whose routes read the body themselves. */
export const unpackedReader: MiddlewareHandler = async (context, next) => {
  if (hasBody(context)) {
    refuseEncoded(context);
    refuseOtherCharsets(context);
  }
  await next();
};

async function check({ required }: BodyRule, text: string): Promise<void> {
  if (text === "") {
    if (required) throw new HttpError(400, "The body is missing: this takes a JSON object, with content-type application/json.");
    return;
  }
  const read = await readJsonInput(text);
  if ("trouble" in read) throw new HttpError(400, `The body ${read.trouble}.`);
  const { value } = read;
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > MAX_PARTS)
    throw new HttpError(400, "The body has more than 1,000 keys.");
}

/** Closes the connection after this response if the body was not read to its end, without losing the response. */
export const closeUnread: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (context, next) => {
  await next();
  const incoming = context.env?.incoming;
  if (!incoming || incoming.complete || !hasBody(context)) return;
  context.header("connection", "close");
  const { socket } = incoming;
  // Closing at once would reset the connection while the client still sends, and lose the response.
  socket.destroySoon = () => {
    if (socket.writable) socket.end();
    socket.resume();
    const late = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once("end", () => socket.destroy());
    socket.once("close", () => clearTimeout(late));
  };
};

/** Rejects addresses with NUL before any route sees them: neither SQLite nor the file system accepts it in a name. */
export const plainAddress: MiddlewareHandler = async (context, next) => {
  if (/%00/.test(context.req.url)) return fail(context, 400, "The address holds a NUL character.");
  await next();
};

function hasBody(context: Context): boolean {
  const { method } = context.req;
  if (method === "GET" || method === "HEAD") return false;
  return context.req.header("transfer-encoding") !== undefined || Number(context.req.header("content-length") ?? 0) > 0;
}

const typeOf = (context: Context): string => (context.req.header("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();

function refuseOtherTypes(context: Context, { types }: BodyRule): void {
  if (!types.includes(typeOf(context)))
    throw new HttpError(415, `This content type is not taken here. Send ${types.join(" or ")}.`);
  refuseOtherCharsets(context);
}

function refuseOtherCharsets(context: Context): void {
  const charset = /;\s*charset="?([^\s;"]*)/i.exec(context.req.header("content-type") ?? "")?.[1];
  if (charset !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(charset))
    throw new HttpError(415, "Text is taken as UTF-8 alone. Send it so, with charset=utf-8 or without a charset.");
}

/** Compressed bodies are refused: a small one could unpack to any size. */
function refuseEncoded(context: Context): void {
  const encoding = context.req.header("content-encoding")?.trim() ?? "";
  if (encoding !== "" && encoding.toLowerCase() !== "identity")
    throw new HttpError(415, "A packed body is not taken. Send it without content-encoding.");
}

function rulesOf(app: OpenAPIHono): BodyRule[] {
  return app.openAPIRegistry.definitions.flatMap((definition) => {
    if (definition.type !== "route" || !definition.route.request?.body) return [];
    const { method, path, request } = definition.route;
    const { required = false, content } = request.body!;
    return [{ method: method.toUpperCase(), path, required, types: Object.keys(content) }];
  });
}

/** Whether a path matches a template of openapi.json. The last part of a wiki address may contain slashes. */
function fits(template: string, path: string): boolean {
  const wanted = template.split("/");
  const parts = path.split("/");
  if (template.startsWith("/api/wiki/") && wanted.at(-1)?.startsWith("{")) parts.splice(wanted.length);
  return wanted.length === parts.length && wanted.every((part, at) => part.startsWith("{") || part === parts[at]);
}
