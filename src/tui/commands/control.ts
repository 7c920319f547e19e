import { describeStatus } from "../../client/status.ts";
import { UserError } from "../../lib/errors.ts";
import type { Status, Stopped } from "../../protocol/api.ts";
import { tellApproval } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { Message } from "../../protocol/messages.ts";
import type { Command, CommandDeps } from "./command.ts";

/** What runs, what waits for a person, and how to end it. */
export const controlCommands: readonly Command[] = [
  {
    name: "status",
    help: "what IO is doing",
    run: async ({ client }) => describeStatus(await client.request<Status>("GET", "/api/status"), client.url),
  },
  {
    name: "approvals",
    help: "what waits for your decision",
    async run({ client }) {
      const { items } = await client.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
      const asked = items.map((approval) => tellApproval(approval, { allow: "/allow", deny: "/deny" }));
      return asked.join("\n\n") || "Nothing waits for you.";
    },
  },
  {
    name: "allow",
    takes: "<id> [once|task|project]",
    help: "lets it be done",
    run: (deps) => decide(deps, "allow"),
  },
  {
    name: "deny",
    takes: "<id> [why]",
    help: "refuses it; more words are told to the model",
    run: (deps) => decide(deps, "deny"),
  },
  {
    name: "cancel",
    help: "ends the turn of this conversation, as Escape does",
    async run({ client, conversation }) {
      const { items } = await client.request<{ items: Message[] }>(
        "GET",
        `/api/messages?conversation=${encodeURIComponent(conversation)}&limit=50`,
      );
      const running = items.find(({ status }) => status === "running");
      if (!running) return "Nothing runs in this conversation.";
      await client.request("POST", `/api/messages/${running.id}/cancel`);
      return "Cancelled.";
    },
  },
  {
    name: "stop",
    help: "ends every turn, task and run, and empties the queue",
    async run({ client }) {
      const { messages, tasks, runs } = await client.request<Stopped>("POST", "/api/stop");
      return `stopped: ${messages} messages, ${tasks} tasks, ${runs} runs`;
    },
  },
];

async function decide({ client, args: [id, ...words] }: CommandDeps, decision: "allow" | "deny"): Promise<string> {
  if (id === undefined) throw new UserError(`/${decision} needs an id; /approvals lists what waits.`);
  return decideApproval(client, { id, decision, words });
}

/** Says what came of it. A scope may stand first behind an allowance; all other words are a note. */
export async function decideApproval(
  client: CommandDeps["client"],
  { id, decision, words }: { id: string; decision: "allow" | "deny"; words: readonly string[] },
): Promise<string> {
  const [first = "", ...others] = words;
  const hasScope = decision === "allow" && ["once", "task", "project"].includes(first);
  const note = (hasScope ? others : words).join(" ");
  const path = `/api/approvals/${encodeURIComponent(id)}`;
  const body = { decision, ...(hasScope && { scope: first }), ...(note && { note }) };
  const { state } = await client.request<Approval>("POST", path, body);
  return `${id} is ${state}.`;
}
