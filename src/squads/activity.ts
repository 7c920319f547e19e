import { oneLine } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import type { EngineTool } from "../protocol/turns.ts";

const LIMIT = 160;

/** One call of a tool as it is told to whoever watches a task. */
export interface SeenCall {
  taskId: string;
  tool: string;
  state: "started" | "done" | "failed";
  summary: string;
}

/** The same tools, each call told as it begins and as it ends. */
export function watched(tools: readonly EngineTool[], redactor: Redactor, tell: (call: SeenCall) => void): EngineTool[] {
  return tools.map((tool) => ({
    ...tool,
    async call(args, invocation) {
      const what = redactor.clean(summaryOf(tool.name, args));
      const seen = (state: SeenCall["state"], summary: string) =>
        tell({ taskId: invocation.owner, tool: tool.name, state, summary });
      seen("started", what);
      const answer = await tool.call(args, invocation);
      seen(answer.ok ? "done" : "failed", `${what} → ${oneLine(firstLine(answer.text), LIMIT)}`);
      return answer;
    },
  }));
}

/** The first line that says something: not the mark of data. */
function firstLine(text: string): string {
  const [first = "", second = ""] = text.split("\n", 2);
  return first.startsWith("--- data ") ? second : first;
}

/** What a call is about, in a line. */
export function summaryOf(tool: string, args: unknown): string {
  const given = typeof args === "object" && args !== null ? Object.entries(args) : [];
  const text = (name: string) => given.flatMap(([key, value]) => (key === name && typeof value === "string" ? [value] : []))[0];
  if (tool === "shell") return oneLine(text("command") ?? "shell", LIMIT);
  if (tool === "file_ops") return oneLine(`${text("operation") ?? "file_ops"} ${text("path") ?? ""}`, LIMIT);
  const about = text("path") ?? text("query") ?? text("decision");
  return oneLine(about === undefined ? tool : `${tool} ${about}`, LIMIT);
}
