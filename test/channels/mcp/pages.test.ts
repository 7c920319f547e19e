import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import type { IoAccess } from "../../../src/channels/mcp/access.ts";
import { createMcpServer } from "../../../src/channels/mcp/server.ts";

const pathOf = (index: number) => `pages/p${String(index).padStart(5, "0")}.md`;

/** A wiki with this many pages, as the API lists them. */
function wikiOf(count: number): IoAccess["request"] {
  const paths = Array.from({ length: count }, (_, index) => pathOf(index));
  return async <T>(_method: string, address: string): Promise<T> => {
    const query = new URL(address, "http://io").searchParams;
    const left = paths.filter((path) => path > (query.get("after") ?? ""));
    const items = left.slice(0, Number(query.get("limit"))).map((path) => ({ path, title: path }));
    return { items, total: count, ...(left.length > items.length && { next: items.at(-1)!.path }) } as T;
  };
}

async function clientOf(request: IoAccess["request"]): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  await createMcpServer({ request, isClosing: () => false }, "1").connect(there);
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(here);
  onTestFinished(() => client.close());
  return client;
}

test("every page of a large wiki is listed, a thousand at a time, and a cursor that nobody gave out is refused", async () => {
  const client = await clientOf(wikiOf(2_500));
  const ask = (cursor?: string) => client.request({ method: "resources/list", params: cursor === undefined ? {} : { cursor } });
  const sizes: number[] = [];
  const names = new Set<string>();
  let next: string | undefined;
  do {
    const page = await ask(next);
    sizes.push(page.resources.length);
    for (const { name } of page.resources) names.add(name);
    next = page.nextCursor;
  } while (next !== undefined);
  expect(sizes).toEqual([1_000, 1_000, 500]);
  expect(names.size).toBe(2_500);
  await expect(ask("zzz")).rejects.toMatchObject({ code: -32602 });
});
