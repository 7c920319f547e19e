import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";
import { messageOf } from "../lib/errors.ts";
import { tellApproval } from "../protocol/approval-text.ts";
import type { Approval, ApprovalDecision } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";

export interface HereDeps {
  /** Whether the work that this terminal waits for is held up by a question. */
  isOurs: (approval: Approval) => boolean;
  decide: (id: string, decision: ApprovalDecision) => unknown;
  note: (text: string) => void;
  /** Where answers are typed; without a terminal they are given by `io approval`. */
  input?: Readable | undefined;
}

/** Says what the work waits for, with the commands that decide; on a terminal asks there, one question after another. */
export function createQuestionsHere({ isOurs, decide, note, input }: HereDeps) {
  const open: Approval[] = [];
  const told = new Set<string>();
  let lines: Interface | undefined;

  const ask = (next: Approval | undefined) => {
    if (!next) return;
    note(tellApproval(next, { allow: "io approval allow", deny: "io approval deny" }));
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
      // Somebody was faster, or too late; the news of it comes by itself.
      note(messageOf(error));
    }
  };

  function asked(approval: Approval): void {
    if (told.has(approval.id) || !isOurs(approval)) return;
    told.add(approval.id);
    open.push(approval);
    // Without a raw terminal Ctrl-C still ends the work.
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

  /** A question as it stands now; the same again is asked once. */
  const update = (approval: Approval) => (approval.state === "waiting" ? asked(approval) : ended(approval));

  return {
    update,
    hear(event: Event): void {
      if (event.type === "approval.asked" || event.type === "approval.decided") update(event.data);
    },
    close: () => lines?.close(),
  };
}
