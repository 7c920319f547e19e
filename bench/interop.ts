import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { type ClientConnection, client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import OpenAI from "openai";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { McpServerConfig } from "../src/home/mcp-config.ts";
import { pathsOf } from "../src/home/paths.ts";
import { createLog } from "../src/lib/log.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { configEntries } from "../src/mcp/entries.ts";
import { createServer } from "../src/mcp/server.ts";
import { serverTools } from "../src/mcp/tools.ts";
import { createTransports } from "../src/mcp/transports.ts";
import { openStore } from "../src/store/open.ts";
import { createState } from "../src/store/state.ts";
import { createGate } from "../src/tools/gate.ts";
import { type BenchDaemon, build, describe, end, judge, median, memoryMb, startBenchDaemon, temporaryFolder } from "./support.ts";
import { clock } from "./turn.ts";

const PER_CONVERSATION = 10;
const MOST_TIMES = 1.15;
const MOST_MORE_MS = 5;
const MOST_TIMES_CALL = 1.5;
const PUBLISHED = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

/** A way to have a message answered. */
interface Way {
  name: string;
  /** Begins a conversation. Returns the function that sends a message in it. */
  begin(conversation: string): Promise<(text: string) => Promise<unknown>>;
  /** The process that the client starts, if it starts one. */
  pid?: () => number | null | undefined;
  close(): Promise<unknown>;
}

/** Compares a turn over `/v1`, MCP and ACP with `/api`, and an MCP server's tool with the bare client, and shows memory. */
export async function run(args: string[]): Promise<void> {
  const turns = Number(args[0] ?? 100);
  build();
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"));
  const ways: Way[] = [];
  try {
    for (let turn = 0; turn < 20; turn += 1) await daemon.ask(`warm up ${turn}`, "main");
    for (const open of [overApi, overV1, overMcp, overMcpStdio, overAcp]) ways.push(await told(daemon, open));
    await compareTurns(ways, turns, () => {
      model.requests.length = 0;
      model.bodies.length = 0;
    });
  } finally {
    for (const way of ways) await way.close();
    await daemon.stop();
    await model.close();
  }
  await compareCalls(folder.path, turns);
  folder.remove();
}

/** Opens a way, uses it once, and prints how much memory that took. */
async function told(daemon: BenchDaemon, open: (daemon: BenchDaemon) => Promise<Way>): Promise<Way> {
  const before = memoryMb(daemon.pid);
  const way = await open(daemon);
  await (await way.begin("memory"))("hello");
  const more = memoryMb(daemon.pid) - before;
  const pid = way.pid?.();
  const own = pid ? `, its own process ${memoryMb(pid).toFixed(0)} MB` : "";
  console.log(`${way.name.padEnd(26)} the daemon holds ${more.toFixed(1)} MB more once it is used${own}`);
  return way;
}

/** Uses all ways in turn, so that other load on the machine affects them alike. */
async function compareTurns(ways: readonly Way[], turns: number, forget: () => void): Promise<void> {
  const times = new Map<string, number[]>(ways.map(({ name }) => [name, []]));
  const [first] = ways;
  for (let round = 0; times.get(first!.name)!.length < turns; round += 1) {
    const talks = [];
    for (const { name, begin } of ways) talks.push({ name, say: await begin(`${name.replace(/\W+/g, "-")}-${round}`) });
    for (let turn = 0; turn <= PER_CONVERSATION; turn += 1) {
      talks.push(talks.shift()!);
      for (const { name, say } of talks) {
        const ms = await clock(() => say(`message ${round}.${turn}`));
        // The first turn of a conversation opens its session.
        if (round > 0 && turn > 0) times.get(name)!.push(ms);
      }
      forget();
    }
  }
  for (const [name, values] of times) console.log(describe(name, values));
  const api = median(times.get(first!.name)!);
  for (const { name } of ways.slice(1)) {
    const own = median(times.get(name)!);
    console.log(`${name}: ${(own / api).toFixed(2)} times ${first!.name}`);
    judge(`${name}, beyond ${MOST_TIMES} times ${first!.name}`, own - MOST_TIMES * api, MOST_MORE_MS, " ms");
  }
}

const overApi = async (daemon: BenchDaemon): Promise<Way> => ({
  name: "api",
  begin: async (conversation) => (text) => daemon.ask(text, conversation),
  close: async () => undefined,
});

async function overV1({ url, token }: BenchDaemon): Promise<Way> {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
  return {
    name: "v1",
    begin: async (conversation) => async (text) => {
      const body = { model: "io", messages: [{ role: "user" as const, content: text }] };
      const answer = await openai.chat.completions.create(body, { headers: { "x-io-conversation": conversation } });
      expectNoted(answer.choices[0]?.message.content);
    },
    close: async () => undefined,
  };
}

function overMcp({ url, token }: BenchDaemon): Promise<Way> {
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  return mcpWay("mcp over http", new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
}

async function overMcpStdio(daemon: BenchDaemon): Promise<Way> {
  const transport = new StdioClientTransport({ ...started("mcp"), env: environmentOf(daemon) });
  return { ...(await mcpWay("mcp over stdio", transport)), pid: () => transport.pid };
}

async function mcpWay(name: string, transport: Transport): Promise<Way> {
  const mcp = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await mcp.connect(transport);
  return {
    name,
    begin: async (conversation) => async (text) => {
      const answer = await mcp.callTool({ name: "io_ask", arguments: { text, conversation } });
      expectNoted((answer.structuredContent as { reply?: string } | undefined)?.reply);
    },
    close: () => mcp.close(),
  };
}

async function overAcp(daemon: BenchDaemon): Promise<Way> {
  const { command, args } = started("acp");
  const child: ChildProcess = spawn(command, args, { env: environmentOf(daemon), stdio: ["pipe", "pipe", "ignore"] });
  const heard: string[] = [];
  const connection: ClientConnection = client({ name: "bench" })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") heard.push(update.content.text);
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin!), Readable.toWeb(child.stdout!) as unknown as ReadableStream<Uint8Array>));
  await connection.agent.request(methods.agent.initialize, { protocolVersion: 1 });
  const cwd = join(daemon.home, "..", "project");
  mkdirSync(cwd, { recursive: true });
  return {
    name: "acp",
    begin: async () => {
      const { sessionId } = await connection.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
      return async (text) => {
        heard.length = 0;
        await connection.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
        expectNoted(heard.join(""));
      };
    },
    pid: () => child.pid,
    close: async () => {
      connection.close();
      await end(child);
    },
  };
}

/** Compares a tool call through the gate and its journal with one by the bare client. The server is not sandboxed. */
async function compareCalls(folder: string, calls: number): Promise<void> {
  const paths = pathsOf({ IO_HOME: join(folder, "gate"), HOME: folder });
  mkdirSync(paths.home, { recursive: true });
  const store = openStore(paths.database);
  const log = createLog({ folder: paths.logs, redactor: createRedactor() });
  const env = { PATH: process.env.PATH, HOME: folder };
  const config = McpServerConfig.parse({ command: process.execPath, args: [PUBLISHED], read: ["get-sum"] });
  const [entry] = configEntries({ everything: config });
  const server = createServer({
    ...{ entry: entry!, version: "1", log, state: createState(store), clean: (text: string) => text },
    openTransport: createTransports({
      ...{ home: paths.home, env, mark: "IO_BENCH=1", hide: () => undefined, wrap: async (argv) => [...argv] },
      logins: { providerOf: () => undefined },
    }),
  });
  const bare = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  try {
    await server.start();
    await bare.connect(
      new StdioClientTransport({ command: process.execPath, args: [PUBLISHED], env: { ...env, PATH: env.PATH ?? "" } }),
    );
    const gate = createGate({ store, redactor: createRedactor(), log, policy: () => undefined });
    const bound = gate.bind(serverTools([server]), { cwd: folder, actor: "bench" });
    const invocation = { sessionId: "s", attempt: 1, signal: new AbortController().signal, flush: async () => {} };
    const cases = [
      { kind: "effect", tool: "echo", args: { message: "hello" } },
      { kind: "read", tool: "get-sum", args: { a: 2, b: 3 } },
    ];
    for (const { kind, tool, args } of cases) {
      const own = bound.find(({ name }) => name === `mcp__everything__${tool}`)!;
      const times = { gate: [] as number[], bare: [] as number[] };
      for (let call = -20; call < calls * 5; call += 1) {
        const ids = { owner: `m_${kind}${call}`, callId: `c${kind}${call}` };
        const ours = await clock(() => own.call(args, { ...invocation, ...ids }));
        const theirs = await clock(() => bare.callTool({ name: tool, arguments: args }));
        if (call < 0) continue;
        times.gate.push(ours);
        times.bare.push(theirs);
      }
      console.log(describe(`${kind} through the gate`, times.gate));
      console.log(describe(`${kind} by the bare client`, times.bare));
      judge(`${kind} of an MCP server, times the bare client`, median(times.gate) / median(times.bare), MOST_TIMES_CALL);
    }
  } finally {
    await bare.close();
    await server.close();
    store.close();
  }
}

const started = (mode: "acp" | "mcp") => ({
  command: process.execPath,
  args: [join(packageRoot, "bin", "io.js"), mode],
});
const environmentOf = ({ home }: BenchDaemon) => ({ PATH: process.env.PATH ?? "", HOME: join(home, ".."), IO_HOME: home });

function expectNoted(reply: unknown): void {
  if (reply !== "Noted.") throw new Error(`not the answer that was expected: ${JSON.stringify(reply)}`);
}
