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

test("a task that waits for a person says so in the list as it does alone, also where its squad's budget holds it up", async () => {
  const task = (id: string, more: object) => ({
    ...{ id, squad: "s", agent: "a", description: "d", status: "running", result: null, error: null, finishedAt: null },
    ...more,
  });
  const tasks = [
    task("t_asks", { waitsFor: { kind: "approval", approvals: ["aaaaa"] } }),
    task("t_budget", { waitsFor: { kind: "budget", approvals: ["bbbbb"] } }),
    task("t_works", {}),
    task("t_ended", { status: "done", result: "made", finishedAt: "2026-01-01T00:00:00.000Z" }),
  ];
  const approvals = ["aaaaa", "bbbbb"].map((id) => ({ id, summary: `may ${id}`, owner: { kind: "task", id: "t_asks" } }));
  const client = await clientOf(async <T>(_method: string, address: string): Promise<T> => {
    const { pathname, searchParams } = new URL(address, "http://io");
    const state = searchParams.get("status");
    if (pathname === "/api/approvals") return { items: approvals } as T;
    if (pathname === "/api/tasks") return { items: tasks.filter(({ status }) => !state || status === state) } as T;
    return tasks.find(({ id }) => pathname.endsWith(id)) as T;
  });
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: args })).structuredContent as Record<string, unknown>;
  const listed = async (status?: string) =>
    ((await call("io_tasks", status ? { status } : {})).items as Record<string, unknown>[]).map(({ task: id }) => id);
  const { items } = (await call("io_tasks")) as { items: Record<string, unknown>[] };
  expect(items.map(({ status }) => status)).toEqual(["waiting", "waiting", "running", "done"]);
  expect(items[1]).toMatchObject({
    approvals: [{ id: "bbbbb", summary: "may bbbbb", command: "io approval allow bbbbb" }],
  });
  for (const item of items.filter(({ status }) => status !== "running"))
    expect(await call("io_task", { task: item.task })).toEqual(item);
  expect([await listed("waiting"), await listed("running")]).toEqual([["t_asks", "t_budget"], ["t_works"]]);
});
