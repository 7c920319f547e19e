import type { Approval } from "../protocol/approvals.ts";
import type { Source } from "../protocol/messages.ts";
import type { Squads } from "../squads/squads.ts";
import type { Hub } from "../store/hub.ts";
import type { Askers } from "./askers.ts";
import type { Outbox } from "./outbox.ts";

export interface ApprovalNewsDeps {
  hub: Pick<Hub, "subscribe">;
  outbox: Pick<Outbox, "owe" | "received">;
  approvals: { waiting(): Approval[] };
  askers: Askers;
  squads: Pick<Squads, "task">;
}

export const approvalKey = (id: string) => `approval:${id}`;

/** Has every question reach the conversation that asked for the work. */
export function createApprovalNews({ hub, outbox, approvals, askers, squads }: ApprovalNewsDeps) {
  function askerOf({ owner }: Approval): Source | undefined {
    if (owner.kind === "message") return askers.ofMessage(owner.id);
    if (owner.kind === "run") return askers.ofRun(owner.id);
    return squads.task(owner.id).origin?.source;
  }

  /** The same question again is owed once. */
  function tell(approval: Approval): void {
    const { id, conversation } = approval;
    const source = conversation === null ? undefined : askerOf(approval);
    if (conversation === null || source === undefined) return;
    outbox.owe({ kind: "approval", about: id, conversation, source, text: null, key: approvalKey(id) });
  }

  return {
    start(): void {
      hub.subscribe((event) => {
        if (event.type === "approval.asked") tell(event.data);
        else if (event.type === "approval.decided") outbox.received(approvalKey(event.data.id));
      });
      for (const approval of approvals.waiting()) tell(approval);
    },
  };
}
