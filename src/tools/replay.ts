import type { ToolInvocation } from "../protocol/turns.ts";
import type { NewToolCall, ToolCall, ToolCalls } from "../store/tool-calls.ts";
import type { Audit } from "./audit.ts";
import type { Answer } from "./perform.ts";

/** The record of this very call from an attempt before; any other with its id makes the call take an id of its own. */
export function findEarlier(journal: ToolCalls, call: NewToolCall, invocation: ToolInvocation): ToolCall | undefined {
  const same = journal.latest(call.sessionId, call.callId);
  if (same === undefined) return undefined;
  const isEarlier =
    same.owner === call.owner &&
    same.tool === call.tool &&
    same.argsHash === call.argsHash &&
    // Within one attempt, or once its answer is in the session, the same id is another call of a model that counts anew.
    same.attempt < call.attempt &&
    !isSettled(same, invocation);
  if (isEarlier) return same;
  call.callId = unusedId(journal, call);
  return undefined;
}

/** The answer to a call that needs no run, or must not be run: it has ended before, or nobody knows whether it took effect. */
export function replay(
  journal: ToolCalls,
  call: NewToolCall,
  earlier: ToolCall | undefined,
  invocation: ToolInvocation,
  { outcome }: Audit,
): Answer | undefined {
  const { kind, tool } = call;
  if (earlier && hasEnded(earlier)) {
    journal.carryOver(earlier, call.attempt, earlier.state);
    return stored(earlier);
  }
  if (kind !== "effect") return undefined;
  if (earlier) {
    if (earlier.state === "refused") return undefined;
    const answer = unknownOutcome(tool);
    journal.carryOver(earlier, call.attempt, "unknown");
    journal.end(earlier.seq, kind, outcome("unknown", answer.text, earlier.durationMs ?? 0));
    return answer;
  }
  const lost = journal.interrupted(call).find((each) => !isSettled(each, invocation));
  if (lost === undefined) return undefined;
  const answer = hasEnded(lost) ? stored(lost) : unknownOutcome(tool);
  journal.supersede(lost.seq, call, outcome(hasEnded(lost) ? lost.state : "unknown", answer.text, 0));
  return answer;
}

/** Some models number their calls anew in every answer: such an id is made unique. */
function unusedId(journal: ToolCalls, call: NewToolCall): string {
  for (let copy = 2; ; copy += 1) {
    const id = `${call.callId}~${copy}`;
    if (!journal.find(call.sessionId, id)) return id;
  }
}

/** Whether the session holds the answer to a call: of those with its id, as many as it has answers for, the earliest first. */
function isSettled({ callId }: ToolCall, { settled }: ToolInvocation): boolean {
  const [, id = callId, copy = "1"] = /^(.*)~(\d+)$/s.exec(callId) ?? [];
  return (settled?.(id) ?? 0) >= Number(copy);
}

function hasEnded(call: ToolCall): call is ToolCall & { state: "done" | "failed" } {
  return call.state === "done" || call.state === "failed";
}

function stored(call: ToolCall): Answer {
  return { ok: call.state === "done", text: call.result ?? "" };
}

function unknownOutcome(tool: string): Answer {
  return {
    ok: false,
    text: `This call of ${tool} was begun before an interruption, and whether it took effect is unknown. It was not run again. Look at what is there first; call it again only if it is still needed, and tell the user.`,
  };
}
