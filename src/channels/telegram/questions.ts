import { withoutMiddle } from "../../lib/visible.ts";
import { formatApproval } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import { approvalButtons } from "./buttons.ts";
import { pieceOf } from "./format/answer.ts";
import { cutIntoPieces } from "./format/pieces.ts";
import type { Content } from "./part.ts";

const WORDS = { allow: "/allow", deny: "/deny" };
/** A longer question is sent as a file, with its beginning and end in the message. */
const MAX_SHOWN = 3_000;

/** A question with its command, folder and diff; once decided, with the decision and no buttons. */
export function questionContent(approval: Approval, { isReminder = false } = {}): Content {
  const [first = "", ...rest] = formatApproval(approval, WORDS).split("\n");
  const whole = rest.join("\n");
  const isLong = whole.length > MAX_SHOWN;
  const last = rest.at(-1) ?? "";
  const shown = isLong
    ? `${withoutMiddle(rest.slice(0, -1).join("\n"), MAX_SHOWN)}\n… (all of it: ${approval.id}.txt)\n${last}`
    : whole;
  const head = isReminder && approval.state === "waiting" ? `Still waits for you. ${first}` : first;
  const runs = [{ text: head, bold: true }, { text: "\n" }, { text: shown, pre: "" }];
  return {
    pieces: cutIntoPieces(runs).map(pieceOf),
    ...(isLong && { files: [{ name: `${approval.id}.txt`, content: `${first}\n${whole}\n` }] }),
    ...(approval.state === "waiting" && { buttons: approvalButtons(approval.id) }),
  };
}
