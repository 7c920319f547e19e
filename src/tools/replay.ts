import { oneLine } from "../lib/quoted.ts";
import type { CallAnswer, EarlierCall, ToolInvocation } from "../protocol/turns.ts";
import type { EarlierThan, NewToolCall, ToolCall, ToolCalls } from "../store/tool-calls.ts";
import type { Audit } from "./audit.ts";

/** The record of the same call from an earlier attempt. If another call has its id, the call gets a new one. */
export function findEarlier(journal: ToolCalls, call: NewToolCall, invocation: ToolInvocation): ToolCall | undefined {
  const same = journal.latest(call.sessionId, call.callId);
  if (same === undefined) return undefined;
  const isEarlier =
    same.owner === call.owner &&
    same.tool === call.tool &&
    same.argsHash === call.argsHash &&
    // Within one attempt, or once the session has its answer, the same id is a new call by a model that restarts its numbering.
    same.attempt < call.attempt &&
    !isAnswered(same, invocation);
  if (isEarlier) return same;
  call.callId = unusedId(journal, call);
  return undefined;
}

/** The answer to a call that must not run again, because it has ended or its outcome is unknown. */
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

/** Effects of earlier attempts that the session does not show. From now on, those that had not ended have an unknown outcome. */
export function earlierEffects(
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

/** Makes an id unique, since some models restart their numbering in every answer. */
function unusedId(journal: ToolCalls, call: NewToolCall): string {
  for (let copy = 2; ; copy += 1) {
    const id = `${call.callId}~${copy}`;
    if (!journal.find(call.sessionId, id)) return id;
  }
}

/** Whether the session holds the answer to a call. Answers with the same id belong to the earliest calls. */
function isAnswered(call: ToolCall, invocation: Pick<ToolInvocation, "settled">): boolean {
  const { copy, total } = answersTo(call, invocation);
  return copy <= total;
}

/** Whether the call and its answer come after the current prompt, so that the model repeats it knowingly. */
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
