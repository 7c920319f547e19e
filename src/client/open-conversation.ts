import type { Mode } from "../home/mode-words.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Client } from "./client.ts";

export interface WantedConversation {
  /** The name of the conversation. */
  name?: string | undefined;
  /** Whether it must already exist. */
  exists?: boolean;
  /** Selects the conversation that was used last here. */
  last?: boolean;
  /** The person's current folder; undefined if it was deleted. */
  folder?: string | undefined;
  /** The mode to set. */
  mode?: Mode | undefined;
}

/** Opens the conversation that a person in a folder wants. */
export async function openConversation(client: Pick<Client, "request">, wanted: WantedConversation): Promise<ConversationInfo> {
  const opened = await openAsItIs(client, wanted);
  const { mode } = wanted;
  return mode === undefined ? opened : client.request("PATCH", `/api/conversations/${encodeURIComponent(opened.name)}`, { mode });
}

async function openAsItIs(client: Pick<Client, "request">, wanted: WantedConversation): Promise<ConversationInfo> {
  const { name, exists, last, folder } = wanted;
  if (exists && name !== undefined) return client.request("GET", `/api/conversations/${encodeURIComponent(name)}`);
  const body = { ...(folder !== undefined && { folder }), ...(name !== undefined && { name }), ...(last && { last }) };
  return client.request("POST", "/api/conversations", body);
}
