import { oneLine } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import type { CallEnd } from "../protocol/calls.ts";
import type { FileEdit } from "../protocol/messages.ts";
import type { CallNews, EngineTool } from "../protocol/turns.ts";

const LIMIT = 160;

/** A tool call, as shown to whoever watches a task. */
export interface ObservedCall {
  taskId: string;
  tool: string;
  callId: string;
  state: "started" | "running" | CallEnd;
  summary: string;
  /** The next piece of its output. */
  output?: string;
  exitCode?: number | null;
  /** An edit's change to a file. */
  diff?: FileEdit;
}

/** Wraps tools so that each call is reported when it begins and when it ends. */
export function observeTools(tools: readonly EngineTool[], redactor: Redactor, tell: (call: ObservedCall) => void): EngineTool[] {
  return tools.map((tool) => ({
    ...tool,
    async call(args, invocation) {
      const what = redactor.clean(summaryOf(tool.name, args));
      const call = { taskId: invocation.owner, tool: tool.name, callId: invocation.callId };
      let end: Pick<CallNews, "exitCode" | "diff"> = {};
      const report = (news: CallNews) => {
        const { exitCode, diff } = news;
        if (exitCode !== undefined || diff !== undefined) end = news;
        if (news.output !== undefined) tell({ ...call, state: "running", summary: what, output: news.output });
      };
      tell({ ...call, state: "started", summary: what });
      const answer = await tool.call(args, { ...invocation, report });
      const summary = `${what} → ${oneLine(firstLine(answer.text), LIMIT)}`;
      tell({ ...call, state: answer.state ?? (answer.ok ? "done" : "failed"), summary, ...end });
      return answer;
    },
  }));
}

/** The first line with content: not the data marker. */
function firstLine(text: string): string {
  const [first = "", second = ""] = text.split("\n", 2);
  return first.startsWith("--- data ") ? second : first;
}

/** What a call is about, in one line. */
export function summaryOf(tool: string, args: unknown): string {
  const given = typeof args === "object" && args !== null ? Object.entries(args) : [];
  const text = (name: string) => given.flatMap(([key, value]) => (key === name && typeof value === "string" ? [value] : []))[0];
  if (tool === "shell") return oneLine(text("command") ?? "shell", LIMIT);
  if (tool === "file_ops")
    return oneLine([text("operation") ?? tool, text("query") ?? text("glob"), text("path")].filter(Boolean).join(" "), LIMIT);
  const about = text("path") ?? text("query") ?? text("decision");
  return oneLine(about === undefined ? tool : `${tool} ${about}`, LIMIT);
}
