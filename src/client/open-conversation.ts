import type { Mode } from "../home/mode-words.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Client } from "./client.ts";

export interface WantedConversation {
  /** By its name. */
  name?: string | undefined;
  /** It has to be there already. */
  exists?: boolean;
  /** The one that was used last here. */
  last?: boolean;
  /** Where the person stands; undefined where that folder is gone. */
  folder?: string | undefined;
  /** The mode it is given. */
  mode?: Mode | undefined;
}

/** The conversation that somebody wants who stands in a folder. */
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
