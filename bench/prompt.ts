import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import { estimateTokens } from "../src/lib/estimate-tokens.ts";
import { build, judge, startBenchDaemon, temporaryFolder } from "./support.ts";

const LIMIT = 4_500;
/** A window in which only the essential tools are offered. */
const SMALL = { window: 4_096, limit: 1_500 };

/** Measures the fixed part of every request, as the model received it. */
export async function run(): Promise<void> {
  build();
  await judgeFixedPart();
}

/** Measures the instructions and the tools, with all tools and in a small window. */
export async function judgeFixedPart(): Promise<void> {
  await measure("fixed part of a request", LIMIT);
  await measure(`fixed part at a window of ${SMALL.window}`, SMALL.limit, SMALL.window);
}

async function measure(name: string, limit: number, window?: number): Promise<void> {
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const models = [{ id: "scripted", contextWindow: window }];
  const small = { provider: { baseUrl: model.url, apiKey: "none", model: "scripted", models } };
  const daemon = await startBenchDaemon(model.url, folder.path, window === undefined ? undefined : small);
  try {
    await daemon.ask("hello", "main");
    const request = model.requests.at(-1)!;
    const system = request.messages
      .filter(({ role }) => role === "system")
      .map(textOf)
      .join("\n");
    const tools = request.tools ? JSON.stringify(request.tools) : "";
    const line = (title: string, text: string) =>
      console.log(`${title.padEnd(16)} ${estimateTokens(text)} tokens (estimate), ${Buffer.byteLength(text)} bytes`);
    line("system message", system);
    line(`${request.tools?.length ?? 0} tools`, tools);
    line("whole request", model.bodies.at(-1)!);
    judge(name, estimateTokens(system) + estimateTokens(tools), limit, " tokens");
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}
