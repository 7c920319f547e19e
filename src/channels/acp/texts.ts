import { join, relative } from "node:path";
import {
  type AgentContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  methods,
  type ReadTextFileResponse,
} from "@agentclientprotocol/sdk";
import { named } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import type { EventData } from "../../protocol/events.ts";
import { FormAnswer, type PersonForm } from "../../protocol/person-form.ts";
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
  offers: () => EditorOffers;
}

/** What an editor can do for IO. */
export interface EditorOffers {
  /** Provide texts that are not saved. */
  texts: boolean;
  /** Show a form to the person. */
  forms: boolean;
  /** Run commands in a terminal of its own. */
  terminals: boolean;
}

/** Provides the editor's unsaved texts when the daemon reads files below the session's folder, and shows forms of MCP servers. */
export function createEditorTexts({ access, client, session, path, folder, offers }: EditorTextsDeps) {
  let isOpen = false;
  let withdrawn = new AbortController();

  async function textOf(real: string): Promise<string | null> {
    const root = realOf(folder);
    if (!isWithin(root, real)) return null;
    const asked = { sessionId: session, path: join(folder, relative(root, real)) };
    const answer = await client.request<ReadTextFileResponse>(methods.client.fs.readTextFile, asked);
    return answer.content;
  }

  async function fillIn({ server, message, fields, required }: PersonForm): Promise<FormAnswer> {
    const request: CreateElicitationRequest = {
      ...{ sessionId: session, mode: "form", message: `The MCP server ${named(server, 80)} asks: ${message}` },
      requestedSchema: { type: "object", properties: fields, required },
    };
    const options = { cancellationSignal: withdrawn.signal, stopWaitingOnCancel: true };
    const answer = await client.request<CreateElicitationResponse>(methods.client.elicitation.create, request, options);
    const read = FormAnswer.safeParse({ action: answer.action, ...("content" in answer && { content: answer.content ?? {} }) });
    const { action, content = {} } = read.success ? read.data : { action: "cancel" as const };
    if (action !== "accept") return { action };
    return { action, content: Object.fromEntries(Object.entries(content).filter(([name]) => Object.hasOwn(fields, name))) };
  }

  return {
    /** Tells the daemon that it may ask; a restarted daemon must be told again. */
    async open(): Promise<void> {
      const { texts, forms, terminals } = offers();
      if (!texts && !forms && !terminals) return;
      // A daemon that is older than this process knows no terminals.
      await access.request("PUT", path, { texts, forms, ...(terminals && { terminals }) });
      isOpen = true;
    },
    async answer({ ask, path: real, form }: EventData<"editor.asked">): Promise<void> {
      const { texts, forms } = offers();
      const reply = (answer: object) => access.request("POST", `${path}/${segment(ask)}`, answer);
      if (form && forms) await reply(await fillIn(form).catch((): FormAnswer => ({ action: "cancel" })));
      // An editor that cannot read the file gives no text, so the file on disk counts.
      else if (real !== undefined && texts) await reply({ text: await textOf(real).catch(() => null) });
    },
    /** Takes back the forms of a turn that has ended. */
    withdraw(): void {
      withdrawn.abort();
      withdrawn = new AbortController();
    },
    async close(): Promise<void> {
      withdrawn.abort();
      if (isOpen) await access.request("DELETE", path);
    },
  };
}
