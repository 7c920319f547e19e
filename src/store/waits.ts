import { type HeldWork, holdsUp } from "../protocol/approval-text.ts";
import { Approval, type WaitsFor } from "../protocol/approvals.ts";
import type { Store } from "./open.ts";

const Question = Approval.pick({ id: true, owner: true, kind: true, rule: true, conversation: true, squad: true });

/** Finds the undecided questions that hold up running work. */
export function createWaits({ db }: Store) {
  const open = db.prepare(
    "SELECT id, kind, owner_kind, owner_id, conversation, squad, rule FROM approvals WHERE state = 'waiting' ORDER BY seq",
  );
  return (work: HeldWork): WaitsFor | undefined => {
    const questions = (open.all() as Record<string, unknown>[])
      .map((row) => Question.parse({ ...row, owner: { kind: row.owner_kind, id: row.owner_id } }))
      .filter((question) => holdsUp(question, work));
    if (questions.length === 0) return undefined;
    const kind = questions.every((question) => question.kind === "budget") ? "budget" : "approval";
    return { kind, approvals: questions.map(({ id }) => id) };
  };
}
export type Waits = ReturnType<typeof createWaits>;
