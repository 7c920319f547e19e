// The page imports this file too, so it imports nothing but types.
import type { EventData } from "./events.ts";
import type { ToolUse } from "./messages.ts";

/** How much of a call's output is kept for display. */
const MOST_OUTPUT = 4_000;

/** The calls of a turn after one more event. */
export function addToolNews(calls: readonly ToolUse[], news: Omit<EventData<"message.tool">, "id">): ToolUse[] {
  const { tool, state, callId, args, input, output, exitCode, diff } = news;
  const isIt = (call: ToolUse) =>
    call.state === "started" && (callId === undefined ? call.tool === tool : call.callId === callId);
  const at = state === "started" ? -1 : calls.findIndex(isIt);
  const known = calls[at];
  const printed = output === undefined ? known?.output : `${known?.output ?? ""}${output}`.slice(-MOST_OUTPUT);
  const call: ToolUse = {
    ...known,
    tool,
    state: state === "running" ? "started" : state,
    ...(callId !== undefined && { callId }),
    ...(args !== undefined && { args }),
    ...(input !== undefined && { input }),
    ...(printed !== undefined && { output: printed }),
    ...(exitCode !== undefined && { exitCode }),
    ...(diff !== undefined && { diff }),
  };
  return known ? calls.with(at, call) : [...calls, call];
}
