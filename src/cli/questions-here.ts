import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { messageOf } from "../lib/errors.ts";
import { formatApproval } from "../protocol/approval-text.ts";
import type { Approval, ApprovalDecision } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";

export interface HereDeps {
  /** Whether a question blocks the work that this terminal waits for. */
  isOurs: (approval: Approval) => boolean;
  decide: (id: string, decision: ApprovalDecision) => unknown;
  note: (text: string) => void;
  /** Where answers are typed; without a terminal, only `io approval` answers. */
  input?: Readable | undefined;
}

/** Prints the questions that block the work, with the commands that decide them; on a terminal, asks them one after another. */
export function createQuestionsHere({ isOurs, decide, note, input }: HereDeps) {
  const open: Approval[] = [];
  const told = new Set<string>();
  let lines: Interface | undefined;

  const ask = (next: Approval | undefined) => {
    if (!next) return;
    note(formatApproval(next, { allow: "io approval allow", deny: "io approval deny" }));
    if (input) note(`Allow it? y or n${open.length > 1 ? ` (${open.length - 1} more after this)` : ""}`);
  };
  const hearAnswer = async (line: string) => {
    const [next] = open;
    const said = /^\s*(y|yes|n|no)\s*$/i.exec(line)?.[1]?.toLowerCase();
    if (!next) return;
    if (said === undefined) return ask(next);
    try {
      await decide(next.id, { decision: said.startsWith("y") ? "allow" : "deny", scope: "once" });
    } catch (error) {
      // Somebody else answered first, or it expired; an event reports it.
      note(messageOf(error));
    }
  };

  function asked(approval: Approval): void {
    if (told.has(approval.id) || !isOurs(approval)) return;
    told.add(approval.id);
    open.push(approval);
    // Without raw mode, Ctrl-C still ends the work.
    if (input) lines ??= createInterface({ input, terminal: false }).on("line", (line) => void hearAnswer(line));
    if (open.length === 1 || !input) ask(approval);
  }

  function ended({ id, state }: Approval): void {
    const at = open.findIndex((each) => each.id === id);
    if (at < 0) return;
    open.splice(at, 1);
    note(`${id} is ${state}.`);
    if (at === 0 && input) ask(open[0]);
  }

  /** Takes the current state of a question; asks each question once. */
  const update = (approval: Approval) => (approval.state === "waiting" ? asked(approval) : ended(approval));

  return {
    update,
    hear(event: Event): void {
      if (event.type === "approval.asked" || event.type === "approval.decided") update(event.data);
    },
    close: () => lines?.close(),
  };
}
