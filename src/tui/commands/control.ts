import { describeStatus } from "../../client/status.ts";
import { isMode, MODE_WORDS, MODES, type Mode } from "../../home/mode-words.ts";
import { UserError } from "../../lib/errors.ts";
import type { Status, Stopped } from "../../protocol/api.ts";
import { formatApproval } from "../../protocol/approval-text.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { BackgroundCommand, BackgroundList, BackgroundOutput } from "../../protocol/background.ts";
import { formatAllBackground, formatBackground, formatStopped } from "../../protocol/background-text.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import type { Message } from "../../protocol/messages.ts";
import type { Command, CommandDeps } from "./command.ts";

/** Commands that show what is running or waiting for the user, and that end it. */
export const controlCommands: readonly Command[] = [
  {
    name: "status",
    help: "what IO is doing",
    run: async ({ client }) => describeStatus(await client.request<Status>("GET", "/api/status"), client.url),
  },
  {
    name: "mode",
    takes: "[plan|ask|auto|full]",
    help: "tells or sets how much IO may do unasked in this conversation (Shift+Tab: the next one)",
    run: changeMode,
  },
  {
    name: "approvals",
    help: "what waits for your decision",
    async run({ client }) {
      const { items } = await client.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
      const asked = items.map((approval) => formatApproval(approval, { allow: "/allow", deny: "/deny" }));
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
    name: "background",
    takes: "[<id>|stop <id>]",
    help: "commands that were left running, such as a server; stop ends one",
    run: background,
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

/** How many of a command's last lines are shown. */
const LINES = 40;

async function background({ client, args: [first, second] }: CommandDeps): Promise<string> {
  if (first === undefined)
    return formatAllBackground((await client.request<BackgroundList>("GET", "/api/background?state=running")).items);
  const at = (id: string) => `/api/background/${encodeURIComponent(id)}`;
  if (first !== "stop") return formatBackground(await client.request<BackgroundOutput>("GET", `${at(first)}?lines=${LINES}`));
  if (second === undefined) throw new UserError("/background stop needs an id; /background lists what runs.");
  return formatStopped(await client.request<BackgroundCommand>("POST", `${at(second)}/stop`));
}

/** The modes that Shift+Tab cycles through. "full" asks nobody any more, so the user must type it out. */
const BY_KEY: readonly Mode[] = ["plan", "ask", "auto"];

async function changeMode({ client, conversation, args: [given] }: CommandDeps): Promise<string> {
  const mode = await modeOf(client, conversation);
  if (given === undefined) return `${tellMode(mode)} /mode plan, ask, auto or full changes it.`;
  const wanted = given === "next" ? BY_KEY[(BY_KEY.indexOf(mode) + 1) % BY_KEY.length]! : given;
  if (!isMode(wanted)) throw new UserError(`"${given}" is no mode: ${MODES.join(", ")}.`);
  await client.request("PATCH", `/api/conversations/${encodeURIComponent(conversation)}`, { mode: wanted });
  return tellMode(wanted);
}

const tellMode = (mode: Mode): string => `This conversation is in the mode ${mode}: ${MODE_WORDS[mode]}.`;

/** The mode of a conversation: its own, or else the global one. */
export async function modeOf(client: CommandDeps["client"], conversation: string): Promise<Mode> {
  const path = `/api/conversations/${encodeURIComponent(conversation)}`;
  // A conversation without messages has no record.
  const own = await client.request<ConversationInfo>("GET", path).catch(() => undefined);
  return own?.mode ?? (await client.request<Status>("GET", "/api/status")).mode ?? "full";
}

async function decide({ client, args: [id, ...words] }: CommandDeps, decision: "allow" | "deny"): Promise<string> {
  if (id === undefined) throw new UserError(`/${decision} needs an id; /approvals lists what waits.`);
  return decideApproval(client, { id, decision, words });
}

/** Decides an approval and returns its new state. After "allow", the first word may be a scope; all other words are a note. */
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
