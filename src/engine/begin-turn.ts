import type { CopilotSession } from "@github/copilot-sdk";
import type { EngineTool, ToolInvocation, TurnRequest } from "../protocol/turns.ts";
import type { OpenCall, Recovery } from "./recover.ts";

export interface BeginTurnDeps {
  sdk: CopilotSession;
  tools: readonly EngineTool[];
  request: TurnRequest;
  /** What a tool has to know of the turn. */
  invocation: Omit<ToolInvocation, "callId" | "signal">;
}

/** Sets a turn going: sends its prompt, or lets the session go on from where an interrupted one stands. */
export async function beginTurn(
  recovery: Exclude<Recovery, { kind: "answered" }>,
  { sdk, tools, request, invocation }: BeginTurnDeps,
): Promise<void> {
  const answer = async ({ requestId, callId, tool: name, args }: OpenCall) => {
    const tool = tools.find((each) => each.name === name);
    const result = tool
      ? await tool.call(args, { ...invocation, callId, signal: request.signal })
      : { ok: false, text: `There is no tool called ${name} any more.` };
    await sdk.rpc.tools.handlePendingToolCall({
      requestId,
      result: { textResultForLlm: result.text, resultType: result.ok ? "success" : "failure" },
    });
  };
  switch (recovery.kind) {
    case "say more":
      return;
    case "send":
      request.onAccepted?.(await sdk.send({ prompt: request.prompt.toWellFormed() }));
      return;
    case "truncate":
      await sdk.rpc.history.truncate({ eventId: recovery.eventId });
      await sdk.rpc.sendMessages({ messages: [] });
      return;
    case "continue":
      await sdk.rpc.sendMessages({ messages: [] });
      return;
    case "answer calls":
      await Promise.all(recovery.calls.map(answer));
  }
}
