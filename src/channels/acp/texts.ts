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
  /** Where the daemon takes answers. */
  path: string;
  /** The session's folder, as the editor spells it. */
  folder: string;
  /** Whether the editor can be asked. */
  isOffered: () => boolean;
}

/** The texts that the editor holds and has not saved, for the daemon's reads below the session's folder. */
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
    /** The daemon may ask from now on; one that was started anew has to be told again. */
    async open(): Promise<void> {
      if (!isOffered()) return;
      await access.request("PUT", path);
      isOpen = true;
    },
    async answer({ ask, path: real }: EventData<"editor.asked">): Promise<void> {
      if (!isOffered()) return;
      // An editor that cannot read the file says nothing of it: then what is on disk counts.
      const text = await textOf(real).catch(() => null);
      await access.request("POST", `${path}/${segment(ask)}`, { text });
    },
    async close(): Promise<void> {
      if (isOpen) await access.request("DELETE", path);
    },
  };
}
