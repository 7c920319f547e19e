import type { Client } from "../client/client.ts";
import { tellApproval } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";

/** A question as the chat shows it. */
export function askInChat(approval: Approval): string {
  return tellApproval(approval, { allow: "/allow", deny: "/deny" });
}

/** Everything that waits. */
export async function waitingApprovals(client: Client): Promise<string> {
  const { items } = await client.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
  return `${items.map(askInChat).join("\n\n") || "Nothing waits for you."}\n`;
}

/** Says what came of it; what stands behind the id is a note. */
export async function decideApproval(client: Client, decision: "allow" | "deny", [id, ...words]: string[]): Promise<string> {
  if (id === undefined) return `/${decision} needs an id; /approvals lists what waits.\n`;
  const note = words.join(" ");
  const path = `/api/approvals/${encodeURIComponent(id)}`;
  const { state } = await client.request<Approval>("POST", path, { decision, ...(note && { note }) });
  return `${id} is ${state}.\n`;
}
