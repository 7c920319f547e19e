import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { McpServerConfig } from "../../src/home/mcp-config.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { configEntries, type Entry, fillIn } from "../../src/mcp/entries.ts";
import { withoutComments } from "../../src/mcp/json-with-comments.ts";
import { toolName } from "../../src/mcp/names.ts";
import { findMismatches, schemaTrouble } from "../../src/mcp/schema.ts";
import { createServer } from "../../src/mcp/server.ts";
import { StdioTransport } from "../../src/mcp/stdio.ts";
import { openStore } from "../../src/store/open.ts";
import { createState } from "../../src/store/state.ts";
import { soon } from "../support/soon.ts";

describe("the name of a tool", () => {
  test.each([
    ["github", "get_issue", "mcp__github__get_issue"],
    ["my server!", "do it", "mcp__my_server__do_it"],
    ["a__b", "c", "mcp__a_b__c"],
    ["a", "b__c", "mcp__a__b__c"],
    ["_a_", "ü", "mcp__a___"],
    ["日本", "x", "mcp__server__x"],
  ])("of %s and %s is %s", (server, tool, name) => {
    expect(toolName(server, tool)).toBe(name);
  });

  test("is never longer than 64 letters, and no two tools share one", () => {
    const long = [toolName("s".repeat(60), `${"t".repeat(80)}1`), toolName("s".repeat(60), `${"t".repeat(80)}2`)];
    for (const name of long) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{59}$/);
    expect(long[0]).not.toBe(long[1]);
    const taken = toolName("a", "b c", (name) => name === "mcp__a__b_c");
    expect(taken).toMatch(/^mcp__a__b_c_[0-9a-f]{8}$/);
  });
});

describe("arguments against a server's schema", () => {
  const object = (properties: Record<string, unknown>, more = {}) => ({ type: "object", properties, ...more });
  test.each([
    [object({ a: { type: "string" } }), {}, []],
    [object({ a: { type: "string" } }), { b: 1 }, []],
    [object({ a: { type: ["string", "null"] } }), { a: null }, []],
    [object({ a: { enum: ["x", { y: 1 }] } }), { a: { y: 1 } }, []],
    [object({ a: { enum: ["x"] } }), { a: "z" }, ['a: found "z"; allowed: one of "x".']],
    [object({ a: { type: "array", items: { type: "integer" } } }), { a: [1, 2.5] }, ["a[1]: found number; allowed: integer."]],
    [object({ a: { anyOf: [{ type: "string" }, { type: "number" }] } }), { a: true }, ["a: fits none of the allowed forms."]],
    [object({ a: { $ref: "#/$defs/p" } }, { $defs: { p: object({}, { required: ["x"] }) } }), { a: {} }, ["a.x: is missing."]],
    [object({}, { additionalProperties: { type: "string" } }), { a: 1 }, ["a: found integer; allowed: string."]],
    [object({ a: { minLength: 2, maxLength: 3 } }), { a: "x" }, ["a: is too short; allowed: at least 2."]],
    [object({ a: { if: { type: "string" }, else: false, pattern: "(" } }), { a: "x" }, []],
  ])("%o with %o", (schema, args, found) => {
    expect(findMismatches(schema, args)).toEqual(found);
  });

  test("a schema that refers to itself in many ways ends, however deep the arguments are", () => {
    const many = Array.from({ length: 40 }, () => ({ $ref: "#/$defs/a" }));
    const schema = object(
      { a: { $ref: "#/$defs/a" } },
      { $defs: { a: { allOf: many, anyOf: many, items: { $ref: "#/$defs/a" } } } },
    );
    const started = process.cpuUsage();
    expect(findMismatches(schema, { a: Array.from({ length: 5_000 }, () => [1]) })).toEqual([]);
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(soon(2_000));
  });

  test("what is no object, or too large, is not offered", () => {
    expect(schemaTrouble(undefined)).toBe("has no input schema");
    expect(schemaTrouble({ type: "array" })).toBe("takes something other than an object");
    expect(schemaTrouble({ type: "object", description: "x".repeat(30_000) })).toBe("has a schema that is too long");
    const wide = { type: "object", properties: Object.fromEntries(Array.from({ length: 1_999 }, (_, at) => [at, 0])) };
    expect(schemaTrouble(wide)).toBe("has a schema that has more than 2,000 entries");
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 24; level += 1) deep = { not: deep };
    expect(schemaTrouble({ type: "object", ...deep })).toBe("has a schema that is nested more than 24 levels deep");
  });
});

describe("what is filled in", () => {
  const entry = (config: Partial<McpServerConfig>, project: string | null = "/p"): Entry => ({
    ...{ key: "k", name: "n", from: "config", project, hash: "h", config: McpServerConfig.parse(config) },
  });
  const env = { TOKEN: "t", EMPTY: "" };
  const variable = (name: string) => `\${${name}}`;

  test.each([
    [variable("TOKEN"), "t"],
    [variable("env:TOKEN"), "t"],
    [variable("NONE:-other"), "other"],
    [variable("EMPTY:-other"), "other"],
    [`a${variable("workspaceFolder")}b`, "a/pb"],
    ["$TOKEN", "$TOKEN"],
  ])("%s becomes %s", (written, filled) => {
    expect(fillIn(entry({ command: "x", args: [written] }), env).args).toEqual([filled]);
  });

  test.each([
    [variable("NONE"), "The variable NONE is not set"],
    [variable("input:key"), "input:key"],
  ])("%s is refused by name", (written, told) => {
    expect(() => fillIn(entry({ command: "x", env: { A: written } }), env)).toThrow(told);
  });

  test("the folder of a project stands for nothing where there is none", () => {
    expect(() => fillIn(entry({ command: "x", args: [variable("workspaceFolder")] }, null), env)).toThrow("has none");
  });
});

test("comments and last commas go, and what stands in strings stays", () => {
  const written = '{ // a "comment"\n "a": "// \\" no, /* no */ ,}", /* yes */ "b": [1, 2, ],\n "c": { "d": 1, }, // the end\n}';
  expect(JSON.parse(withoutComments(written))).toEqual({ a: '// " no, /* no */ ,}', b: [1, 2], c: { d: 1 } });
});

test("what a program says right before it ends is heard, also where another program ended just before", async () => {
  const pause = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const script = `read line; sleep 1; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; echo "out of memory" >&2; exit 3`;
  const transport = new StdioTransport({ argv: ["/bin/sh", "-c", script], cwd: "/", env: { PATH: process.env.PATH } });
  const heard: unknown[] = [];
  transport.onmessage = (message) => heard.push(message);
  const closed = new Promise<void>((done) => {
    transport.onclose = done;
  });
  await transport.start();
  await transport.send({ jsonrpc: "2.0", id: 1, method: "ping" });
  // Node learns of the ends of all programs at once, after it has read what the first of them wrote: the second one's words
  // come while that is handled, so that its end is told before them.
  const other = spawn("/bin/echo", ["x"]);
  other.stdout.once("data", () => pause(1_500));
  pause(400);
  await closed;
  expect(heard).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  expect([transport.ending, transport.lastErrors()]).toEqual(["it ended with the exit code 3", "out of memory"]);
});

test("a server of the newest protocol that is slow to start is not taken for an old one for good", async () => {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const slow = join(packageRoot, "test", "support", "mcp", "slow-server.mjs");
  const [entry] = configEntries({ slow: McpServerConfig.parse({ command: process.execPath, args: [slow, "3500"] }) });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const server = createServer({
    ...{ entry: entry!, version: "1", log, state: createState(store), clean: (text: string) => text },
    openTransport: async ({ config }) => {
      const { PATH } = process.env;
      return () => new StdioTransport({ argv: [config!.command!, ...config!.args], cwd: "/", env: { PATH } });
    },
  });
  onTestFinished(() => server.close());
  await server.start();
  expect(server.status()).toMatchObject({ state: "ready", protocol: "2026-07-28" });
  expect(server.offered().map(({ name }) => name)).toEqual(["wake"]);
});
