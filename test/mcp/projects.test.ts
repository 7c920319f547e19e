import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { finishedTask } from "../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { odd, serverOf, serverProcesses, serversOf } from "../support/mcp/servers.ts";
import { scriptedModel } from "../support/model.ts";
import { obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let model: ModelServer;
let project: string;
let log: string;
const started = () =>
  existsSync(log)
    ? readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line.startsWith("started")).length
    : 0;
const write = (servers: Record<string, unknown>) =>
  writeFileSync(join(project, ".mcp.json"), JSON.stringify({ mcpServers: servers }));
const tools = () => ({ ...odd("plain", log), env: { A_NAME: `\${PATH}` } });

beforeAll(async () => {
  model = await scriptedModel(obedient, undefined, atTheEnd);
  project = temporaryFolder(atTheEnd);
  log = join(temporaryFolder(atTheEnd), "project.log");
  mkdirSync(join(project, ".vscode"));
  write({ tools: tools(), shared: odd("plain", log), wrong: { command: "x", url: "https://y" } });
  const { command, args } = odd("plain", log);
  const servers = `"editor": { "type": "stdio", "command": ${JSON.stringify(command)}, "args": ${JSON.stringify(args)}, },`;
  writeFileSync(
    join(project, ".vscode", "mcp.json"),
    `{ // what the editor uses\n "inputs": [], "servers": { ${servers} "asks": { "command": "x", "env": { "K": "\${input:key}" } }, } }`,
  );
  const home = temporaryHome({ mode: "full", mcpServers: { shared: { ...odd("plain"), disabled: true } } }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  await daemon.json("PATCH", "/api/conversations/there", { folder: project });
});

/** The MCP tools that a conversation is offered. */
async function offered(conversation: string): Promise<string[]> {
  await daemon.ask({ text: "hello", conversation });
  const names = model.requests.at(-1)?.tools?.map((tool) => tool.function.name) ?? [];
  return names.filter((name) => name.startsWith("mcp__"));
}
const io = (...args: string[]) => runIo(["mcp", ...args], daemon.home);
const post = (path: string, body: unknown) =>
  daemon.fetch(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });

describe("the servers that a project's files name", () => {
  test("are listed for that project, nothing of them is started, and config.json wins", async () => {
    expect(await offered("there")).toEqual([]);
    const items = await serversOf(daemon, project);
    expect(items.map(({ name, from, state }) => [name, from, state])).toEqual([
      ["shared", "config", "off"],
      ["tools", "project", "untrusted"],
      ["wrong", "project", "failed"],
      ["editor", "vscode", "untrusted"],
      ["asks", "vscode", "untrusted"],
    ]);
    expect(items[2]?.detail).toContain("not both");
    expect(items[1]).toMatchObject({ project, tools: [], detail: expect.stringContaining("io mcp enable tools --project") });
    expect(await serversOf(daemon)).toHaveLength(1);
    expect(started()).toBe(0);
  });

  test("are switched on only as they were shown to a person", async () => {
    const { hash } = await serverOf(daemon, "tools", project);
    expect((await post("/api/mcp/tools/enable", { project })).status).toBe(400);
    expect((await post("/api/mcp/tools/enable", { project, hash: "0".repeat(hash.length) })).status).toBe(409);
    const unasked = await io("enable", "tools", "--project", project);
    expect(unasked.code).toBe(2);
    expect(started()).toBe(0);
    const enabled = await io("enable", "tools", "--project", project, "--yes");
    expect(enabled.stderr).toContain(`runs: ${JSON.stringify(process.execPath)}`);
    expect(enabled.stderr).toContain("odd-server.mjs");
    expect(enabled.stderr).toContain("is given: A_NAME, PATH");
    expect(enabled.stderr).not.toContain(process.env.PATH);
    expect(enabled.stdout).toContain("tools  stdio  ready, 1 tool");
    expect(await offered("there")).toEqual(["mcp__tools__write"]);
    expect(await offered("elsewhere")).toEqual([]);
  });

  test("serve the agents of a squad of that project", async () => {
    await daemon.json("POST", "/api/squads", { slug: "web", name: "Web", projectPath: project, isolation: "none" });
    await daemon.json("POST", "/api/squads/web/agents", { roleTitle: "Engineer", charter: "Writes code.", modelTier: "low" });
    const before = model.requests.length;
    const { id } = await daemon.json<{ id: string }>("POST", "/api/squads/web/tasks", { task: "say hello" });
    await finishedTask(daemon, id);
    const asked = model.requests.slice(before).map((request) => request.tools?.map((tool) => tool.function.name) ?? []);
    expect(asked.some((names) => names.includes("squad_log_decision") && names.includes("mcp__tools__write"))).toBe(true);
  });

  test("are off again, and ended, when what is written for them changes, and are asked about anew", async () => {
    expect(serverProcesses(daemon.home).length).toBeGreaterThan(0);
    write({ tools: { ...tools(), env: { ...tools().env, NODE_OPTIONS: "--require ./evil.js" } } });
    expect(await offered("there")).toEqual([]);
    const changed = await serverOf(daemon, "tools", project);
    expect(changed).toMatchObject({ state: "untrusted", detail: expect.stringContaining("changed since it was switched on") });
    expect(changed.variables).toContain("NODE_OPTIONS");
    await until("the end of the server", () => serverProcesses(daemon.home).length === 0, 30_000);
    write({ tools: tools() });
    expect(await offered("there")).toContain("mcp__tools__write");
    rmSync(join(project, ".mcp.json"));
    expect(await offered("there")).toEqual([]);
    await until("the end of the server", () => serverProcesses(daemon.home).length === 0, 30_000);
  });

  test("are not gone in silence where their file cannot be read", async () => {
    writeFileSync(join(project, ".mcp.json"), '{ "mcpServers": {');
    const { stdout } = await io("list", "--project", project);
    expect(stdout).toContain(".mcp.json is not valid JSON, so its servers are not known");
    expect(stdout).toContain("editor  stdio  untrusted");
    expect((await serversOf(daemon, project)).map(({ name }) => name)).toEqual(["shared", ".mcp.json", "editor", "asks"]);
    rmSync(join(project, ".mcp.json"));
  });

  test("that would have to be asked for something say so, and the person's leave is remembered until it is taken back", async () => {
    const asks = await io("enable", "asks", "--project", project, "--yes");
    expect(asks.code).toBe(1);
    expect(asks.stdout).toContain("input:key");
    expect((await io("enable", "editor", "--project", project, "--yes")).stdout).toContain("ready");
    await daemon.kill("SIGTERM");
    daemon = await startDaemonProcess(daemon.home, providerEnvironment(model.url), atTheEnd);
    expect(await offered("there")).toEqual(["mcp__editor__write"]);
    expect((await io("disable", "editor", "--project", project)).stdout).toContain("editor is off");
    expect(await offered("there")).toEqual([]);
    expect((await serverOf(daemon, "editor", project)).state).toBe("untrusted");
  });
});
