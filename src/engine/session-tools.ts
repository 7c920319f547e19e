import type { Tool as SdkTool } from "@github/copilot-sdk";
import { clipToTokens, estimateTokens } from "../lib/estimate-tokens.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { Life } from "./life.ts";
import type { SessionSpec } from "./port.ts";
import { roomFor } from "./wire/context.ts";

/** The turn a session is in, as its tools need to know it. */
export type CurrentTurn = Pick<ToolInvocation, "owner" | "attempt" | "pause" | "lastWords"> &
  Required<Pick<ToolInvocation, "settled">>;

/** In a small window only what is essential is offered: the tools may take a quarter of it. */
export function toolsFor({ tools, essential }: SessionSpec, window: number): EngineTool[] {
  if (!essential) return tools;
  const cost = estimateTokens(JSON.stringify(tools.map(({ name, description, parameters }) => [name, description, parameters])));
  return cost <= roomFor(window) / 4 ? tools : tools.filter(({ name }) => essential.includes(name));
}

/** A tool whose results leave room for the rest of the conversation. */
export function fitting(tool: EngineTool, window: number): EngineTool {
  const most = Math.floor(roomFor(window) / 4);
  return {
    ...tool,
    call: async (args, invocation) => {
      const { ok, text } = await tool.call(args, invocation);
      const cut = clipToTokens(text, most);
      return {
        ok,
        text:
          cut === text ? text : `${cut}\n[The rest was cut: it does not fit into the model's window. Ask for a smaller part.]`,
      };
    },
  };
}

export interface SdkToolDeps {
  /** Holds the turn that calls belong to now; a session outlives its turns. */
  turn: { now: CurrentTurn };
  life: Life;
  sessionId: string;
  /** Makes the runtime write down what was asked for. */
  flush: () => Promise<void>;
}

/** A tool as the SDK wants it. */
export function sdkTool(tool: EngineTool, { turn, life, sessionId, flush }: SdkToolDeps): SdkTool {
  return {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    // The runtime has tools of its own by some of these names; ours pass the gate, so ours are the ones to be run.
    overridesBuiltInTool: true,
    skipPermission: true,
    defer: "never",
    handler: async (args, invocation) => {
      const signal = invocation.signal ?? new AbortController().signal;
      const { ok, text } = await tool.call(args, { callId: invocation.toolCallId, sessionId, ...turn.now, signal, flush });
      // The SDK would write to a pipe that nobody reads; the next runtime finds the result in the journal.
      if (life.isDead()) await new Promise<never>(() => {});
      return { textResultForLlm: text.toWellFormed(), resultType: ok ? "success" : "failure" };
    },
  };
}
