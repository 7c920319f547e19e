import { join, relative } from "node:path";
import { type AgentContext, methods, type ReadTextFileResponse } from "@agentclientprotocol/sdk";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import type { EventData } from "../../protocol/events.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";

export interface EditorTextsDeps {
  access: Pick<AcpAccess, "request" | "note">;
  client: Pick<AgentContext, "request">;
  session: string;
  /** The daemon's route for answers. */
  path: string;
  /** The session's folder, as the editor spells it. */
  folder: string;
  /** Whether the editor can provide texts. */
  isOffered: () => boolean;
}

/** Provides the editor's unsaved texts when the daemon reads files below the session's folder. */
export function createEditorTexts({ access, client, session, path, folder, isOffered }: EditorTextsDeps) {
  let isOpen = false;

  async function textOf(real: string): Promise<string | null> {
    const root = realOf(folder);
    if (!isWithin(root, real)) return null;
    const asked = { sessionId: session, path: join(folder, relative(root, real)) };
    const answer = await client.request<ReadTextFileResponse>(methods.client.fs.readTextFile, asked);
    return answer.content;
  }

  return {
    /** Tells the daemon that it may ask; a restarted daemon must be told again. */
    async open(): Promise<void> {
      if (!isOffered()) return;
      await access.request("PUT", path);
      isOpen = true;
    },
    async answer({ ask, path: real }: EventData<"editor.asked">): Promise<void> {
      if (!isOffered()) return;
      // An editor that cannot read the file gives no text, so the file on disk counts.
      const text = await textOf(real).catch(() => null);
      await access.request("POST", `${path}/${segment(ask)}`, { text });
    },
    async close(): Promise<void> {
      if (isOpen) await access.request("DELETE", path);
    },
  };
}
