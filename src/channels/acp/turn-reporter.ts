import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { callSummary } from "../../protocol/call-summary.ts";
import type { Event, EventData } from "../../protocol/events.ts";
import type { Message, MessageProgress } from "../../protocol/messages.ts";
import type { TodoItem } from "../../protocol/todo.ts";
import { RULE, restOf } from "../../protocol/turn-text.ts";
import { textBlock } from "./content.ts";
import { contentOf, describeCall } from "./tools.ts";

export interface TurnReporterDeps {
  /** The conversation's folder; relative paths are resolved against it. */
  folder: () => string | null;
  tell: (update: SessionUpdate) => Promise<void>;
  /** The result of a call as the model got it; undefined if unknown. */
  resultOf: (message: string, callId: string) => Promise<string | undefined>;
}

type ToolNews = EventData<"message.tool">;

interface OpenCall {
  /** The editor's id. */
  id: string;
  /** The journal's id. */
  callId: string;
  tool: string;
  isTold: boolean;
  /** A one-line summary of the arguments. */
  args: string;
  output: string;
  diff?: ToolNews["diff"];
  /** Its output is shown by a terminal of the editor. */
  hasTerminal?: true;
}

interface Turn {
  message: string;
  said: string;
  calls: Map<string, OpenCall>;
  /** How often each id occurred: some providers reuse one id for every call. */
  uses: Map<string, number>;
}

const MOST_OUTPUT = 4_000;
const PLAN_STATES = { open: "pending", running: "in_progress", done: "completed" } as const;

/** Reports the turns of a conversation to an editor, one after another, from their events. */
export function createTurnReporter({ folder, tell, resultOf }: TurnReporterDeps) {
  let turn: Turn | undefined;
  const turnOf = (message: string): Turn => {
    if (turn?.message !== message) turn = { message, said: "", calls: new Map(), uses: new Map() };
    return turn;
  };
  const say = (text: string, message: string) =>
    tell({ sessionUpdate: "agent_message_chunk", content: textBlock(text), messageId: `${message}-reply` });

  function openCall(current: Turn, { tool, callId = tool }: ToolNews): OpenCall {
    const known = current.calls.get(callId);
    if (known) return known;
    const use = (current.uses.get(callId) ?? 0) + 1;
    current.uses.set(callId, use);
    const unique = use === 1 ? callId : `${callId}~${use}`;
    const call = { id: callIdOf(current.message, unique), callId: unique, tool, isTold: false, args: "", output: "" };
    current.calls.set(callId, call);
    return call;
  }

  async function present(call: OpenCall, { args = "", input }: Partial<ToolNews>): Promise<void> {
    if (call.isTold) return;
    call.isTold = true;
    const about = describeCall({ tool: call.tool, args, input }, folder());
    await tell({ sessionUpdate: "tool_call", toolCallId: call.id, ...about, status: "in_progress" });
  }

  async function handleTool(news: ToolNews): Promise<void> {
    const current = turnOf(news.id);
    const call = openCall(current, news);
    if (news.diff) call.diff = news.diff;
    call.args = news.args ?? call.args;
    if (news.args !== undefined) await present(call, news);
    if (news.output) {
      call.output = `${call.output}${news.output}`.slice(-MOST_OUTPUT);
      await present(call, news);
      const content = contentOf({ text: call.output });
      if (!call.hasTerminal) await tell({ sessionUpdate: "tool_call_update", toolCallId: call.id, content });
    }
    if (news.state === "started" || news.state === "running") return;
    current.calls.delete(news.callId ?? news.tool);
    await present(call, news);
    await end(current, call, news.state === "done");
  }

  async function end({ message }: Turn, { id, callId, diff, output, hasTerminal }: OpenCall, isDone: boolean): Promise<void> {
    const text = diff || hasTerminal ? undefined : output || (await resultOf(message, callId));
    const content = contentOf({ diff, text });
    const status = isDone ? ("completed" as const) : ("failed" as const);
    await tell({ sessionUpdate: "tool_call_update", toolCallId: id, status, ...(content.length > 0 && { content }) });
  }

  return {
    /** Shows a running turn from its beginning. */
    async replay({ id, text, tools }: MessageProgress): Promise<void> {
      for (const { state, ...use } of tools) await handleTool({ id, ...use, state: state === "started" ? "running" : state });
      turnOf(id).said = text;
      if (text !== "") await say(text, id);
    },
    /** Continues a running turn from its current position. */
    goOn({ id, text }: MessageProgress): void {
      turnOf(id).said = text;
    },
    /** Shows a call in a terminal of the editor. An update that names the terminal after its release would be lost. */
    async showTerminal({ message, call: callId }: { message: string; call: string }, terminalId: string): Promise<void> {
      const call = openCall(turnOf(message), { id: message, tool: "shell", callId, state: "running" });
      call.hasTerminal = true;
      await present(call, {});
      const content = [{ type: "terminal" as const, terminalId }];
      await tell({ sessionUpdate: "tool_call_update", toolCallId: call.id, content });
    },
    /** The editor's id of an open call of this tool, preferably one with the same summary. */
    openCall(message: string, tool: string, about: string): string | undefined {
      const calls = turn?.message === message ? [...turn.calls.values()].filter((call) => call.tool === tool) : [];
      return (
        calls.find(({ args }) => about !== "" && args.includes(callSummary("shell", JSON.stringify({ command: about })))) ??
        calls[0]
      )?.id;
    },
    async handle(event: Event): Promise<void> {
      switch (event.type) {
        case "message.started": {
          const current = turnOf(event.data.id);
          // A restarted turn repeats its text.
          if (current.said !== "") await say(RULE, event.data.id);
          current.said = "";
          return;
        }
        case "message.delta": {
          const { id, text, restarted } = event.data;
          const current = turnOf(id);
          if (restarted && current.said !== "") await say(RULE, id);
          current.said = (restarted ? "" : current.said) + text;
          if (text !== "") await say(text, id);
          return;
        }
        case "message.tool":
          return handleTool(event.data);
        case "message.thought":
          return tell({ sessionUpdate: "agent_thought_chunk", content: textBlock(event.data.text) });
        case "message.retried":
          return tell({ sessionUpdate: "agent_thought_chunk", content: textBlock(`${event.data.why} Trying again.\n`) });
        case "todo.changed":
          return tell(planOf(event.data.items));
      }
    },
    /** Shows the rest of the reply, and ends calls that still seem to run. */
    async finish(message: Message): Promise<void> {
      const current = turnOf(message.id);
      const rest = message.status === "done" ? restOf(message.reply ?? "", current.said) : "";
      if (rest !== "") await say(rest, message.id);
      for (const call of current.calls.values())
        if (call.isTold) await tell({ sessionUpdate: "tool_call_update", toolCallId: call.id, status: "failed" });
      turn = undefined;
    },
  };
}
export type TurnReporter = ReturnType<typeof createTurnReporter>;

/** Providers choose the ids of calls, and may reuse them in the next turn. */
export const callIdOf = (message: string, callId: string): string => `${message}.${callId}`;

export function planOf(items: readonly TodoItem[]): SessionUpdate {
  const entries = items.map(({ text, state }) => ({
    ...{ content: text, priority: "medium" as const, status: PLAN_STATES[state] },
  }));
  return { sessionUpdate: "plan", entries };
}
