import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { CopilotClient, type ProviderConfig, RuntimeConnection } from "@github/copilot-sdk";
import { createEngine } from "../src/engine/engine.ts";
import { chooseEngine } from "../src/engine/models/ladder.ts";
import type { Session } from "../src/engine/port.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { findRuntime } from "../src/engine/runtime/path.ts";
import { Config } from "../src/home/config.ts";
import { estimateTokens } from "../src/lib/estimate-tokens.ts";
import { createLog } from "../src/lib/log.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { build, describe, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";

const PER_CONVERSATION = 20;
const WARM_UP = 1;
const SLOWER = 1.3;
const WINDOWS = [4_096, 8_192, 32_768, 131_072];
const FIXED_SHARE = 0.45;
const MODEL = "scripted";

type Settings = Pick<ProviderConfig, "type" | "wireApi" | "baseUrl">;
const WIRES: Record<string, (origin: string) => Settings> = {
  completions: (origin) => ({ type: "openai", wireApi: "completions", baseUrl: `${origin}/v1` }),
  responses: (origin) => ({ type: "openai", wireApi: "responses", baseUrl: `${origin}/v1` }),
  anthropic: (origin) => ({ type: "anthropic", baseUrl: origin }),
  azure: (origin) => ({ type: "azure", wireApi: "completions", baseUrl: origin }),
};

/** The system message and tools that both sides get. */
interface Given {
  system: string;
  tools: { name: string; description: string; parameters: Record<string, unknown> }[];
}

/** One side of the comparison, on one wire. */
interface Side {
  /** Begins a conversation. Returns the function that sends a message in it. */
  begin(name: string): Promise<(text: string) => Promise<void>>;
  stop(): Promise<void>;
}

/** Compares a turn on each wire with one on a bare SDK session, and measures the fixed part of a request for each window. */
export async function run(args: string[]): Promise<void> {
  const turns = Number(args[0] ?? 100);
  build();
  const folder = temporaryFolder();
  try {
    const given = await fixedParts(folder.path);
    const server = await startServer();
    try {
      for (const [wire, settings] of Object.entries(WIRES))
        await compare(wire, settings(server.origin), given, join(folder.path, wire), turns);
    } finally {
      await server.close();
    }
  } finally {
    folder.remove();
  }
}

async function compare(wire: string, settings: Settings, given: Given, home: string, turns: number): Promise<void> {
  const sides = {
    io: await startIo(settings, given, join(home, "io")),
    bare: await startBare(settings, given, join(home, "bare")),
  };
  const times = { io: [] as number[], bare: [] as number[] };
  try {
    for (let round = 0; times.io.length < turns; round += 1) {
      const say = { io: await sides.io.begin(`c${round}`), bare: await sides.bare.begin(`c${round}`) };
      for (let turn = 0; turn < PER_CONVERSATION && times.io.length < turns; turn += 1) {
        for (const side of turn % 2 === 0 ? (["io", "bare"] as const) : (["bare", "io"] as const)) {
          const started = performance.now();
          await say[side](`message ${round}.${turn}`);
          // The first turn of a conversation creates its session, which `bench -- turn` measures.
          if (round >= WARM_UP && turn > 0) times[side].push(performance.now() - started);
        }
      }
    }
  } finally {
    await sides.io.stop();
    await sides.bare.stop();
  }
  console.log(describe(`${wire}, IO's engine`, times.io));
  console.log(describe(`${wire}, bare session`, times.bare));
  judge(`${wire}: IO / bare, medians`, median(times.io) / median(times.bare), SLOWER);
}

async function startIo(settings: Settings, given: Given, folder: string): Promise<Side> {
  mkdirSync(folder, { recursive: true });
  const config = Config.parse({ provider: { ...settings, apiKey: "none", model: MODEL } });
  const env = { PATH: process.env.PATH, HOME: folder, COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH };
  const engine = await createEngine({
    folder,
    config: () => config,
    env,
    choice: await chooseEngine(config, env),
    rehearsal: () => ({ say: "never asked" }),
    log: createLog({ redactor: createRedactor() }),
  });
  await engine.start();
  const tools = given.tools.map((tool) => ({ ...tool, call: async () => ({ ok: true, text: "never called" }) }));
  return {
    async begin(id) {
      const session: Session = engine.session({ id, systemMessage: () => given.system, tools, workingDirectory: folder });
      return async (prompt) => {
        const signal = new AbortController().signal;
        const result = await session.run({ owner: id, prompt, attempt: 1, signal, silenceMs: 30_000, capMs: 30_000 });
        if (result.outcome !== "done") throw new Error(`a turn came to nothing: ${JSON.stringify(result)}`);
      };
    },
    stop: () => engine.stop(),
  };
}

/** The SDK alone, connected directly to the provider. */
async function startBare(settings: Settings, given: Given, home: string): Promise<Side> {
  mkdirSync(home, { recursive: true });
  const path = await findRuntime();
  const client = new CopilotClient({
    connection: path === undefined ? RuntimeConnection.forStdio() : RuntimeConnection.forStdio({ path }),
    baseDirectory: home,
    env: { PATH: process.env.PATH, HOME: home, COPILOT_HOME: home, COPILOT_OFFLINE: "true" },
    useLoggedInUser: false,
    logLevel: "error",
  });
  await client.start();
  return {
    async begin(sessionId) {
      const session = await client.createSession({
        sessionId,
        model: MODEL,
        provider: { ...settings, apiKey: "none" },
        streaming: true,
        workingDirectory: home,
        systemMessage: { mode: "replace", content: given.system },
        tools: given.tools.map((tool) => ({
          ...tool,
          skipPermission: true,
          defer: "never",
          handler: async () => "never called",
        })),
        availableTools: ["custom:*"],
        enableConfigDiscovery: false,
        skipCustomInstructions: true,
        toolSearch: { enabled: false },
        onPermissionRequest: () => ({ kind: "approve-once" }),
      });
      return async (prompt) => {
        const answer = await session.sendAndWait({ prompt }, 30_000);
        if (!answer?.data.content) throw new Error("a bare session gave no answer");
      };
    },
    stop: () => client.forceStop(),
  };
}

/** Prints the fixed part of a request at each window. Returns that of the largest. */
async function fixedParts(folder: string): Promise<Given> {
  let given: Given = { system: "", tools: [] };
  for (const window of WINDOWS) {
    const model = await startModelServer(() => ({ say: "Noted." }));
    const home = join(folder, `window-${window}`);
    mkdirSync(join(home, "io"), { recursive: true });
    const provider = { baseUrl: model.url, apiKey: "none", model: MODEL, models: [{ id: MODEL, contextWindow: window }] };
    writeFileSync(join(home, "io", "config.json"), JSON.stringify({ provider }), { mode: 0o600 });
    const daemon = await startBenchDaemon(model.url, home);
    try {
      await daemon.ask("hello", "main");
    } catch (error) {
      console.log(`a window of ${window}: ${String(error).slice(0, 600)}`);
    } finally {
      await daemon.stop();
      await model.close();
    }
    const request = model.requests.at(-1);
    if (request) given = givenIn(request);
    const tools = request?.tools ? JSON.stringify(request.tools) : "";
    const fixed = request ? estimateTokens(given.system) + estimateTokens(tools) : Number.NaN;
    const share = `${((100 * fixed) / window).toFixed(0)} % of it, ${request?.tools?.length ?? 0} tools`;
    judge(`fixed part at a window of ${window} (${share})`, fixed, Math.floor(window * FIXED_SHARE), " tokens");
  }
  return given;
}

function givenIn({ messages, tools = [] }: ChatRequest): Given {
  return {
    system: messages
      .filter(({ role }) => role === "system")
      .map(textOf)
      .join("\n"),
    tools: tools.map(({ function: { name, description, parameters } }) => ({
      name,
      description: String(description ?? ""),
      parameters: parameters as Record<string, unknown>,
    })),
  };
}

/** A provider that supports every wire and always gives the same answer at once. */
async function startServer(): Promise<{ origin: string; close(): Promise<void> }> {
  const server = createServer((incoming, response) => {
    incoming.resume().once("end", () => {
      const said = ANSWERS.find(([path]) => path.test(incoming.url ?? ""))?.[1];
      if (!said || incoming.method !== "POST") return response.writeHead(404).end();
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of said) response.write(event);
      return response.end();
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

const PIECES = ["No", "ted", "."];
const line = (data: object | string, type = "") =>
  `${type && `event: ${type}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const typed = (data: { type: string } & Record<string, unknown>) => line(data, data.type);

const CHAT = [...PIECES.map((content) => ({ delta: { content }, finish_reason: null })), { delta: {}, finish_reason: "stop" }];
const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: MODEL,
  content: [],
  usage: { input_tokens: 9, output_tokens: 1 },
};
const RESPONSE = { id: "resp_1", object: "response", created_at: 1, model: MODEL };
const PLACE = { item_id: "msg_1", output_index: 0, content_index: 0 };
const ITEM = { id: "msg_1", type: "message", role: "assistant" };
const PART = { type: "output_text", text: PIECES.join(""), annotations: [] };
const WHOLE = { ...ITEM, status: "completed", content: [PART] };
const USAGE = { input_tokens: 9, output_tokens: 3, total_tokens: 12 };

const ANSWERS: [RegExp, string[]][] = [
  [
    /\/chat\/completions/,
    [
      ...CHAT.map((choice) =>
        line({ id: "c1", object: "chat.completion.chunk", created: 1, model: MODEL, choices: [{ index: 0, ...choice }] }),
      ),
      line("[DONE]"),
    ],
  ],
  [
    /\/messages/,
    [
      typed({ type: "message_start", message: MESSAGE }),
      typed({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      ...PIECES.map((text) => typed({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
      typed({ type: "content_block_stop", index: 0 }),
      typed({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 3 } }),
      typed({ type: "message_stop" }),
    ],
  ],
  [
    /\/responses/,
    [
      typed({ type: "response.created", response: { ...RESPONSE, status: "in_progress", output: [] } }),
      typed({ type: "response.output_item.added", output_index: 0, item: { ...ITEM, status: "in_progress", content: [] } }),
      typed({ type: "response.content_part.added", ...PLACE, part: { ...PART, text: "" } }),
      ...PIECES.map((delta) => typed({ type: "response.output_text.delta", ...PLACE, delta })),
      typed({ type: "response.output_text.done", ...PLACE, text: PART.text }),
      typed({ type: "response.content_part.done", ...PLACE, part: PART }),
      typed({ type: "response.output_item.done", output_index: 0, item: WHOLE }),
      typed({ type: "response.completed", response: { ...RESPONSE, status: "completed", output: [WHOLE], usage: USAGE } }),
    ],
  ],
];
