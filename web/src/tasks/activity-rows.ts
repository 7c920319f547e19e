import type { Approval } from "../../../src/protocol/approvals.ts";
import { type CallState, callOf, type Stateful, showState, stateAtTheEnd } from "../../../src/protocol/shown-state.ts";
import type { Activity } from "../../../src/protocol/squads.ts";

/** One activity: a tool call from start to end, or something that happened at once. */
export interface ActivityRow {
  kind: Activity["kind"];
  summary: string;
  call: (Stateful & { kind: "call" }) | undefined;
  isBad: boolean;
  /** Milliseconds since 1970; `from` and `to` are equal for something that happened at once. */
  from: number;
  to: number;
  /** What an approval for this call would name. */
  asks: { tool: string; words: string } | undefined;
}

interface Seen {
  items: readonly Activity[];
  isOver: boolean;
  /** Waiting approvals. Their cards already show the calls, which are therefore left out. */
  asked: readonly Pick<Approval, "tool" | "command">[];
}

export function rowsOf({ items, isOver, asked }: Seen): ActivityRow[] {
  const rows: ActivityRow[] = [];
  const open = new Map<unknown, number>();
  for (const item of items) {
    const at = Date.parse(item.createdAt);
    const begun = item.kind === "tool" ? open.get(item.data?.callId) : undefined;
    const row = rowOf(item, begun === undefined ? at : rows[begun]!.from, at);
    if (begun !== undefined) rows[begun] = row;
    else rows.push(row);
    if (row.asks && item.data?.callId !== undefined) open.set(item.data.callId, begun ?? rows.length - 1);
    else if (begun !== undefined) open.delete(item.data?.callId);
  }
  if (isOver) return rows.map((row) => (row.call && row.asks ? ended(row, row.call.state) : row));
  const waiting = new Set(asked.map((question) => rows.find((row) => isAbout(row, question))));
  return rows.filter((row) => !waiting.has(row));
}

function rowOf({ kind, summary, data, createdAt }: Activity, from: number, to: number): ActivityRow {
  const call = callOf({ kind, data }) as ActivityRow["call"];
  const isOpen = call !== undefined && showState(call).tone === "busy";
  const asks = isOpen ? { tool: String(data?.tool), words: summary } : undefined;
  return { kind, summary, call, isBad: isBad(call) || data?.state === "failed", from, to: Date.parse(createdAt) || to, asks };
}

const isBad = (call: ActivityRow["call"]) => call !== undefined && ["bad", "doubt"].includes(showState(call).tone);

/** The state of a call whose end was not reported before its task was over. */
function ended(row: ActivityRow, state: CallState): ActivityRow {
  const call = { kind: "call" as const, state: stateAtTheEnd(state) };
  return { ...row, call, isBad: isBad(call), asks: undefined };
}

function isAbout({ asks }: ActivityRow, { tool, command }: Pick<Approval, "tool" | "command">): boolean {
  if (asks?.tool !== tool) return false;
  return command === null || command.replace(/\s+/g, " ").trim().startsWith(asks.words.replace(/…$/, ""));
}
