import { join } from "node:path";
import { CopilotClient, type CopilotSession, RuntimeConnection } from "@github/copilot-sdk";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { findRuntime } from "../src/engine/runtime/path.ts";
import { build, describe, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";

const PER_CONVERSATION = 20;
const WARM_UP = 2;
/** Limits for every amount that is checked before a call, too high to be reached. */
const PLENTY = { tokens: 1_000_000_000, calls: 1_000_000, money: 1_000_000 };
/** Settings with approvals and every budget on. */
export const HELD = {
  approvals: "effects",
  budgets: { turn: PLENTY, task: PLENTY, run: PLENTY, conversation: PLENTY, day: PLENTY },
  prices: { scripted: { input: 3, output: 15, cacheRead: 0.3 } },
};

/** Compares a turn through the HTTP API, everything on disk, approvals and budgets on, with one on a bare SDK session. */
export async function run(args: string[]): Promise<void> {
  const turns = Number(args[0] ?? 200);
  build();
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"), HELD);
  await daemon.ask("hello", "look");
  const bare = await startBare(model.url, join(folder.path, "bare"), model.requests.at(-1)!);
  const times = { io: [] as number[], bare: [] as number[], ioFirst: [] as number[], bareFirst: [] as number[] };
  try {
    for (let round = 0; times.io.length < turns; round += 1) {
      let session: CopilotSession | undefined;
      for (let turn = 0; turn < PER_CONVERSATION && times.io.length < turns; turn += 1) {
        const text = `message ${round}.${turn}`;
        const io = () => clock(() => daemon.ask(text, `c${round}`));
        const other = () =>
          clock(async () => {
            session ??= await bare.begin();
            await bare.ask(session, `[via api] ${text}`);
          });
        const ioFirst = turn % 2 === 0;
        const a = ioFirst ? await io() : await other();
        const b = ioFirst ? await other() : await io();
        const [ioMs, bareMs] = ioFirst ? [a, b] : [b, a];
        if (turn === 0 && round >= WARM_UP) {
          times.ioFirst.push(ioMs);
          times.bareFirst.push(bareMs);
        } else if (round >= WARM_UP) {
          times.io.push(ioMs);
          times.bare.push(bareMs);
        }
        model.requests.length = 0;
        model.bodies.length = 0;
      }
      await session?.disconnect();
    }
    console.log(describe("turn through IO's API", times.io));
    console.log(describe("turn on a bare session", times.bare));
    console.log(describe("first turn, IO", times.ioFirst));
    console.log(describe("first turn, bare", times.bareFirst));
    console.log(`median of differences      ${median(times.io.map((ms, index) => ms - times.bare[index]!)).toFixed(2)} ms`);
    judge("IO / bare, medians (aim 1.2)", median(times.io) / median(times.bare), 1.5);
  } finally {
    await daemon.stop();
    await bare.stop();
    await model.close();
    folder.remove();
  }
}

export async function clock(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The SDK alone, with exactly the system message and tools of the daemon's session. */
export async function startBare(url: string, home: string, seen: ChatRequest) {
  const path = await findRuntime();
  const client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path }),
    baseDirectory: home,
    env: { PATH: process.env.PATH, HOME: home, COPILOT_HOME: home, COPILOT_OFFLINE: "true" },
    useLoggedInUser: false,
    logLevel: "error",
  });
  await client.start();
  const content = textOf(seen.messages.find(({ role }) => role === "system"));
  const tools = (seen.tools ?? []).map((offered) => ({
    name: offered.function.name,
    description: String(offered.function.description ?? ""),
    parameters: offered.function.parameters as Record<string, unknown>,
    skipPermission: true,
    defer: "never" as const,
    handler: async () => "never called",
  }));
  return {
    begin: () =>
      client.createSession({
        model: "scripted",
        provider: { type: "openai", baseUrl: url, wireApi: "completions", apiKey: "none" },
        streaming: true,
        workingDirectory: home,
        systemMessage: { mode: "replace", content },
        tools,
        availableTools: ["custom:*"],
        enableConfigDiscovery: false,
        skipCustomInstructions: true,
        toolSearch: { enabled: false },
        infiniteSessions: { enabled: true, backgroundCompactionThreshold: 0.8, bufferExhaustionThreshold: 0.95 },
        onPermissionRequest: () => ({ kind: "approve-once" }),
      }),
    ask: (session: CopilotSession, prompt: string) => session.sendAndWait({ prompt }, 30_000),
    stop: () => client.forceStop(),
  };
}
