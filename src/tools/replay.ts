import { oneLine } from "../lib/quoted.ts";
import type { CallAnswer, EarlierCall, ToolInvocation } from "../protocol/turns.ts";
import type { EarlierThan, NewToolCall, ToolCall, ToolCalls } from "../store/tool-calls.ts";
import type { Audit } from "./audit.ts";

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
    !isAnswered(same, invocation);
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
): CallAnswer | undefined {
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
  const lost = journal.interrupted(call).find((each) => !isShown(each, invocation));
  if (lost === undefined) return undefined;
  const answer = hasEnded(lost) ? stored(lost) : unknownOutcome(tool);
  journal.supersede(lost.seq, call, outcome(hasEnded(lost) ? lost.state : "unknown", answer.text, 0));
  return answer;
}

const TOLD_CALLS = 30;
const TOLD_ARGS = 400;
const TOLD_RESULT = 600;

/** The effects of earlier attempts that a turn does not show; one that was under way has an unknown outcome from now on. */
export function tellEarlier(
  journal: ToolCalls,
  of: EarlierThan,
  settled: NonNullable<ToolInvocation["settled"]>,
  { outcome }: Audit,
): EarlierCall[] {
  const lost = journal.effectsBefore(of).filter((call) => !isShown(call, { settled }));
  return lost.slice(-TOLD_CALLS).map((call) => {
    if (!hasEnded(call))
      journal.end(call.seq, call.kind, outcome("unknown", unknownOutcome(call.tool).text, call.durationMs ?? 0));
    const end = hasEnded(call)
      ? `${call.state}: ${oneLine(call.result ?? "", TOLD_RESULT)}`
      : "whether it took effect is unknown";
    return { seq: call.seq, text: `${call.tool} ${oneLine(call.args, TOLD_ARGS)} → ${end}` };
  });
}

/** Some models number their calls anew in every answer: such an id is made unique. */
function unusedId(journal: ToolCalls, call: NewToolCall): string {
  for (let copy = 2; ; copy += 1) {
    const id = `${call.callId}~${copy}`;
    if (!journal.find(call.sessionId, id)) return id;
  }
}

/** Whether its session holds the answer to a call: of those with its id, as many as it has answers for, the earliest first. */
function isAnswered(call: ToolCall, invocation: Pick<ToolInvocation, "settled">): boolean {
  const { copy, total } = answersTo(call, invocation);
  return copy <= total;
}

/** Whether the model reads a call and its answer behind the prompt it works on now, so that a repeat is meant as one. */
function isShown(call: ToolCall, invocation: Pick<ToolInvocation, "settled">): boolean {
  const { copy, beforeTurn, total } = answersTo(call, invocation);
  return beforeTurn < copy && copy <= total;
}

function answersTo({ callId, sessionId }: ToolCall, { settled }: Pick<ToolInvocation, "settled">) {
  const [, id = callId, copy = "1"] = /^(.*)~(\d+)$/s.exec(callId) ?? [];
  return { copy: Number(copy), ...(settled?.(id, sessionId) ?? { beforeTurn: 0, total: 0 }) };
}

type Ended = ToolCall & { state: "done" | "failed" };

function hasEnded(call: ToolCall): call is Ended {
  return call.state === "done" || call.state === "failed";
}

function stored(call: Ended): CallAnswer {
  return { ok: call.state === "done", text: call.result ?? "" };
}

function unknownOutcome(tool: string): CallAnswer {
  return {
    ok: false,
    state: "unknown",
    text: `This call of ${tool} was begun before an interruption, and whether it took effect is unknown. It was not run again. Look at what is there first; call it again only if it is still needed, and tell the user.`,
  };
}
