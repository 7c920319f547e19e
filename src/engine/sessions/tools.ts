import type { Tool as SdkTool } from "@github/copilot-sdk";
import { clipToTokens, estimateTokens } from "../../lib/estimate-tokens.ts";
import type { CallEnd } from "../../protocol/calls.ts";
import type { CallAnswer, CallNews, EngineTool, ToolInvocation, TurnEvent } from "../../protocol/turns.ts";
import type { SessionSpec } from "../port.ts";
import type { RuntimeProcess } from "../runtime/process.ts";
import { roomFor } from "../wire/context.ts";
import { pictureMark } from "../wire/pictures.ts";

/** A turn, as its tools see it. */
export type CurrentTurn = Pick<ToolInvocation, "owner" | "attempt" | "pause" | "lastWords"> &
  Required<Pick<ToolInvocation, "settled">> & { reporter?: Reporter };

/** Reports progress of a call, and its end. */
export type Reporter = (call: { tool: string; callId: string }) => {
  report: (news: CallNews) => void;
  /** Called before the runtime gets the answer. */
  ended: (answer: CallAnswer) => void;
};

/** Collects a call's progress, and adds a command's exit code or an edit's diff to the event of its end. */
export function hearCalls(onEvent: (event: TurnEvent) => void): { onEvent: (event: TurnEvent) => void; reporter: Reporter } {
  const ends = new Map<string, Pick<CallNews, "exitCode" | "diff"> & { state?: CallEnd }>();
  const addTo = (callId: string, end: NonNullable<ReturnType<typeof ends.get>>) =>
    ends.set(callId, { ...ends.get(callId), ...end });
  return {
    onEvent(event) {
      const isEnd = event.kind === "tool" && (event.state === "done" || event.state === "failed");
      onEvent(isEnd ? { ...event, ...ends.get(event.callId) } : event);
      if (isEnd) ends.delete(event.callId);
    },
    reporter: (call) => ({
      report(news) {
        if (news.exitCode !== undefined || news.diff !== undefined) addTo(call.callId, news);
        else onEvent({ kind: "tool", ...call, state: "running", ...news });
      },
      ended: ({ state }) => void (state && addTo(call.callId, { state })),
    }),
  };
}

/** The share of a small window for essential tools and their overhead. */
const ESSENTIAL_SHARE = 0.28;

/**
 * Tools may take a quarter of the window. In a small window optional ones are dropped first; then only essential ones are
 * offered, in order, as far as they fit.
 */
export function toolsFor({ tools, essential }: SessionSpec, window: number): EngineTool[] {
  const costOf = (some: readonly EngineTool[]) =>
    estimateTokens(JSON.stringify(some.map(({ name, description, parameters }) => [name, description, parameters])));
  const room = roomFor(window) / 4;
  if (!essential || costOf(tools) <= room) return tools;
  const own = tools.filter(({ optional }) => !optional);
  let rest = own.length < tools.length ? room - costOf(own) : -1;
  if (rest >= 0) {
    const added = tools.filter((tool) => {
      if (!tool.optional || costOf([tool]) > rest) return false;
      rest -= costOf([tool]);
      return true;
    });
    return [...own, ...added];
  }
  const fitting: EngineTool[] = [];
  let left = roomFor(window) * ESSENTIAL_SHARE;
  for (const name of essential) {
    const tool = tools.find((each) => each.name === name);
    if (!tool) continue;
    const { description, parameters } = tool;
    const own = estimateTokens(JSON.stringify({ type: "function", function: { name, description, parameters } }));
    if (own > left) continue;
    left -= own;
    fitting.push(tool);
  }
  return fitting;
}

/** Limits a tool's results so that the conversation has room. */
export function fitting(tool: EngineTool, window: number): EngineTool {
  const most = Math.floor(roomFor(window) / 4);
  return {
    ...tool,
    call: async (args, invocation) => {
      const answer = await tool.call(args, invocation);
      const cut = clipToTokens(answer.text, most);
      if (cut === answer.text) return answer;
      return {
        ...answer,
        text: `${cut}\n[The rest was cut: it does not fit into the model's window. Ask for a smaller part.]`,
      };
    },
  };
}

export interface SdkToolDeps {
  /** The current turn of the session; a session outlives its turns. */
  turn: { now: CurrentTurn };
  life: RuntimeProcess;
  /** The session's id in the runtime: call ids are unique only within it. */
  sessionId: string;
  /** Stores a picture for the session and returns its id. */
  keepPicture: (bytes: Uint8Array) => Promise<string>;
  /** Makes the runtime persist the request. */
  flush: () => Promise<void>;
}

/** A tool in the SDK's form. */
export function sdkTool(tool: EngineTool, { turn, life, sessionId, keepPicture, flush }: SdkToolDeps): SdkTool {
  return {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    // The runtime has built-in tools with some of these names. Ours must run, because they pass the gate.
    overridesBuiltInTool: true,
    skipPermission: true,
    defer: "never",
    handler: async (args, invocation) => {
      const signal = invocation.signal ?? new AbortController().signal;
      const { reporter, ...now } = turn.now;
      const callId = invocation.toolCallId;
      const told = reporter?.({ tool: tool.name, callId });
      const answer = await tool.call(args, {
        ...{ callId, sessionId, ...now, signal, flush },
        showPicture: async (bytes) => pictureMark(await keepPicture(bytes)),
        ...(told && { report: told.report }),
      });
      told?.ended(answer);
      const { ok, text } = answer;
      // The SDK would write to a closed pipe; the next runtime finds the result in the journal.
      if (life.isDead()) await new Promise<never>(() => {});
      return { textResultForLlm: text.toWellFormed(), resultType: ok ? "success" : "failure" };
    },
  };
}
