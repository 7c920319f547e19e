import type { Approval, WaitsFor } from "./approvals.ts";

/** Formats a whole question and how to answer it, for a channel whose commands are `allow` and `deny`. */
export function formatApproval(approval: Approval, { allow, deny }: { allow: string; deny: string }): string {
  const { id, state } = approval;
  const answer =
    state === "waiting"
      ? [`Answer: ${allow} ${id}   or   ${deny} ${id}   (until ${timeOf(approval.expiresAt)})`]
      : [ended(approval)];
  return [...describeApproval(approval), ...answer].join("\n");
}

/** An approval on one line. */
export function approvalLine({ id, state, actor, tool, summary, owner }: Approval): string {
  return `${id}  ${state}  ${actor} (${owner.id})  ${tool}: ${summary}`;
}

/** How a person sees what running work waits for, on one line. */
export function formatWaits({ kind, approvals }: WaitsFor): string {
  const why = kind === "budget" ? "Waits for you because a budget is used up" : "Waits for you";
  return `${why}: ${approvals.map((id) => `io approval show ${id}`).join(", ")}`;
}

/** Whether an approval blocks everybody's work, as a daily budget does. */
export function isForAll({ kind, rule }: Pick<Approval, "kind" | "rule">): boolean {
  return kind === "budget" && rule?.startsWith("budgets.day in ") === true;
}

/** Work that a question may hold up. */
export interface HeldWork {
  id: string;
  conversation: string | null;
  squad: string | null;
}

/** Whether a question holds up some work: it asked itself, or shares the budget that is used up. */
export function holdsUp(
  { owner, kind, rule, conversation, squad }: Pick<Approval, "owner" | "kind" | "rule" | "conversation" | "squad">,
  work: HeldWork,
): boolean {
  if (owner.id === work.id || isForAll({ kind, rule })) return true;
  if (kind !== "budget") return false;
  const budget = rule?.split(" ", 1)[0];
  if (budget === "budgets.day") return squad !== null && squad === work.squad;
  return budget === "budgets.conversation" && conversation !== null && conversation === work.conversation;
}

/** Whether a conversation should show an approval. */
export function concerns(approval: Approval, conversation: string): boolean {
  return approval.conversation === null || approval.conversation === conversation || isForAll(approval);
}

function describeApproval(approval: Approval): string[] {
  const { id, actor, tool, summary, command, path, diff, cwd, reason, rule, scopes, owner } = approval;
  const wider = scopes.filter(({ scope }) => scope !== "once");
  return [
    approval.kind === "budget" ? `${id}: ${summary}` : `${id}: ${actor} wants to use ${tool}, for ${owner.kind} ${owner.id}`,
    ...(command !== null ? indented(command) : approval.kind === "budget" ? [] : indented(summary)),
    ...(path !== null ? [`  file: ${path}`] : []),
    ...(diff !== null ? indented(diff) : []),
    ...(cwd !== null ? [`  in ${cwd}`] : []),
    ...(reason !== null ? [`  the model's words: "${reason}"`] : []),
    ...(rule !== null ? [`  asked because of ${rule}`] : []),
    ...wider.map(({ scope, rule: written }) => `  with the scope ${scope}: ${written}`),
  ];
}

function indented(text: string): string[] {
  return text.split("\n").map((line) => `    ${line}`);
}

function ended({ state, decidedBy, note, scope, decidedAt }: Approval): string {
  const by = decidedBy === null ? "" : ` by ${decidedBy}`;
  const wider = scope !== null && scope !== "once" ? `, for the whole ${scope}` : "";
  return `${state}${by}${wider}${decidedAt === null ? "" : `, ${timeOf(decidedAt)}`}${note === null ? "" : `: ${note}`}`;
}

function timeOf(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}
