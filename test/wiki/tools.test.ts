import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ToolError } from "../../src/tools/tool.ts";
import type { Wiki } from "../../src/wiki/wiki.ts";
import { unmarked } from "../support/data.ts";
import { makeWiki, toolsOf } from "../support/wiki.ts";

function caller(wiki: Wiki) {
  const tools = new Map(toolsOf(wiki).map((tool) => [tool.name, tool]));
  return async (name: string, args: Record<string, unknown>) => {
    const tool = tools.get(name)!;
    const context = { cwd: "/", actor: "orchestrator", owner: "message:1", signal: new AbortController().signal };
    return tool.run(tool.schema.parse(args), context);
  };
}

test("the model writes, reads, finds, lists and deletes pages, each with its own tool", async () => {
  const { wiki } = makeWiki();
  const call = caller(wiki);
  expect(await call("wiki_list", {})).toBe("The wiki has no pages yet.");
  expect(await call("wiki_write", { path: "preferences/editor", content: "# Editor\nUses Helix." })).toBe(
    'Created pages/preferences/editor.md ("Editor", 20 bytes).',
  );
  expect(unmarked(await call("wiki_read", { path: "preferences/editor" }))).toBe("# Editor\nUses Helix.");
  expect(unmarked(await call("wiki_search", { query: "HELIX" }))).toBe(
    "pages/preferences/editor.md – Editor\n  # Editor Uses Helix.",
  );
  expect(await call("wiki_search", { query: "helix editor" })).toContain("(only the words, not the phrase)");
  expect(await call("wiki_search", { query: "emacs" })).toContain('No page holds "emacs"');
  expect(unmarked(await call("wiki_list", {}))).toBe("1 page:\npages/preferences/editor.md – Editor");
  expect(await call("wiki_delete", { path: "preferences/editor" })).toContain("Deleted pages/preferences/editor.md");
});

test("the schema refuses wrong arguments, and a failure is a sentence the model can act on", async () => {
  const { wiki } = makeWiki();
  const call = caller(wiki);
  await expect(call("wiki_write", { path: "a" })).rejects.toThrow(/content/);
  await expect(call("wiki_search", { query: "x", limit: 0 })).rejects.toThrow(/limit/);
  await expect(call("wiki_read", { path: "a", mode: "raw" })).rejects.toThrow(/mode/);
  for (const [name, args] of [
    ["wiki_read", { path: "general/absent" }],
    ["wiki_delete", { path: "general/absent" }],
    ["wiki_write", { path: "../../token", content: "x" }],
  ] as const) {
    await expect(call(name, args)).rejects.toBeInstanceOf(ToolError);
  }
  await expect(call("wiki_read", { path: "general/absent" })).rejects.toThrow("There is no page pages/general/absent.md.");
});

test("a list of very many pages is truncated and states the total", async () => {
  const { wiki } = makeWiki((root) => {
    mkdirSync(join(root, "pages/general"), { recursive: true });
    for (let at = 0; at < 1_500; at += 1) writeFileSync(join(root, `pages/general/p${at}.md`), `# Page ${at}`);
  });
  for (const settled of [false, true]) {
    if (settled) await wiki.settled();
    const text = await caller(wiki)("wiki_list", {});
    expect(text).toMatch(/^1500 pages:\n/);
    expect(text).toMatch(/… and 1300 more; use wiki_search\.$/);
    expect(unmarked(text).split("\n")).toHaveLength(202);
    const paths: string[] = [];
    for (let after = ""; ; ) {
      const { items, next } = await wiki.list({ limit: 400, after });
      paths.push(...items.map((item) => item.path));
      if (next === undefined) break;
      after = next;
    }
    expect(new Set(paths).size).toBe(1_500);
  }
});
