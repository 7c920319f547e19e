import { onTestFinished } from "vitest";
import { createEngine, type EngineDeps } from "../../src/engine/engine.ts";
import type { Engine } from "../../src/engine/port.ts";
import { Config } from "../../src/home/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { TurnRequest } from "../../src/protocol/turns.ts";
import type { AtTheEnd } from "./home.ts";

export const quietLog = createLog({ redactor: createRedactor() });

/** Starts a real engine on a scripted model. It is stopped after the test. */
export async function startEngine(
  folder: string,
  modelUrl: string,
  config: Record<string, unknown> = {},
  more: Partial<EngineDeps> = {},
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<Engine> {
  const parsed = Config.parse(config);
  const engine = await createEngine({
    folder,
    config: () => parsed,
    env: { ...process.env, HOME: folder },
    choice: {
      kind: "provider",
      why: "the test's model",
      model: "scripted",
      named: true,
      names: { address: "the test", key: "the test", model: "the test" },
      provider: {
        ...{ type: "openai", baseUrl: modelUrl, wireApi: "completions" },
        ...(parsed.provider?.models && { models: parsed.provider.models }),
      },
    },
    rehearsal: () => ({ say: "never asked" }),
    log: quietLog,
    ...more,
  });
  await engine.start();
  atTheEnd(() => engine.stop());
  return engine;
}

/** A turn with timeouts long enough for tests. */
export function turn(prompt: string, more: Partial<TurnRequest> = {}): TurnRequest {
  return { owner: "m_test", prompt, attempt: 1, signal: new AbortController().signal, silenceMs: 15_000, capMs: 30_000, ...more };
}
