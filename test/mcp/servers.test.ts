import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { approvalsOf, asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { isIn, odd, published, serverOf, serverProcesses, serversOf } from "../support/mcp/servers.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, modelCalls, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const TOKEN = "tk-9f8e7d6c5b4a3210-servers";
let daemon: TestDaemon;
let model: ModelServer;
let folder: string;
const noted = (name: string) => {
  const file = join(folder, name);
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
};
const starts = (name: string) => noted(name).filter((line) => line.startsWith("started")).length;

beforeAll(async () => {
  folder = temporaryFolder(atTheEnd);
  model = await scriptedModel(obedient, undefined, atTheEnd);
  writeFileSync(join(folder, "notes.txt"), "a quokka lives here");
  const mcpServers = {
    everything: { ...published("everything"), read: ["echo", "get-sum"] },
    files: { ...published("filesystem", folder), read: ["read_text_file"] },
    "my memory!": { ...published("memory"), env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") } },
    odd: { ...odd("plain", join(folder, "odd.log")), env: { SERVER_TOKEN: TOKEN, TZ: "UTC" } },
    off: { ...odd("plain"), disabled: true },
  };
  const home = temporaryHome({ mode: "auto", mcpServers }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  for (const name of ["everything", "files", "my memory!", "odd"]) await isIn(daemon, name, "ready");
});

const calls = (tool: string, args: unknown) => modelCalls(daemon, model, tool, args);
const begin = async (tool: string, args: unknown, conversation: string): Promise<string> => {
  const text = callText(tool, args);
  return (await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation })).id;
};
/** Makes a call that a person then allows. */
async function allowed(tool: string, args: unknown, conversation: string): Promise<string> {
  const id = await begin(tool, args, conversation);
  const [approval] = await asked(daemon);
  expect(approval).toMatchObject({ tool, owner: { kind: "message", id } });
  await decide(daemon, approval!.id, { decision: "allow" });
  return (await finishedMessage(daemon, id)).reply ?? "";
}

describe("published servers", () => {
  test("are listed with their state, their transport, their protocol and the names of their tools", async () => {
    const items = await serversOf(daemon);
    expect(items.map(({ name, state }) => [name, state])).toEqual([
      ["everything", "ready"],
      ["files", "ready"],
      ["my memory!", "ready"],
      ["odd", "ready"],
      ["off", "off"],
    ]);
    const [everything, files, memory] = items;
    expect(everything).toMatchObject({ from: "config", project: null, transport: "stdio", detail: null });
    expect(everything?.protocol).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(everything?.tools).toContain("mcp__everything__echo");
    expect(files?.tools).toContain("mcp__files__write_file");
    expect(memory?.tools).toContain("mcp__my_memory__create_entities");
  });

  test("a tool that the user lists as a read is called without a question, and its answer stands between data marks", async () => {
    const { read, message, request } = await calls("mcp__everything__echo", { message: "hello" });
    expect(unmarked(read)).toBe("Echo: hello");
    expect(read).not.toBe("Echo: hello");
    expect(journalOf(daemon.home, message.id)).toEqual([{ tool: "mcp__everything__echo", state: "done" }]);
    const offered = request.tools?.find((tool) => tool.function.name === "mcp__everything__echo");
    expect(offered?.function.description).toContain("MCP server everything");
    expect(await approvalsOf(daemon, "waiting")).toEqual([]);
  });

  test("arguments that do not fit the server's schema never reach it, and the model is told what fits", async () => {
    const { read, message } = await calls("mcp__everything__get-sum", { a: "one" });
    expect(read).toContain("a: found string; allowed: number");
    expect(read).toContain("b: is missing");
    expect(journalOf(daemon.home, message.id)).toEqual([{ tool: "mcp__everything__get-sum", state: "refused" }]);
  });

  test("everything else is an effect: a person is asked, whatever the server says of itself, and a denial keeps it undone", async () => {
    // This server claims that it only reads.
    expect(await allowed("mcp__odd__write", { text: "hinted" }, "hints")).toContain("wrote hinted");
    const target = join(folder, "new.txt");
    expect(await allowed("mcp__files__write_file", { path: target, content: "by a server" }, "files")).toContain("Successfully");
    expect(readFileSync(target, "utf8")).toBe("by a server");
    const id = await begin("mcp__files__write_file", { path: target, content: "denied" }, "files");
    const [approval] = await asked(daemon);
    expect(approval?.rule).toContain("the MCP server files works outside the sandbox");
    await decide(daemon, approval!.id, { decision: "deny", note: "leave it" });
    expect((await finishedMessage(daemon, id)).reply).toContain("leave it");
    expect(readFileSync(target, "utf8")).toBe("by a server");
  });

  test("a server that remembers does so through the gate", async () => {
    const entities = [{ name: "Quokka", entityType: "animal", observations: ["smiles"] }];
    expect(await allowed("mcp__my_memory__create_entities", { entities }, "memory")).toContain("Quokka");
    expect(readFileSync(join(folder, "memory.jsonl"), "utf8")).toContain("smiles");
  });
});

test("in the mode plan only what the user lists as a read is offered", async () => {
  await daemon.json("PATCH", "/api/conversations/planned", { mode: "plan" });
  await daemon.ask({ text: "hello", conversation: "planned" });
  const names = model.requests
    .at(-1)
    ?.tools?.map((tool) => tool.function.name)
    .filter((name) => name.startsWith("mcp__"));
  expect(names?.sort()).toEqual(["mcp__everything__echo", "mcp__everything__get-sum", "mcp__files__read_text_file"]);
});

test("a rule with a star in the tool's name answers for a whole server, and for no other", async () => {
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  const rules = [{ tool: "mcp__odd__*", match: "*", then: "allow" }];
  await daemon.json("PATCH", "/api/config", { approvalRules: rules });
  const { read } = await calls("mcp__odd__write", { text: "by a rule" });
  expect(unmarked(read)).toBe("wrote by a rule");
  const id = await begin("mcp__everything__get-env", {}, "ruled");
  expect(await asked(daemon)).toHaveLength(1);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await until("the question to go", async () => (await approvalsOf(daemon, "waiting")).length === 0);
});

describe("a server of one's own", () => {
  test("is given PATH, HOME, LANG and what its entry says, and no more", async () => {
    const { read } = await calls("mcp__odd__write", { text: "environment" });
    const names = (JSON.parse(unmarked(read)) as string[]).filter((name) => !["PWD", "SHLVL", "_"].includes(name));
    expect(names.filter((name) => name !== "LANG")).toEqual(["HOME", "IO_MCP", "PATH", "SERVER_TOKEN", "TZ"]);
  });

  test("its secrets reach no model, no log, no event and no route, though it tells them itself", async () => {
    const { read, request } = await calls("mcp__odd__write", { text: "secret" });
    expect(unmarked(read)).toBe("my token is [secret]");
    expect(JSON.stringify(request)).not.toContain(TOKEN);
    const told = await Promise.all(
      ["/api/mcp", "/api/mcp/odd", "/api/config", "/api/config/file"].map(async (path) => (await daemon.fetch(path)).text()),
    );
    expect(told.filter((text) => text.includes(TOKEN))).toEqual([]);
    expect(told[1]).toContain("SERVER_TOKEN");
    expect(daemon.output() + readFileSync(join(daemon.home, "logs", "io.log"), "utf8")).not.toContain(TOKEN);
    const file = JSON.parse(told[3]!) as { written: { mcpServers: Record<string, { env: unknown }> } };
    expect(file.written.mcpServers.odd?.env).toEqual({ set: true });
    // A secret that is shown only as "set" is kept when the config is written back.
    await daemon.json("PATCH", "/api/config", { mcpServers: file.written.mcpServers });
    expect(readFileSync(join(daemon.home, "config.json"), "utf8")).toContain(TOKEN);
  });

  test("its failure is told as its own words, and its odd letters play no tricks", async () => {
    expect((await calls("mcp__odd__write", { text: "fail" })).read).toContain("says that it failed");
    const { read } = await calls("mcp__odd__write", { text: "escape" });
    for (const letter of ["\u001b", "\u202e"]) expect(read).not.toContain(letter);
    expect(read).toContain("red");
  });

  test("a call is cancelled with its message, and the server is told", async () => {
    const id = await begin("mcp__odd__write", { text: "never" }, "cancelled");
    await until("the call", () => noted("odd.log").some((line) => line.includes("never")));
    await daemon.json("POST", `/api/messages/${id}/cancel`);
    expect((await finishedMessage(daemon, id)).status).toBe("cancelled");
    await until("the cancel", () => noted("odd.log").some((line) => line.startsWith("cancelled")));
    expect(journalOf(daemon.home, id)).toEqual([{ tool: "mcp__odd__write", state: "unknown" }]);
    expect(unmarked((await calls("mcp__odd__write", { text: "again" })).read)).toBe("wrote again");
  });

  test("one that is killed in a call is told as a sentence, and is there again when it is next called", async () => {
    const before = starts("odd.log");
    const { read, message } = await calls("mcp__odd__write", { text: "die" });
    expect(read).toContain("The MCP server odd ended while it worked");
    expect(read).toContain("Whether the call had an effect is not known");
    expect(journalOf(daemon.home, message.id)).toEqual([{ tool: "mcp__odd__write", state: "unknown" }]);
    expect((await serverOf(daemon, "odd")).state).toBe("failed");
    expect(unmarked((await calls("mcp__odd__write", { text: "back" })).read)).toBe("wrote back");
    expect(starts("odd.log")).toBe(before + 1);
  });
});

describe("io mcp", () => {
  const io = async (...args: string[]) => runIo(["mcp", ...args], daemon.home);

  test("lists, adds, tests, switches off and on, and removes a server", async () => {
    expect((await io("list")).stdout).toMatch(/^everything {2}stdio {2}ready, \d+ tools/m);
    const { command, args } = odd("noise");
    const added = await io("add", "noisy", "--env", "A_KEY=abcdefgh12345678", "--", command, ...args);
    expect(added.stdout).toContain("noisy  stdio  ready, 1 tool");
    expect(JSON.parse(readFileSync(join(daemon.home, "config.json"), "utf8")).mcpServers.noisy).toEqual({
      ...{ command, args, env: { A_KEY: "abcdefgh12345678" } },
    });
    expect((await io("add", "noisy", "--", command)).code).not.toBe(0);
    expect((await io("disable", "noisy")).stdout).toContain("noisy is off");
    expect((await serverOf(daemon, "noisy")).state).toBe("off");
    expect((await io("enable", "noisy", "--yes")).stdout).toContain("ready");
    expect(JSON.parse((await io("test", "noisy", "--json")).stdout)).toMatchObject({
      state: "ready",
      tools: ["mcp__noisy__write"],
    });
    expect((await io("remove", "noisy", "--yes")).stdout).toContain("Removed noisy");
    expect((await serversOf(daemon)).map(({ name }) => name)).not.toContain("noisy");
    const missing = await io("test", "noisy");
    expect(missing.stderr).toContain('config.json names no MCP server "noisy"');
  });

  test("a server that cannot be started says why, without its secrets, and the command fails", async () => {
    const { command, args } = odd("ends");
    const added = await io("add", "broken", "--env", `SERVER_TOKEN=${TOKEN}`, "--", command, ...args);
    expect(added.code).toBe(1);
    expect(added.stdout).toContain("exit code 3");
    expect(added.stdout).toContain("cannot go on: bad key [secret]");
    const nothing = await io("add", "nothing", "--", join(folder, "no-such-program"));
    expect(nothing.stdout).toContain("failed");
    await io("remove", "broken", "--yes");
    await io("remove", "nothing", "--yes");
  });
});

test("io stop leaves no server behind, not even one that does not want to end", async () => {
  await daemon.json("POST", "/api/mcp", { name: "stubborn", ...odd("stubborn", join(folder, "stubborn.log")) });
  await isIn(daemon, "stubborn", "ready");
  expect(serverProcesses(daemon.home).length).toBeGreaterThan(4);
  await daemon.kill("SIGTERM");
  expect(serverProcesses(daemon.home)).toEqual([]);
});
