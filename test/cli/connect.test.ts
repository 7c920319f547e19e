import { spawn } from "node:child_process";
import { isAbsolute, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { CLIENTS } from "../../src/home/clients.ts";
import { cleanEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";

test("a data folder that was named from here is pasted as a whole path, because editors start IO elsewhere", () => {
  for (const name of ["zed", "neovim", "claude-code", "vscode"] as const) {
    const { text } = CLIENTS[name].snippet({ env: { IO_HOME: "some/home" }, url: "", token: "" });
    expect(text, name).toContain(resolve("some/home"));
  }
});

interface Start {
  command: string;
  args: string[];
  env: Record<string, string>;
}

test("what io connect prints starts IO for editors and MCP clients, without a PATH, and opens /v1 for Open WebUI", async () => {
  const home = temporaryHome({});
  await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  const printed = async (name: string) => {
    const { code, stdout, stderr } = await runIo(["connect", name], home);
    expect([code, stderr]).toEqual([0, expect.stringContaining("Paste this into")]);
    return stdout;
  };
  const entry = async (name: string, path: string[]): Promise<Start> =>
    path.reduce((value: unknown, key) => (value as Record<string, unknown>)[key], JSON.parse(await printed(name))) as Start;
  const bare = ({ env }: Start) => {
    const { PATH: _path, IO_HOME: _home, ...rest } = cleanEnvironment(home) as Record<string, string>;
    return { ...rest, ...env };
  };

  const zed = await entry("zed", ["agent_servers", "IO"]);
  expect(await entry("jetbrains", ["agent_servers", "IO"])).toEqual({ command: zed.command, args: zed.args, env: zed.env });
  expect([zed.command, zed.args[0]].every((path) => isAbsolute(path!))).toBe(true);
  const child = spawn(zed.command, zed.args, { env: bare(zed), stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done) => child.once("close", done));
  const connection = client({ name: "tests" }).connect(
    ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>),
  );
  onTestFinished(() => connection.close());
  const hello = await connection.agent.request(methods.agent.initialize, { protocolVersion: 1 });
  expect(hello.agentInfo?.name).toBe("io");
  child.stdin.end();
  expect(await ended).toBe(0);
  expect(await printed("neovim")).toContain(`command = ${JSON.stringify(zed.command)}`);

  const desktop = await entry("claude-desktop", ["mcpServers", "io"]);
  expect(await entry("cursor", ["mcpServers", "io"])).toEqual(desktop);
  expect(await entry("vscode", ["servers", "io"])).toEqual({ type: "stdio", ...desktop });
  const mcp = new Client({ name: "tests", version: "1" });
  await mcp.connect(new StdioClientTransport({ ...desktop, env: bare(desktop) }));
  expect((await mcp.listTools()).tools.map(({ name }) => name)).toContain("io_ask");
  await mcp.close();
  expect(await printed("claude-code")).toMatch(/^claude mcp add io --env IO_HOME=\S+ -- \S+ \S+ mcp\n$/);

  const webui = await printed("open-webui");
  const [, baseURL, apiKey] = /^URL: (\S+)\nKey: (\S+)\n/.exec(webui) ?? [];
  const models = await new OpenAI({ baseURL: baseURL!, apiKey: apiKey! }).models.list();
  expect(models.data.map(({ id }) => id)).toContain("io");
  expect((await fetch(baseURL!.replace("/v1", "/api/status"), { headers: { authorization: `Bearer ${apiKey}` } })).status).toBe(
    403,
  );
  expect(await runIo(["connect", "emacs"], home)).toMatchObject({ code: 2 });
});
