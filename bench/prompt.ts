import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import { estimateTokens } from "../src/lib/estimate-tokens.ts";
import { build, judge, startBenchDaemon, temporaryFolder } from "./support.ts";

const LIMIT = 6_000;

/** What every request costs before anybody has said a word, as the model received it. */
export async function run(): Promise<void> {
  build();
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const daemon = await startBenchDaemon(model.url, folder.path);
  try {
    await daemon.ask("hello", "main");
    const request = model.requests.at(-1)!;
    const system = request.messages
      .filter(({ role }) => role === "system")
      .map(textOf)
      .join("\n");
    const tools = request.tools ? JSON.stringify(request.tools) : "";
    const line = (name: string, text: string) =>
      console.log(`${name.padEnd(16)} ${estimateTokens(text)} tokens (estimate), ${Buffer.byteLength(text)} bytes`);
    line("system message", system);
    line(`${request.tools?.length ?? 0} tools`, tools);
    line("whole request", model.bodies.at(-1)!);
    judge("fixed part of a request", estimateTokens(system) + estimateTokens(tools), LIMIT, " tokens");
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}
