import type { EventData } from "../protocol/events.ts";
import { callEnding, showState } from "../protocol/shown-state.ts";

/** Prints a line for each tool call once it has ended: its mark, its subject and its result. */
export function createToolNotes(note: (text: string) => void): (news: EventData<"message.tool">) => void {
  const about = new Map<string, string>();
  return ({ tool, state, callId = tool, args, exitCode }) => {
    if (args !== undefined) about.set(callId, args);
    const { mark, tone } = showState({ kind: "call", state, exitCode });
    if (tone === "busy") return;
    const what = about.get(callId);
    about.delete(callId);
    const ending = callEnding(state, exitCode);
    note(`${mark} ${tool}${what ? `  ${what}` : ""}${tone === "good" || ending === "" ? "" : `  ${ending}`}`);
  };
}
