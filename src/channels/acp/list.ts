import { isAbsolute } from "node:path";
import type { ListSessionsResponse, SessionInfo } from "@agentclientprotocol/sdk";
import { UserError } from "../../lib/errors.ts";
import { oneLine, quoted } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { terminalSafe } from "../../lib/terminal-safe.ts";
import type { ConversationInfo, ConversationList } from "../../protocol/conversations.ts";
import { Conversation } from "../../protocol/messages.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { invalid } from "./errors.ts";

const PAGE = 50;
const FETCHED = 200;

/** The conversations that have a folder and a message, newest first. */
export async function listSessions(
  { request }: Pick<AcpAccess, "request">,
  { cwd, cursor }: { cwd?: string | null | undefined; cursor?: string | null | undefined },
): Promise<ListSessionsResponse> {
  if (cwd && !isAbsolute(cwd)) throw invalid(`cwd: ${quoted(cwd, 300)} is not a whole path.`);
  const notOurs = invalid("cursor: is none that was given out here.");
  if (cursor && !Conversation.safeParse(cursor).success) throw notOurs;
  const sessions: SessionInfo[] = [];
  let before = cursor ?? undefined;
  for (;;) {
    const query = new URLSearchParams({ limit: String(FETCHED), ...(cwd && { folder: realOf(cwd) }), ...(before && { before }) });
    const { items, next } = await request<ConversationList>("GET", `/api/conversations?${query}`);
    if (items.length === 0 && cursor && !(await isThere(request, cursor))) throw notOurs;
    for (const conversation of items) {
      if (sessions.length === PAGE) return { sessions, nextCursor: sessions.at(-1)!.sessionId };
      const info = sessionInfo(conversation);
      if (info) sessions.push(info);
    }
    if (next === undefined) return { sessions };
    before = next;
  }
}

/** Whether the cursor, the last session of the previous page, still exists. Without it the list would seem to end. */
async function isThere(request: AcpAccess["request"], cursor: string): Promise<boolean> {
  try {
    await request("GET", `/api/conversations/${segment(cursor)}`);
    return true;
  } catch (error) {
    if (error instanceof UserError && error.code === "not_found") return false;
    throw error;
  }
}

function sessionInfo({ name, folder, title, messages, lastMessageAt }: ConversationInfo): SessionInfo | undefined {
  if (folder === null || messages === 0) return undefined;
  return { sessionId: name, cwd: folder, title: title && terminalSafe(oneLine(title, 200)), updatedAt: lastMessageAt };
}
