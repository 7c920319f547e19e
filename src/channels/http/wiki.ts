import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { readJsonInput } from "../../lib/input-json.ts";
import { explainIssues } from "../../lib/validation.ts";
import { Contradiction } from "../../protocol/page-review.ts";
import { type ApiChannel, PageChange } from "../../protocol/pages.ts";
import type { PageWriters } from "../../store/page-writers.ts";
import type { Contradictions } from "../../wiki/noted-contradictions.ts";
import type { Wiki } from "../../wiki/wiki.ts";
import { HttpError } from "./errors.ts";
import { answers, body } from "./shapes.ts";

const PageInfo = z.object({
  path: z.string(),
  title: z.string(),
  tags: z.array(z.string()),
  bytes: z.number().int(),
  updatedAt: z.string(),
});
const Page = PageInfo.extend({ content: z.string() }).meta({ id: "Page" });
const Written = PageInfo.extend({ contradictions: z.array(Contradiction) }).meta({ id: "WrittenPage" });
const SourceInfo = z.object({ name: z.string(), bytes: z.number().int(), updatedAt: z.string() });
const Source = SourceInfo.extend({ content: z.string() }).meta({ id: "Source" });
const Content = z.strictObject({ content: z.string() });
const contentBody = {
  required: true,
  content: {
    "application/json": { schema: Content },
    "text/markdown": { schema: z.string() },
    "text/plain": { schema: z.string() },
  },
};
const Version = z.object({ version: z.string(), savedAt: z.string(), bytes: z.number().int() });
const Linked = z.object({ path: z.string(), title: z.string(), links: z.array(z.string()) });
const Hit = PageInfo.omit({ bytes: true }).extend({ snippet: z.string(), match: z.enum(["text", "words"]) });
const listOf = <T extends z.ZodType>(schema: T) => z.object({ items: z.array(schema), next: z.string().optional() });

const pageParams = { params: z.object({ path: z.string() }) };
/** Routes whose path may contain slashes: their handlers parse the address themselves, so they are only described here. */
const ROUTES_WITH_A_PATH = [
  createRoute({
    method: "get",
    path: "/api/wiki/pages/{path}",
    summary: "One page; its path may hold slashes",
    request: pageParams,
    responses: answers(200, Page),
  }),
  createRoute({
    method: "put",
    path: "/api/wiki/pages/{path}",
    summary: "Makes (201) or replaces (200) a page, as JSON or text/markdown",
    request: { ...pageParams, body: contentBody },
    responses: { ...answers(201, Written), ...answers(200, Written) },
  }),
  createRoute({
    method: "delete",
    path: "/api/wiki/pages/{path}",
    summary: "Deletes a page; its history stays",
    request: pageParams,
    responses: answers(200, PageInfo),
  }),
  createRoute({
    method: "get",
    path: "/api/wiki/history/{path}",
    summary: "Earlier versions of a page; with version, what it held then",
    request: { ...pageParams, query: z.object({ version: z.string().optional() }) },
    responses: answers(200, z.union([listOf(Version), z.object({ content: z.string() })])),
  }),
  createRoute({
    method: "get",
    path: "/api/wiki/sources/{name}",
    summary: "One source",
    request: { params: z.object({ name: z.string() }) },
    responses: answers(200, Source),
  }),
  createRoute({
    method: "put",
    path: "/api/wiki/sources/{name}",
    summary: "Stores a source",
    request: { params: z.object({ name: z.string() }), body: contentBody },
    responses: answers(200, SourceInfo),
  }),
];

export interface WikiRoutesDeps {
  wiki: Wiki;
  pageWriters: PageWriters;
  contradictions: Pick<Contradictions, "check">;
}

/** Which channel a request came from. */
export type ChannelOf = (context: Context) => ApiChannel;

function contradictionRoutes(app: OpenAPIHono, wiki: Wiki): void {
  const contradictions = createRoute({
    method: "get",
    path: "/api/wiki/contradictions",
    summary: "What a page says differently from other pages, or from another line of itself; found by search",
    request: { query: z.object({ path: z.string().min(1).max(2_000) }) },
    responses: answers(200, listOf(Contradiction)),
  });
  app.openapi(contradictions, async (context) =>
    context.json({ items: await wiki.contradictions(context.req.valid("query").path) }, 200),
  );
}

function changeRoutes(app: OpenAPIHono, pageWriters: PageWriters): void {
  const changes = createRoute({
    method: "get",
    path: "/api/wiki/changes",
    summary: "Who wrote or deleted which page since a time, and in whose work, newest first",
    request: {
      query: z.object({
        by: PageChange.shape.by.optional(),
        path: z.string().max(2_000).optional(),
        since: z.iso.datetime().default("1970-01-01T00:00:00.000Z"),
        limit: z.coerce.number().int().min(1).max(1_000).default(200),
      }),
    },
    responses: answers(200, listOf(PageChange)),
  });
  app.openapi(changes, (context) => {
    return context.json({ items: pageWriters.changes(context.req.valid("query")) }, 200);
  });
}

/** Pages, their history and the raw sources. A page's path may contain slashes, so its routes parse the rest of the address. */
export function wikiRoutes(app: OpenAPIHono, { wiki, pageWriters, contradictions }: WikiRoutesDeps, channelOf: ChannelOf): void {
  const edited = (context: Context, { path, updatedAt }: { path: string; updatedAt: string }) =>
    pageWriters.edited(path, "written", { channel: channelOf(context), at: updatedAt });
  changeRoutes(app, pageWriters);
  contradictionRoutes(app, wiki);
  const list = createRoute({
    method: "get",
    path: "/api/wiki/pages",
    summary: "All pages",
    request: {
      query: z.object({
        under: z.string().optional(),
        after: z.string().optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(200),
      }),
    },
    responses: answers(200, listOf(PageInfo).extend({ total: z.number().int() })),
  });
  app.openapi(list, async (context) => {
    const { under, after, limit } = context.req.valid("query");
    return context.json(await wiki.list({ limit, ...(under && { under }), ...(after && { after }) }), 200);
  });

  const search = createRoute({
    method: "get",
    path: "/api/wiki/search",
    summary: "Pages that hold a text, the best first",
    request: {
      query: z.object({
        q: z.string().min(1, "Say what to look for: the query is empty."),
        limit: z.coerce.number().int().min(1).max(200).default(20),
      }),
    },
    responses: answers(200, listOf(Hit).extend({ more: z.boolean() })),
  });
  app.openapi(search, async (context) => {
    const { q, limit } = context.req.valid("query");
    return context.json(await wiki.search(q, { limit }), 200);
  });

  const links = createRoute({
    method: "get",
    path: "/api/wiki/links",
    summary: "Which pages lead to which, for a map of them",
    responses: answers(200, listOf(Linked)),
  });
  app.openapi(links, async (context) => context.json({ items: await wiki.links() }, 200));

  for (const route of ROUTES_WITH_A_PATH) app.openAPIRegistry.registerPath(route);

  app.get("/api/wiki/pages/*", (context) => context.json(wiki.read(rest(context, "/api/wiki/pages/")), 200));
  app.put("/api/wiki/pages/*", async (context) => {
    const { created, changed, ...page } = wiki.write(rest(context, "/api/wiki/pages/"), await contentOf(context));
    if (changed) edited(context, page);
    return context.json({ ...page, contradictions: await contradictions.check(page.path) }, created ? 201 : 200);
  });
  app.delete("/api/wiki/pages/*", (context) => {
    const page = wiki.delete(rest(context, "/api/wiki/pages/"));
    pageWriters.edited(page.path, "deleted", { channel: channelOf(context), at: new Date().toISOString() });
    return context.json(page, 200);
  });
  app.get("/api/wiki/history/*", (context) => {
    const version = context.req.query("version");
    const path = rest(context, "/api/wiki/history/");
    return context.json(
      version === undefined ? { items: wiki.history(path) } : { content: wiki.readVersion(path, version) },
      200,
    );
  });

  const restore = createRoute({
    method: "post",
    path: "/api/wiki/restore",
    summary: "Brings back an earlier version of a page",
    request: { body: body(z.strictObject({ path: z.string().min(1), version: z.string().min(1) })) },
    responses: answers(200, PageInfo),
  });
  app.openapi(restore, async (context) => {
    const { path, version } = context.req.valid("json");
    const { changed, ...page } = wiki.restore(path, version);
    if (changed) edited(context, page);
    await contradictions.check(page.path);
    return context.json(PageInfo.parse(page), 200);
  });

  const sources = createRoute({
    method: "get",
    path: "/api/wiki/sources",
    summary: "All sources",
    responses: answers(200, listOf(SourceInfo)),
  });
  app.openapi(sources, (context) => context.json({ items: wiki.sources.list() }, 200));
  app.get("/api/wiki/sources/*", (context) => context.json(wiki.sources.read(rest(context, "/api/wiki/sources/")), 200));
  app.put("/api/wiki/sources/*", async (context) =>
    context.json(wiki.sources.write(rest(context, "/api/wiki/sources/"), await contentOf(context)), 200),
  );
}

/** The address after a prefix, decoded once. */
function rest(context: Context, prefix: string): string {
  const encoded = new URL(context.req.url).pathname.slice(prefix.length);
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new HttpError(400, "The address is not well encoded.");
  }
}

async function contentOf(context: Context): Promise<string> {
  const type = context.req.header("content-type") ?? "";
  const text = await context.req.text();
  if (text.includes("\0")) throw new HttpError(400, "The body holds a NUL character.");
  if (/^text\/(?:markdown|plain)/i.test(type)) return text;
  const read = await readJsonInput(text);
  if ("trouble" in read) throw new HttpError(400, `The body must be {"content": "…"} or text/markdown: it ${read.trouble}.`);
  const parsed = Content.safeParse(read.value);
  if (!parsed.success)
    throw new HttpError(400, `The body must be {"content": "…"} or text/markdown: ${explainIssues(parsed.error)}`);
  return parsed.data.content;
}
