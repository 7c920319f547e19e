import { expect, test } from "vitest";
import { providerEnvironment, startDaemonProcess } from "../../support/daemon.ts";
import { temporaryHome } from "../../support/home.ts";
import { scriptedModel } from "../../support/model.ts";

interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}
type Content = Record<string, { schema: Schema }>;
interface Operation {
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Content };
  responses: Record<string, { content: Content }>;
}
interface Api {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}
interface Asked {
  query?: Record<string, string>;
  body?: { type: "application/json" | "text/markdown"; text: string };
}

/** Where an answer differs from what openapi.json promises: undescribed and missing fields. */
function broken(api: Api, schema: Schema, value: unknown, at = "answer"): string[] {
  if (schema.$ref) return broken(api, api.components.schemas[schema.$ref.split("/").at(-1)!]!, value, at);
  if (schema.anyOf) {
    const all = schema.anyOf.map((one) => broken(api, one, value, at));
    return all.some((one) => one.length === 0) ? [] : all.flat();
  }
  if (value === null && Array.isArray(schema.type) && schema.type.includes("null")) return [];
  if (Array.isArray(schema.type)) return broken(api, { ...schema, type: schema.type.find((one) => one !== "null")! }, value, at);
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${at} is ${value}`];
  if (schema.type === "array")
    return Array.isArray(value) ? value.flatMap((one, n) => broken(api, schema.items!, one, `${at}[${n}]`)) : [`${at}: no list`];
  if (schema.type === "integer") return Number.isInteger(value) ? [] : [`${at} is no whole number`];
  if (schema.type !== "object") return typeof value === schema.type ? [] : [`${at} is no ${schema.type}`];
  if (typeof value !== "object" || value === null) return [`${at} is no object`];
  const { properties = {}, required = [] } = schema;
  return [
    ...required.flatMap((key) => (key in value ? [] : [`${at}.${key} is missing`])),
    ...Object.entries(value).flatMap(([key, one]) =>
      properties[key] ? broken(api, properties[key], one, `${at}.${key}`) : [`${at}.${key} is not promised`],
    ),
  ];
}

test("the wiki's routes take and answer what openapi.json says, each of them", async () => {
  const model = await scriptedModel(() => ({ say: "ok" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const api = await daemon.json<Api>("GET", "/api/openapi.json");
  const tried = new Set<string>();

  async function ask(status: number, method: string, template: string, value = "", { query = {}, body }: Asked = {}) {
    const operation = api.paths[template]?.[method];
    if (!operation) throw new Error(`${method} ${template} is not in the document`);
    tried.add(`${method} ${template}`);
    const address = template.replace(/\{\w+\}/, encodeURIComponent(value));
    const response = await daemon.fetch(`${address}?${new URLSearchParams(query)}`, {
      method: method.toUpperCase(),
      ...(body && { body: body.text, headers: { "content-type": body.type } }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    const parameters = operation.parameters?.flatMap(({ name, in: place }) => (place === "query" ? [name] : [])) ?? [];
    const promised = operation.responses[response.status] ?? (response.ok ? undefined : operation.responses["4XX"]);
    const schema = promised?.content["application/json"]?.schema;
    expect({
      asked: `${method} ${template}`,
      status: response.status,
      unknown: Object.keys(query).filter((name) => !parameters.includes(name)),
      takes: !body || body.type in (operation.requestBody?.content ?? {}),
      broken: schema ? broken(api, schema, answer) : [`${response.status} is not promised`],
    }).toEqual({ asked: `${method} ${template}`, status, unknown: [], takes: true, broken: [] });
    return answer;
  }
  const json = (content: unknown) => ({ body: { type: "application/json" as const, text: JSON.stringify(content) } });
  const markdown = (text: string) => ({ body: { type: "text/markdown" as const, text } });
  const page = "/api/wiki/pages/{path}";
  const history = "/api/wiki/history/{path}";
  const source = "/api/wiki/sources/{name}";

  await ask(201, "put", page, "projects/boat", json({ content: "# Boat\nTags: sea\none" }));
  await ask(200, "put", page, "projects/boat", markdown("# Boat\nTags: sea\ntwo"));
  await ask(201, "put", page, "projects/raft", markdown("# Raft\n"));
  expect(await ask(200, "get", page, "projects/boat")).toMatchObject({ content: "# Boat\nTags: sea\ntwo", tags: ["sea"] });
  const list = { under: "projects", after: "pages/projects/a.md", limit: "1" };
  expect(await ask(200, "get", "/api/wiki/pages", "", { query: list })).toMatchObject({ total: 2, next: expect.any(String) });
  expect(await ask(200, "get", "/api/wiki/search", "", { query: { q: "TWO", limit: "5" } })).toMatchObject({ items: [{}] });
  const { items } = (await ask(200, "get", history, "projects/boat")) as { items: { version: string }[] };
  const version = items[0]!.version;
  expect(await ask(200, "get", history, "projects/boat", { query: { version } })).toEqual({
    content: "# Boat\nTags: sea\none",
  });
  await ask(200, "delete", page, "projects/boat");
  await ask(200, "post", "/api/wiki/restore", "", json({ path: "projects/boat", version }));
  await ask(200, "put", source, "mail.txt", json({ content: "dear IO" }));
  await ask(200, "put", source, "mail.txt", markdown("dear all"));
  expect(await ask(200, "get", source, "mail.txt")).toMatchObject({ content: "dear all" });
  expect(await ask(200, "get", "/api/wiki/sources")).toMatchObject({ items: [{ name: "mail.txt" }] });
  const since = { since: "2026-01-01T00:00:00.000Z", limit: "5" };
  expect(await ask(200, "get", "/api/wiki/changes", "", { query: { ...since, by: "agent" } })).toEqual({ items: [] });
  const boat = { ...since, by: "person", path: "projects/boat.md" };
  const edit = { path: "pages/projects/boat.md", by: "person", channel: "api", owner: null };
  expect(await ask(200, "get", "/api/wiki/changes", "", { query: boat })).toMatchObject({
    items: [
      { ...edit, change: "written" },
      { ...edit, change: "deleted" },
      { ...edit, change: "written" },
      { ...edit, change: "written" },
    ],
  });
  await ask(200, "put", page, "projects/raft", markdown("# Raft\nsee [it](boat.md)"));
  expect(await ask(200, "get", "/api/wiki/links")).toMatchObject({
    items: [{ links: [] }, { title: "Raft", links: ["pages/projects/boat.md"] }],
  });
  expect(await ask(200, "get", "/api/wiki/contradictions", "", { query: { path: "projects/raft" } })).toEqual({ items: [] });
  expect(await ask(200, "get", "/api/wiki/review")).toEqual({ items: [] });
  await ask(404, "post", "/api/wiki/review", "", json({ path: "projects/boat", verdict: "keep" }));
  await ask(404, "get", page, "nobody");
  await ask(400, "put", page, "../x", markdown("# x"));
  await ask(400, "get", "/api/wiki/search", "", { query: { q: "" } });

  const promised = Object.entries(api.paths).flatMap(([path, methods]) =>
    path.startsWith("/api/wiki/") ? Object.keys(methods).map((method) => `${method} ${path}`) : [],
  );
  expect([...tried].sort()).toEqual(promised.sort());
});
