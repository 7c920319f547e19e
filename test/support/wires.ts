import { createEngine, type EngineDeps } from "../../src/engine/engine.ts";
import { chooseEngine } from "../../src/engine/models/ladder.ts";
import type { Engine, SessionSpec } from "../../src/engine/port.ts";
import { Config } from "../../src/home/config.ts";
import type { EngineTool } from "../../src/protocol/turns.ts";
import { quietLog } from "./engine.ts";
import type { AtTheEnd } from "./home.ts";
import type { Script } from "./providers/act.ts";
import { startAnthropic } from "./providers/anthropic.ts";
import { startAzure } from "./providers/azure.ts";
import type { Provider } from "./providers/core.ts";
import { startOpenAi } from "./providers/openai.ts";

/** A wire API, with a provider on the other side that is as strict as the real one. */
export interface WireCase {
  name: string;
  model: string;
  start(script: Script, atTheEnd?: AtTheEnd): Promise<Provider>;
  settings(provider: Provider): Record<string, unknown>;
}

const KEY = "sk-proj-right-key-for-the-tests-0000";

export const WIRES: WireCase[] = [
  {
    name: "completions",
    model: "gpt-4o",
    start: (script, atTheEnd) => startOpenAi({ script, key: KEY }, atTheEnd),
    settings: ({ url }) => ({ type: "openai", baseUrl: url, apiKey: KEY, model: "gpt-4o" }),
  },
  {
    name: "responses",
    model: "gpt-4.1",
    start: (script, atTheEnd) => startOpenAi({ script, key: KEY }, atTheEnd),
    settings: ({ url }) => ({ type: "openai", wireApi: "responses", baseUrl: url, apiKey: KEY, model: "gpt-4.1" }),
  },
  {
    name: "anthropic",
    model: "claude-sonnet-4-5",
    start: (script, atTheEnd) => startAnthropic({ script, key: KEY }, atTheEnd),
    settings: ({ origin }) => ({ type: "anthropic", baseUrl: origin, apiKey: KEY, model: "claude-sonnet-4-5" }),
  },
  {
    name: "azure",
    model: "my-deployment",
    start: (script, atTheEnd) => startAzure({ script, key: KEY, deployments: { "my-deployment": "gpt-4o" } }, atTheEnd),
    settings: ({ origin }) => ({ type: "azure", baseUrl: origin, apiKey: KEY, model: "my-deployment" }),
  },
];

/** Starts an engine on a provider as in a person's config. The caller stops it. */
export async function engineOn(
  folder: string,
  provider: Record<string, unknown>,
  more: Partial<EngineDeps> = {},
): Promise<Engine> {
  const config = Config.parse({ provider });
  const env = { PATH: process.env.PATH, HOME: folder, COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH };
  const engine = await createEngine({
    folder,
    config: () => config,
    env,
    choice: await chooseEngine(config, env),
    rehearsal: () => ({ say: "never asked" }),
    log: quietLog,
    ...more,
  });
  await engine.start();
  return engine;
}

export function sessionSpec(id: string, folder: string, tools: EngineTool[] = []): SessionSpec {
  return { id, systemMessage: () => "You are a test.", tools, workingDirectory: folder };
}

/** A tool that records its arguments. */
export function noteTool(notes: unknown[]): EngineTool {
  return {
    name: "note",
    description: "Notes something.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    call: async (args) => {
      notes.push(args);
      return { ok: true, text: `noted ${notes.length}` };
    },
  };
}
