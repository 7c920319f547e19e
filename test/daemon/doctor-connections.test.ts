import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findClients, findMcpServers, findTokens } from "../../src/daemon/connection-findings.ts";
import { loadConfig } from "../../src/home/config.ts";
import { pathsOf } from "../../src/home/paths.ts";
import { exec } from "../../src/process/exec.ts";
import type { Finding } from "../../src/protocol/doctor.ts";
import type { McpServer } from "../../src/protocol/mcp.ts";
import type { MadeClientToken } from "../../src/protocol/tokens.ts";
import { IO, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { isIn, odd } from "../support/mcp/servers.ts";
import { projectOf } from "../support/project.ts";

/** A name that a project's file may contain and that a person may paste into a shell. */
const TRAP = "it's $(touch /tmp/x); `id`";

const withCheck = (all: readonly Finding[], check: string) => all.filter((each) => each.check === check);

test("io doctor tells of MCP servers that are not there or changed, and of tokens that were used at another route", async () => {
  const mcpServers = { fine: odd("plain"), gone: { command: "/nowhere/server" } };
  const home = temporaryHome({ mcpServers });
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  await isIn(daemon, "fine", "ready");
  await isIn(daemon, "gone", "failed");
  const project = projectOf({ ".mcp.json": JSON.stringify({ mcpServers: { theirs: odd("plain") } }) });
  await daemon.json("PATCH", "/api/conversations/work", { folder: project });
  await runIo(["mcp", "enable", "theirs", "--project", project, "--yes"], home);
  writeFileSync(
    join(project, ".mcp.json"),
    JSON.stringify({ mcpServers: { theirs: odd("plain", "other"), [TRAP]: odd("plain") } }),
  );
  const { token } = await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "editor", for: ["mcp"] });
  const used = await fetch(`${daemon.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  expect(used.status).toBe(403);

  const { items } = await daemon.json<{ items: Finding[] }>("GET", "/api/doctor");
  expect(withCheck(items, "mcp")).toEqual([
    { check: "mcp", state: "ok", found: "1 server there" },
    expect.objectContaining({
      state: "warning",
      found: expect.stringContaining("gone"),
      remedy: "Look with: io mcp test gone",
    }),
    expect.objectContaining({ state: "warning", found: expect.stringContaining("changed since you switched it on") }),
  ]);
  expect(withCheck(items, "tokens")).toEqual([
    expect.objectContaining({ state: "warning", found: "the token editor opens /mcp, and was used at /v1/models" }),
  ]);
  const listed = await daemon.json<{ items: McpServer[] }>("GET", `/api/mcp?project=${encodeURIComponent(project)}`);
  const trap = listed.items.find(({ name }) => name === TRAP);
  const [command = ""] = /io mcp enable .*(?= shows it$)/.exec(trap?.detail ?? "") ?? [];
  const read = await exec("/bin/sh", ["-c", `io() { printf '%s\\n' "$@"; }; ${command}`], { deadlineMs: 10_000 });
  expect(read.output.trim().split("\n")).toEqual(["mcp", "enable", TRAP, "--project", project]);
  const asked = await runIo(["doctor"], home, { IO_ENGINE: "rehearsal" });
  expect(asked.stdout).toContain("Look with: io mcp test gone");
  expect(asked.stdout).not.toContain(token);
});

test("what is never used, and programs that start an IO which has gone, are named; without any of it nothing is said", async () => {
  const home = temporaryHome({});
  const env = { HOME: temporaryFolder(), IO_HOME: home };
  const paths = pathsOf(env);
  const parts = { paths, env, config: loadConfig(paths.config) };
  expect([await findMcpServers(parts), findTokens(parts), findClients(parts)]).toEqual([[], [], []]);
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  await daemon.json("POST", "/api/tokens", { name: "forgotten", for: ["openai"] });
  expect(findTokens(parts)).toEqual([{ check: "tokens", state: "ok", found: "1 token" }]);
  const later = new Date(Date.now() + 8 * 86_400_000);
  expect(findTokens({ ...parts, now: later })).toMatchObject([{ state: "warning", remedy: "io token revoke forgotten" }]);

  const write = (file: string, entry: object) => {
    mkdirSync(join(env.HOME, file, ".."), { recursive: true });
    writeFileSync(join(env.HOME, file), `// mine\n${JSON.stringify(entry)}`);
  };
  write(".config/zed/settings.json", {
    agent_servers: { IO: { command: process.execPath, args: [IO, "acp"], env: { IO_HOME: home } } },
  });
  write(".cursor/mcp.json", {
    mcpServers: { io: { command: "/old/node", args: ["/old/bin/io.js", "mcp"] }, other: { command: "x" } },
  });
  write(".jetbrains/acp.json", {
    agent_servers: { IO: { command: process.execPath, args: [IO, "acp"], env: { IO_HOME: "/else" } } },
  });
  expect(findClients(parts)).toMatchObject([
    { state: "ok", found: "zed starts IO (io acp)" },
    { state: "warning", found: expect.stringContaining("another data folder") },
    { state: "warning", found: expect.stringContaining("/old/node"), remedy: expect.stringContaining("io connect cursor") },
  ]);
});
