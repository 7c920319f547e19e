import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { messageOf } from "../lib/errors.ts";
import { tellApproval } from "../protocol/approval-text.ts";
import type { Approval, ApprovalDecision } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";

export interface HereDeps {
  /** The run whose questions are asked here. */
  runId: string;
  decide: (id: string, decision: ApprovalDecision, by: string) => Approval;
  note: (text: string) => void;
  /** Where answers are typed; without a terminal they are given by `io approval`. */
  input?: Readable | undefined;
}

/** Asks the questions of a run on the terminal it was started from, one after another. */
export function createQuestionsHere({ runId, decide, note, input }: HereDeps) {
  const open: Approval[] = [];
  let lines: Interface | undefined;

  const ask = (next: Approval | undefined) => {
    if (!next) return;
    note(tellApproval(next, { allow: "io approval allow", deny: "io approval deny" }));
    if (input) note(`Allow it? y or n${open.length > 1 ? ` (${open.length - 1} more after this)` : ""}`);
  };
  const hearAnswer = (line: string) => {
    const [next] = open;
    const said = /^\s*(y|yes|n|no)\s*$/i.exec(line)?.[1]?.toLowerCase();
    if (!next) return;
    if (said === undefined) return ask(next);
    try {
      decide(next.id, { decision: said.startsWith("y") ? "allow" : "deny", scope: "once" }, "terminal");
    } catch (error) {
      // Somebody was faster, or too late; the news of it comes by itself.
      note(messageOf(error));
    }
  };

  return {
    hear(event: Event): void {
      if (event.type === "approval.asked" && event.data.owner.id === runId) {
        open.push(event.data);
        // Without a raw terminal Ctrl-C still ends the run.
        if (input) lines ??= createInterface({ input, terminal: false }).on("line", hearAnswer);
        if (open.length === 1 || !input) ask(event.data);
      }
      if (event.type !== "approval.decided") return;
      const at = open.findIndex(({ id }) => id === event.data.id);
      if (at < 0) return;
      open.splice(at, 1);
      note(`${event.data.id} is ${event.data.state}.`);
      if (at === 0 && input) ask(open[0]);
    },
    close: () => lines?.close(),
  };
}
