import type { AgentContext, PermissionOption, RequestPermissionRequest, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { terminalSafe } from "../../lib/terminal-safe.ts";
import type { Approval } from "../../protocol/approvals.ts";
import { isAway, persistently } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { textBlock } from "./content.ts";
import { describeCall, fenced } from "./tools.ts";

export interface QuestionsDeps {
  access: Pick<AcpAccess, "request" | "note">;
  client: Pick<AgentContext, "request">;
  conversation: string;
  folder: string;
  /** The editor's id of the tool call in question, if the editor knows the call. */
  callOf: (approval: Approval) => string | undefined;
  /** Shows text in the session. */
  say: (text: string) => Promise<void>;
}

/** How long an answer is kept for a daemon that is away, such as one that is restarting. */
const AWAY_MS = 120_000;

/** The answers that an editor may give. None outlasts the work that asked. */
const DECISIONS = {
  "allow-once": { decision: "allow", scope: "once" },
  "allow-task": { decision: "allow", scope: "task" },
  deny: { decision: "deny", scope: "once" },
} as const;
const ONCE: PermissionOption = { optionId: "allow-once", name: "Allow once", kind: "allow_once" };
const TASK: PermissionOption = { optionId: "allow-task", name: "Allow until this answer is done", kind: "allow_once" };
const DENY: PermissionOption = { optionId: "deny", name: "Deny", kind: "reject_once" };

/** Asks the person at an editor the open questions of a conversation. */
export function createQuestions({ access, client, conversation, folder, callOf, say }: QuestionsDeps) {
  const open = new Map<string, AbortController>();

  async function put(approval: Approval, withdrawn: AbortController): Promise<void> {
    const request: RequestPermissionRequest = {
      sessionId: conversation,
      toolCall: { toolCallId: callOf(approval) ?? `approval-${approval.id}`, ...shown(approval, folder) },
      options: [ONCE, ...(approval.scopes.some(({ scope }) => scope === "task") ? [TASK] : []), DENY],
    };
    const options = { cancellationSignal: withdrawn.signal, stopWaitingOnCancel: true };
    const answer = await client.request("session/request_permission", request, options).catch(() => undefined);
    if (withdrawn.signal.aborted) return;
    const chosen = answer?.outcome.outcome === "selected" ? answer.outcome.optionId : "";
    const isOffered = request.options.some(({ optionId }) => optionId === chosen);
    const decision = isOffered ? DECISIONS[chosen as keyof typeof DECISIONS] : undefined;
    // Any other result decides nothing: the question stays open, here and elsewhere.
    if (!decision) return say(`Nothing was decided. ${howElse(approval)}`);
    try {
      await persistently(() => access.request("POST", `/api/approvals/${approval.id}`, decision), AWAY_MS);
    } catch (error) {
      // Somebody else answered first, the question has ended, or the daemon stays away.
      access.note(`The answer to ${approval.id} did not count: ${String(error)}`);
      if (isAway(error)) await say(`Your answer did not reach IO. ${howElse(approval)}`);
    }
  }

  return {
    /** Asks once, if the question belongs to this conversation. */
    async ask(approval: Approval): Promise<void> {
      if (approval.state !== "waiting" || approval.conversation !== conversation || open.has(approval.id)) return;
      const withdrawn = new AbortController();
      open.set(approval.id, withdrawn);
      if (approval.kind === "budget") return say(`${terminalSafe(approval.summary)} ${howElse(approval)}`);
      void put(approval, withdrawn).catch((error: unknown) => access.note(String(error)));
    },
    /** Withdraws a question that was answered elsewhere or is no longer needed. */
    decided({ id }: Approval): void {
      open.get(id)?.abort();
      open.delete(id);
    },
  };
}
export type Questions = ReturnType<typeof createQuestions>;

const howElse = ({ id }: Approval) =>
  `It waits for you: "io approval allow ${id}" or "io approval deny ${id}" in a terminal.\n\n`;

function shown(approval: Approval, folder: string | null): Omit<ToolCallUpdate, "toolCallId"> {
  const { tool, summary, command, path, diff, cwd, reason, rule } = approval;
  const { title, kind } = describeCall({ tool, args: command ?? summary }, folder);
  const lines = [
    ...(command !== null ? [fenced(command)] : []),
    ...(diff !== null ? [fenced(diff)] : []),
    ...(cwd !== null ? [`in ${fencedLine(cwd)}`] : []),
    ...(reason !== null ? [`The model's words: ${fencedLine(reason)}`] : []),
    ...(rule !== null ? [`Asked because of ${fencedLine(rule)}`] : []),
  ];
  return {
    title,
    kind,
    status: "pending",
    content: [{ type: "content", content: textBlock(lines.join("\n\n")) }],
    ...(path !== null && { locations: [{ path }] }),
  };
}
const fencedLine = (text: string) => `\`${text.replaceAll("`", "'").replace(/\s+/g, " ")}\``;
